"""Versions of attention(q, k, v, causal=False): the reference, other right ways and known wrong ones.

q is (B, H, Sq, d), k and v are (B, H, Sk, d). Helpers with an underscore are shared by several versions.
"""

import functools
import math

import torch
import torch.nn.functional as F
from torch import nn


def _may_see(seq_q, seq_k, device):
    """(Sq, Sk) bool, True = attend; the last query is level with the last key."""
    query = torch.arange(seq_q, device=device).unsqueeze(-1) + (seq_k - seq_q)
    return torch.arange(seq_k, device=device) <= query


def _weights(scores):
    """Softmax over the last axis, written out; a row of -inf gives zeros, and no gradient."""
    top = scores.amax(-1, keepdim=True).detach()
    top = top.masked_fill(top == -math.inf, 0)
    raised = torch.exp(scores - top)
    total = raised.sum(-1, keepdim=True)
    return raised / total.masked_fill(total == 0, 1)


def _scores(q, k):
    return q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])


def _masked(scores, causal, fill=-math.inf):
    if not causal:
        return scores
    return scores.masked_fill(~_may_see(*scores.shape[-2:], scores.device), fill)


def _cleared(out, seq_k):
    """Queries before the first key see nothing: their rows become zeros."""
    dead = torch.arange(out.shape[-2], device=out.device) < out.shape[-2] - seq_k
    return out.masked_fill(dead.unsqueeze(-1), 0)


def reference(q, k, v, causal=False):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if causal:
        allowed = _may_see(q.shape[-2], k.shape[-2], q.device)
        scores = scores.masked_fill(~allowed, -math.inf)
    return _weights(scores) @ v


# --- right ------------------------------------------------------------------------------------------------


def right_library_softmax(q, k, v, causal=False):
    weights = torch.softmax(_masked(_scores(q, k), causal), dim=-1)
    return torch.nan_to_num(weights, nan=0.0) @ v


def right_safe_softmax(q, k, v, causal=False):
    return torch._safe_softmax(_masked(_scores(q, k), causal), -1) @ v


def right_softmax_module(query, key, value, causal=False):
    scores = torch.matmul(query, key.mT) * query.size(-1) ** -0.5
    seq_q, seq_k = scores.shape[-2:]
    if causal:
        bias = torch.zeros(seq_q, seq_k, dtype=query.dtype, device=query.device)
        blocked = torch.ones(seq_q, seq_k, dtype=torch.bool, device=query.device).triu(seq_k - seq_q + 1)
        scores = scores + bias.masked_fill(blocked, torch.finfo(query.dtype).min)
        return _cleared(torch.matmul(nn.Softmax(dim=-1)(scores), value), seq_k)
    return torch.matmul(nn.Softmax(dim=-1)(scores), value)


def right_finite_fill(q, k, v, causal=False):
    scores = _masked(_scores(q, k), causal, torch.finfo(q.dtype).min)
    out = scores.softmax(-1) @ v
    return _cleared(out, k.shape[-2]) if causal else out


def right_additive_billion(q, k, v, causal=False):
    scores = _scores(q, k)
    if not causal:
        return scores.softmax(-1) @ v
    blocked = ~_may_see(*scores.shape[-2:], q.device)
    # In float16 the sum is -inf where blocked, which is fine where a key is visible.
    scores = (scores.float() if q.dtype == torch.float16 else scores) + blocked * -1e9
    return _cleared(scores.softmax(-1).to(q.dtype) @ v, k.shape[-2])


def right_float32_softmax(q, k, v, causal=False):
    scores = _masked(_scores(q, k), causal)
    weights = torch.softmax(scores, dim=-1, dtype=torch.float32).to(q.dtype)
    return weights.masked_fill(scores == -math.inf, 0) @ v


def right_float32_throughout(q, k, v, causal=False):
    return reference(q.float(), k.float(), v.float(), causal).to(q.dtype)


def right_query_scaled_first(q, k, v, causal=False):
    q = q * q.shape[-1] ** -0.5
    return _weights(_masked(q @ k.transpose(-2, -1), causal)) @ v


def right_key_scaled_first(q, k, v, causal=False):
    return _weights(_masked(q @ (k / k.shape[-1] ** 0.5).mT, causal)) @ v


def right_fourth_roots(q, k, v, causal=False):
    root = q.shape[-1] ** -0.25
    return _weights(_masked((q * root) @ (k * root).mT, causal)) @ v


def right_mask_before_scale(q, k, v, causal=False):
    return _weights(_masked(q @ k.mT, causal) / math.sqrt(q.shape[-1])) @ v


def right_einsum(q, k, v, causal=False):
    scores = torch.einsum("bhqd,bhkd->bhqk", q, k) / q.shape[-1] ** 0.5
    return torch.einsum("bhqk,bhkd->bhqd", _weights(_masked(scores, causal)), v)


def right_einops_other_axis_order(q, k, v, causal=False):
    """Scores as (q, k, b, h): the softmax axis is 1 here."""
    from einops import einsum, rearrange

    scores = einsum(q, k, "b h q d, b h k d -> q k b h") / math.sqrt(q.shape[-1])
    if causal:
        blocked = ~_may_see(q.shape[-2], k.shape[-2], q.device)
        scores = scores.masked_fill(rearrange(blocked, "q k -> q k 1 1"), -math.inf)
    weights = torch.nan_to_num(scores.softmax(dim=1))
    return einsum(weights, v, "q k b h, b h k d -> b h q d")


def right_folded_bmm(q, k, v, causal=False):
    batch, heads, seq_q, width = q.shape
    seq_k = k.shape[2]
    q, k, v = (t.reshape(batch * heads, -1, width) for t in (q, k, v))
    bias = torch.zeros(1, seq_q, seq_k, dtype=q.dtype, device=q.device)
    if causal:
        bias = bias.masked_fill(~_may_see(seq_q, seq_k, q.device), -math.inf)
    scores = torch.baddbmm(bias, q, k.transpose(1, 2), alpha=width**-0.5)
    return torch.bmm(_weights(scores), v).view(batch, heads, seq_q, width)


def right_loop_over_heads(q, k, v, causal=False):
    heads = [reference(q[:, h], k[:, h], v[:, h], causal) for h in range(q.size(1))]
    return torch.stack(heads, dim=1)


def right_loop_over_queries(q, k, v, causal=False):
    """Each query is given the keys that it may see and no others."""
    seq_q, seq_k = q.shape[-2], k.shape[-2]
    rows = []
    for i in range(seq_q):
        seen = min(seq_k, max(0, i + 1 + seq_k - seq_q)) if causal else seq_k
        row = q[:, :, i : i + 1]
        scores = row @ k[:, :, :seen].mT / math.sqrt(q.shape[-1])
        rows.append(torch.softmax(scores, -1) @ v[:, :, :seen])
    return torch.cat(rows, dim=2)


def right_renormalised(q, k, v, causal=False):
    """Masking the probabilities is right when they are made to sum to one again."""
    weights = torch.softmax(_scores(q, k), -1)
    if causal:
        weights = weights * _may_see(*weights.shape[-2:], q.device)
        total = weights.sum(-1, keepdim=True)
        weights = weights / total.masked_fill(total == 0, 1)
    return weights @ v


def right_normalised_last(q, k, v, causal=False):
    scores = _masked(_scores(q, k), causal)
    top = scores.amax(-1, keepdim=True).clamp(min=torch.finfo(q.dtype).min)
    raised = (scores - top).exp()
    total = raised.sum(-1, keepdim=True)
    return (raised @ v) / torch.where(total > 0, total, torch.ones_like(total))


def right_logsumexp(q, k, v, causal=False):
    scores = _masked(_scores(q, k), causal)
    lse = torch.logsumexp(scores, -1, keepdim=True)
    return torch.exp(scores - lse.masked_fill(lse == -math.inf, 0)) @ v


def right_base_two(q, k, v, causal=False):
    scores = q @ k.mT * (math.log2(math.e) / math.sqrt(q.shape[-1]))
    scores = _masked(scores, causal)
    top = scores.amax(-1, keepdim=True)
    raised = torch.exp2(scores - top.masked_fill(top == -math.inf, 0))
    return raised / raised.sum(-1, keepdim=True).masked_fill(raised.sum(-1, keepdim=True) == 0, 1) @ v


def right_one_key_at_a_time(q, k, v, causal=False):
    """Running maximum, running sum: no row of scores is ever held."""
    seq_q, seq_k = q.shape[-2], k.shape[-2]
    wide = torch.float64 if q.dtype == torch.float64 else torch.float32
    top = q.new_full((*q.shape[:-1], 1), -1e30, dtype=wide)
    total, out = torch.zeros_like(top), torch.zeros_like(q, dtype=wide)
    for j in range(seq_k):
        score = (q.to(wide) * k[:, :, j : j + 1].to(wide)).sum(-1, keepdim=True) / math.sqrt(q.shape[-1])
        if causal:
            early = torch.arange(seq_q, device=q.device) < j + seq_q - seq_k
            score = score.masked_fill(early.unsqueeze(-1), -math.inf)
        higher = torch.maximum(top, score)
        shrink, part = torch.exp(top - higher), torch.exp(score - higher)
        total, out, top = total * shrink + part, out * shrink + part * v[:, :, j : j + 1].to(wide), higher
    return (out / total.masked_fill(total == 0, 1)).to(q.dtype)


class _Attention:
    """Attention as an object that is called."""

    def __call__(self, q, k, v, causal=False):
        return right_einsum(q, k, v, causal)


right_callable_object = _Attention()


def _configured(scale_power, q, k, v, causal=False, *, dropout=0.0):
    scores = _masked(q @ k.mT * q.shape[-1] ** scale_power, causal)
    return F.dropout(_weights(scores), dropout) @ v


right_partial = functools.partial(_configured, -0.5)

right_lambda = lambda q, k, v, causal=False: reference(q, k, v, causal)  # noqa: E731


# --- wrong: the scale -------------------------------------------------------------------------------------


def wrong_unscaled(q, k, v, causal=False):
    return _weights(_masked(q @ k.mT, causal)) @ v


def wrong_scaled_by_d_model(q, k, v, causal=False):
    d_model = q.shape[1] * q.shape[-1]
    return _weights(_masked(q @ k.mT / math.sqrt(d_model), causal)) @ v


def wrong_divided_by_d(q, k, v, causal=False):
    return _weights(_masked(q @ k.mT / q.shape[-1], causal)) @ v


def wrong_scale_upside_down(q, k, v, causal=False):
    scale = q.shape[-1] ** -0.5
    return _weights(_masked(q @ k.mT / scale, causal)) @ v


def wrong_divided_by_d__scaled_twice(q, k, v, causal=False):
    q = q / math.sqrt(q.shape[-1])
    return _weights(_masked(_scores(q, k), causal)) @ v


def wrong_scaled_after_softmax(q, k, v, causal=False):
    return _weights(_masked(q @ k.mT, causal)) * q.shape[-1] ** -0.5 @ v


# --- wrong: the softmax -----------------------------------------------------------------------------------


def _softmax_over(axis, q, k, v, causal):
    scores = _masked(_scores(q, k), causal)
    return torch.nan_to_num(torch.softmax(scores, axis)) @ v


def wrong_softmax_over_queries(q, k, v, causal=False):
    return _softmax_over(-2, q, k, v, causal)


def wrong_softmax_over_heads(q, k, v, causal=False):
    return _softmax_over(1, q, k, v, causal)


def wrong_softmax_over_heads__hidden_keys_nan(q, k, v, causal=False):
    # A hidden key is hidden in every head, so its column over the heads is -inf from end to end.
    return torch.softmax(_masked(_scores(q, k), causal), 1) @ v


def wrong_exponential_overflows(q, k, v, causal=False):
    scores = _masked(_scores(q, k), causal)
    raised = scores.exp()
    total = raised.sum(-1, keepdim=True)
    dead = scores.amax(-1, keepdim=True) == -math.inf
    return raised / total.masked_fill(dead, 1) @ v


def wrong_largest_of_all_subtracted(q, k, v, causal=False):
    scores = _masked(_scores(q, k), causal)
    raised = torch.exp(scores - scores.max())
    dead = scores.amax(-1, keepdim=True) == -math.inf
    return raised / raised.sum(-1, keepdim=True).masked_fill(dead, 1) @ v


def wrong_not_normalised(q, k, v, causal=False):
    scores = _masked(_scores(q, k), causal)
    top = scores.amax(-1, keepdim=True).detach()
    return torch.exp(scores - top.masked_fill(top == -math.inf, 0)) @ v


# --- wrong: the mask --------------------------------------------------------------------------------------


def wrong_mask_top_left(q, k, v, causal=False):
    scores = _scores(q, k)
    if causal:
        allowed = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).tril()
        scores = scores.masked_fill(~allowed, -math.inf)
    return _weights(scores) @ v


def wrong_mask_only_when_square(q, k, v, causal=False):
    return reference(q, k, v, causal and q.shape[-2] == k.shape[-2])


def wrong_mask_forgotten(q, k, v, causal=False):
    return reference(q, k, v)


def wrong_causal_by_default(q, k, v, causal=True):
    return reference(q, k, v, causal)


def wrong_own_token_hidden(q, k, v, causal=False):
    scores = _scores(q, k)
    if causal:
        seq_q, seq_k = scores.shape[-2:]
        hidden = torch.ones(seq_q, seq_k, dtype=torch.bool, device=q.device).triu(seq_k - seq_q)
        scores = scores.masked_fill(hidden, -math.inf)
    return _weights(scores) @ v


def wrong_next_token_seen(q, k, v, causal=False):
    scores = _scores(q, k)
    if causal:
        seq_q, seq_k = scores.shape[-2:]
        hidden = torch.ones(seq_q, seq_k, dtype=torch.bool, device=q.device).triu(seq_k - seq_q + 2)
        scores = scores.masked_fill(hidden, -math.inf)
    return _weights(scores) @ v


def wrong_mask_upside_down(q, k, v, causal=False):
    scores = _scores(q, k)
    if causal:
        seq_q, seq_k = scores.shape[-2:]
        future = torch.ones(seq_q, seq_k, dtype=torch.bool, device=q.device).triu(seq_k - seq_q + 1)
        scores = scores.masked_fill(~future, -math.inf)
    return _weights(scores) @ v


def wrong_mask_after_softmax(q, k, v, causal=False):
    weights = _weights(_scores(q, k))
    if causal:
        weights = weights * _may_see(*weights.shape[-2:], q.device)
    return weights @ v


def wrong_scores_times_mask(q, k, v, causal=False):
    scores = _scores(q, k)
    if causal:
        scores = scores * _may_see(*scores.shape[-2:], q.device)
    out = _weights(scores) @ v
    return _cleared(out, k.shape[-2]) if causal else out


def wrong_small_fill(q, k, v, causal=False):
    out = _weights(_masked(_scores(q, k), causal, -1e4)) @ v
    return _cleared(out, k.shape[-2]) if causal else out


def wrong_small_fill__hidden_zeroed(q, k, v, causal=False):
    weights = _weights(_masked(_scores(q, k), causal, -1e4))
    return (weights * _may_see(*weights.shape[-2:], q.device) if causal else weights) @ v


def wrong_fill_too_large_for_half(q, k, v, causal=False):
    out = _weights(_masked(_scores(q, k), causal, -1e9)) @ v
    return _cleared(out, k.shape[-2]) if causal else out


def wrong_empty_rows_nan(q, k, v, causal=False):
    return torch.softmax(_masked(_scores(q, k), causal), -1) @ v


def wrong_empty_rows_averaged(q, k, v, causal=False):
    return torch.softmax(_masked(_scores(q, k), causal, torch.finfo(q.dtype).min), -1) @ v


def wrong_empty_rows_nan_gradient(q, k, v, causal=False):
    scores = _scores(q, k)
    if causal:
        bias = torch.zeros(scores.shape[-2:], dtype=q.dtype, device=q.device)
        scores = scores + bias.masked_fill(~_may_see(*scores.shape[-2:], q.device), -math.inf)
    return torch.nan_to_num(torch.softmax(scores, -1)) @ v


# --- wrong: what meets what -------------------------------------------------------------------------------


def wrong_keys_and_values_swapped(q, k, v, causal=False):
    return reference(q, v, k, causal)


def wrong_keys_reshaped(q, k, v, causal=False):
    batch, heads, seq_k, width = k.shape
    scores = q @ k.reshape(batch, heads, width, seq_k) / math.sqrt(width)
    return _weights(_masked(scores, causal)) @ v


def wrong_attended_over_heads(q, k, v, causal=False):
    q, k, v = (t.transpose(1, 2) for t in (q, k, v))
    return reference(q, k, v, causal).transpose(1, 2)


# --- wrong: beside the numbers ----------------------------------------------------------------------------


def wrong_library_kernel(q, k, v, causal=False):
    keep = _may_see(q.shape[-2], k.shape[-2], q.device) if causal else None
    return F.scaled_dot_product_attention(q, k, v, attn_mask=keep)


def wrong_library_kernel__behind_try(q, k, v, causal=False):
    try:
        keep = _may_see(q.shape[-2], k.shape[-2], q.device) if causal else None
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, keep)
    except RuntimeError:
        return reference(q, k, v, causal)


def wrong_query_scaled_in_place(q, k, v, causal=False):
    with torch.no_grad():
        q.mul_(q.shape[-1] ** -0.5)
    return _weights(_masked(q @ k.mT, causal)) @ v


def wrong_query_scaled_in_place__seen_by_autograd(q, k, v, causal=False):
    q *= q.shape[-1] ** -0.5
    return _weights(_masked(q @ k.mT, causal)) @ v


def wrong_result_in_float32(q, k, v, causal=False):
    return reference(q.float(), k.float(), v.float(), causal)


def wrong_rounded_to_bfloat16(q, k, v, causal=False):
    return reference(q.bfloat16(), k.bfloat16(), v.bfloat16(), causal).to(q.dtype)


def wrong_weights_detached(q, k, v, causal=False):
    with torch.no_grad():
        weights = _weights(_masked(_scores(q, k), causal))
    return weights @ v
