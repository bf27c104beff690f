"""Versions of multi_head_attention(x, w_q, w_k, w_v, w_o, num_heads, causal=False).

Weights are (in, out) and used as x @ w. Helpers with an underscore are shared by several versions.
"""

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F


def _width(d_model, num_heads):
    if d_model % num_heads:
        raise ValueError(f"d_model {d_model} is not divisible by num_heads {num_heads}")
    return d_model // num_heads


def _split(x, num_heads):
    return x.unflatten(-1, (num_heads, _width(x.shape[-1], num_heads))).transpose(1, 2)


def _merge(heads):
    return heads.transpose(1, 2).flatten(2)


def _weights(scores):
    """Softmax over the last axis, written out."""
    raised = torch.exp(scores - scores.amax(-1, keepdim=True).detach())
    return raised / raised.sum(-1, keepdim=True)


def _masked(scores, causal, fill=-math.inf):
    if not causal:
        return scores
    future = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).triu(1)
    return scores.masked_fill(future, fill)


def _attend(q, k, v, causal):
    return _weights(_masked(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), causal)) @ v


def _pipeline(x, w_q, w_k, w_v, w_o, num_heads, causal=False, *, split=_split, attend=_attend, merge=_merge):
    """The whole of it, with one step exchanged."""
    _width(x.shape[-1], num_heads)
    q, k, v = (split(x @ w, num_heads) for w in (w_q, w_k, w_v))
    return merge(attend(q, k, v, causal)) @ w_o


def reference(x, w_q, w_k, w_v, w_o, num_heads, causal=False):
    batch, seq, d_model = x.shape
    if d_model % num_heads:
        raise ValueError(f"d_model {d_model} is not divisible by num_heads {num_heads}")
    d_head = d_model // num_heads
    q, k, v = (
        (x @ w).view(batch, seq, num_heads, d_head).transpose(1, 2)  # (B, H, S, d)
        for w in (w_q, w_k, w_v)
    )
    scores = q @ k.transpose(-2, -1) / math.sqrt(d_head)
    if causal:
        future = torch.ones(seq, seq, dtype=torch.bool, device=x.device).triu(1)
        scores = scores.masked_fill(future, -math.inf)
    heads = _weights(scores) @ v
    return heads.transpose(1, 2).reshape(batch, seq, d_model) @ w_o


# --- right ------------------------------------------------------------------------------------------------


def right_library_softmax(x, w_q, w_k, w_v, w_o, num_heads, causal=False):
    def attend(q, k, v, causal):
        return F.softmax(_masked(q @ k.mT * q.shape[-1] ** -0.5, causal), dim=-1) @ v

    return _pipeline(x, w_q, w_k, w_v, w_o, num_heads, causal, attend=attend)


def right_einops(x, w_q, w_k, w_v, w_o, num_heads, causal=False):
    from einops import rearrange

    if x.shape[-1] % num_heads != 0:
        raise ValueError("num_heads must divide d_model")
    q, k, v = (rearrange(x @ w, "b s (h d) -> b h s d", h=num_heads) for w in (w_q, w_k, w_v))
    return rearrange(_attend(q, k, v, causal), "b h s d -> b s (h d)") @ w_o


def right_fused_projection(x, w_q, w_k, w_v, w_o, num_heads, causal=False):
    _width(x.shape[-1], num_heads)
    qkv = x @ torch.cat([w_q, w_k, w_v], dim=1)
    q, k, v = (_split(part, num_heads) for part in qkv.chunk(3, dim=-1))
    return _merge(_attend(q, k, v, causal)) @ w_o


def right_private_weights(x, w_q, w_k, w_v, w_o, num_heads, causal=False):
    """One (D, d) projection for each head, and the sum over heads of their own rows of w_o."""
    d_head = _width(x.shape[-1], num_heads)
    total = 0
    for h in range(num_heads):
        own = slice(h * d_head, (h + 1) * d_head)
        head = _attend(x @ w_q[:, own], x @ w_k[:, own], x @ w_v[:, own], causal)
        total = total + head @ w_o[own]
    return total


def right_concatenated_heads(x, w_q, w_k, w_v, w_o, num_heads, causal=False):
    d_head = _width(x.size(-1), num_heads)
    parts = zip(*((x @ w).split(d_head, dim=-1) for w in (w_q, w_k, w_v)), strict=True)
    return torch.cat([_attend(q, k, v, causal) for q, k, v in parts], dim=-1) @ w_o


def right_einsum_weights(x, w_q, w_k, w_v, w_o, num_heads, causal=False):
    """Weights cut into heads instead of the projected tokens."""
    d_model = x.shape[-1]
    d_head = _width(d_model, num_heads)
    q, k, v = (
        torch.einsum("bsm,mhd->bhsd", x, w.reshape(d_model, num_heads, d_head)) for w in (w_q, w_k, w_v)
    )
    heads = _attend(q, k, v, causal)
    return torch.einsum("bhsd,hdm->bsm", heads, w_o.reshape(num_heads, d_head, d_model))


def right_heads_stay_third(x, w_q, w_k, w_v, w_o, num_heads, causal=False):
    """(B, S, H, d) throughout: the head axis is never brought forward."""
    d_head = _width(x.shape[-1], num_heads)
    q, k, v = ((x @ w).unflatten(-1, (num_heads, d_head)) for w in (w_q, w_k, w_v))
    scores = torch.einsum("bqhd,bkhd->bhqk", q, k * d_head**-0.5)
    return torch.einsum("bhqk,bkhd->bqhd", _weights(_masked(scores, causal)), v).flatten(2) @ w_o


def right_folded_heads(x, w_q, w_k, w_v, w_o, num_heads, causal=False):
    """Sequence first, batch and heads folded into one axis."""
    batch, seq, d_model = x.shape
    d_head = _width(d_model, num_heads)
    rows = x.transpose(0, 1)
    q, k, v = ((rows @ w).reshape(seq, batch * num_heads, d_head).transpose(0, 1) for w in (w_q, w_k, w_v))
    heads = _attend(q, k, v, causal)
    return (heads.transpose(0, 1).reshape(seq, batch, d_model) @ w_o).transpose(0, 1)


class _Shape(NamedTuple):
    batch: int
    seq: int
    num_heads: int
    d_head: int


def right_permute_and_linear(inputs, wq, wk, wv, wo, heads, causal=False):
    if inputs.shape[2] % heads:
        raise ValueError("heads")
    shape = _Shape(inputs.shape[0], inputs.shape[1], heads, inputs.shape[2] // heads)
    q, k, v = (F.linear(inputs, w.T).reshape(shape).permute(0, 2, 1, 3).contiguous() for w in (wq, wk, wv))
    out = _attend(q, k, v, causal).permute(0, 2, 1, 3).contiguous()
    return F.linear(out.view(shape.batch, shape.seq, -1), wo.T)


def right_additive_mask(x, w_q, w_k, w_v, w_o, num_heads, causal=False):
    def attend(q, k, v, causal):
        root = q.shape[-1] ** -0.25
        scores = (q * root) @ (k * root).mT
        seq = scores.shape[-1]
        if causal:
            lowest = torch.finfo(q.dtype).min
            scores = scores + torch.full((seq, seq), lowest, dtype=q.dtype, device=q.device).triu(1)
        return scores.softmax(-1) @ v

    return _pipeline(x, w_q, w_k, w_v, w_o, num_heads, causal, attend=attend)


def right_float32_softmax(x, w_q, w_k, w_v, w_o, num_heads, causal=False):
    def attend(q, k, v, causal):
        scores = _masked(q @ k.mT / math.sqrt(q.shape[-1]), causal, torch.finfo(q.dtype).min)
        return torch.softmax(scores, -1, dtype=torch.float32).to(q.dtype) @ v

    return _pipeline(x, w_q, w_k, w_v, w_o, num_heads, causal, attend=attend)


def right_float32_throughout(x, w_q, w_k, w_v, w_o, num_heads, causal=False):
    wide = torch.float64 if x.dtype == torch.float64 else torch.float32
    tensors = (t.to(wide) for t in (x, w_q, w_k, w_v, w_o))
    return _pipeline(*tensors, num_heads, causal).to(x.dtype)


def right_scale_in_the_weights(x, w_q, w_k, w_v, w_o, num_heads, causal=False):
    d_head = _width(x.shape[-1], num_heads)

    def attend(q, k, v, causal):
        return _weights(_masked(q @ k.mT, causal)) @ v

    return _pipeline(x, w_q * d_head**-0.5, w_k, w_v, w_o, num_heads, causal, attend=attend)


def right_absorbed_values(x, w_q, w_k, w_v, w_o, num_heads, causal=False):
    """Each head's value and output weights multiplied together first: (D, D) a head."""
    d_head = _width(x.shape[-1], num_heads)
    q, k = _split(x @ w_q, num_heads), _split(x @ w_k, num_heads)
    both = torch.einsum(
        "ihd,hdo->hio", w_v.unflatten(1, (num_heads, d_head)), w_o.unflatten(0, (num_heads, d_head))
    )
    values = x.unsqueeze(1) @ both
    return _attend(q, k, values, causal).sum(1)


def right_token_by_token(x, w_q, w_k, w_v, w_o, num_heads, causal=False):
    """Each query with the keys that it may see, in a loop."""
    q, k, v = (_split(x @ w, num_heads) for w in (w_q, w_k, w_v))
    seq = x.shape[1]
    rows = []
    for i in range(seq):
        seen = i + 1 if causal else seq
        rows.append(_attend(q[:, :, i : i + 1], k[:, :, :seen], v[:, :, :seen], False))
    return _merge(torch.cat(rows, dim=2)) @ w_o


right_lambda = lambda x, w_q, w_k, w_v, w_o, num_heads, causal=False: _pipeline(  # noqa: E731
    x, w_q, w_k, w_v, w_o, num_heads, causal
)


# --- wrong: splitting and merging ---------------------------------------------------------------------------


def wrong_viewed_straight(x, w_q, w_k, w_v, w_o, num_heads, causal=False):
    def split(y, num_heads):
        return y.reshape(y.shape[0], num_heads, y.shape[1], -1)

    return _pipeline(x, w_q, w_k, w_v, w_o, num_heads, causal, split=split)


def wrong_viewed_straight_both_ways(x, w_q, w_k, w_v, w_o, num_heads, causal=False):
    def split(y, num_heads):
        return y.reshape(y.shape[0], num_heads, y.shape[1], -1)

    def merge(heads):
        return heads.reshape(heads.shape[0], heads.shape[2], -1)

    return _pipeline(x, w_q, w_k, w_v, w_o, num_heads, causal, split=split, merge=merge)


def wrong_merged_without_transpose(x, w_q, w_k, w_v, w_o, num_heads, causal=False):
    def merge(heads):
        return heads.reshape(heads.shape[0], heads.shape[2], -1)

    return _pipeline(x, w_q, w_k, w_v, w_o, num_heads, causal, merge=merge)


def wrong_heads_interleaved(x, w_q, w_k, w_v, w_o, num_heads, causal=False):
    from einops import rearrange

    def split(y, num_heads):
        return rearrange(y, "b s (d h) -> b h s d", h=num_heads)

    return _pipeline(x, w_q, w_k, w_v, w_o, num_heads, causal, split=split)


def wrong_split_before_projecting(x, w_q, w_k, w_v, w_o, num_heads, causal=False):
    d_head = _width(x.shape[-1], num_heads)
    slices = [slice(h * d_head, (h + 1) * d_head) for h in range(num_heads)]
    heads = [_attend(*(x[..., own] @ w[own, own] for w in (w_q, w_k, w_v)), causal) for own in slices]
    return torch.cat(heads, -1) @ w_o


def wrong_one_big_head(x, w_q, w_k, w_v, w_o, num_heads, causal=False):
    _width(x.shape[-1], num_heads)
    return _attend(x @ w_q, x @ w_k, x @ w_v, causal) @ w_o


def wrong_attended_over_heads(x, w_q, w_k, w_v, w_o, num_heads, causal=False):
    def split(y, num_heads):
        return y.unflatten(-1, (num_heads, -1))

    def attend(q, k, v, causal):
        return _attend(q, k, v, False)

    def merge(heads):
        return heads.flatten(2)

    return _pipeline(x, w_q, w_k, w_v, w_o, num_heads, causal, split=split, attend=attend, merge=merge)


# --- wrong: the weights -------------------------------------------------------------------------------------


def wrong_weights_transposed(x, w_q, w_k, w_v, w_o, num_heads, causal=False):
    return _pipeline(x, w_q.mT, w_k.mT, w_v.mT, w_o.mT, num_heads, causal)


def wrong_weights_transposed__linear(x, w_q, w_k, w_v, w_o, num_heads, causal=False):
    _width(x.shape[-1], num_heads)
    q, k, v = (_split(F.linear(x, w), num_heads) for w in (w_q, w_k, w_v))
    return F.linear(_merge(_attend(q, k, v, causal)), w_o)


def wrong_output_weights_transposed(x, w_q, w_k, w_v, w_o, num_heads, causal=False):
    return _pipeline(x, w_q, w_k, w_v, w_o.mT, num_heads, causal)


def wrong_output_projection_missing(x, w_q, w_k, w_v, w_o, num_heads, causal=False):
    q, k, v = (_split(x @ w, num_heads) for w in (w_q, w_k, w_v))
    return _merge(_attend(q, k, v, causal))


def wrong_residual_added(x, w_q, w_k, w_v, w_o, num_heads, causal=False):
    return x + _pipeline(x, w_q, w_k, w_v, w_o, num_heads, causal)


def wrong_queries_and_keys_swapped(x, w_q, w_k, w_v, w_o, num_heads, causal=False):
    return _pipeline(x, w_k, w_q, w_v, w_o, num_heads, causal)


def wrong_keys_and_values_swapped(x, w_q, w_k, w_v, w_o, num_heads, causal=False):
    return _pipeline(x, w_q, w_v, w_k, w_o, num_heads, causal)


def wrong_values_not_projected(x, w_q, w_k, w_v, w_o, num_heads, causal=False):
    _width(x.shape[-1], num_heads)
    q, k, v = (_split(y, num_heads) for y in (x @ w_q, x @ w_k, x))
    return _merge(_attend(q, k, v, causal)) @ w_o


# --- wrong: scale, softmax, mask ------------------------------------------------------------------------------


def _attending(scale=None, softmax=_weights, masked=_masked):
    def attend(q, k, v, causal):
        factor = q.shape[-1] ** -0.5 if scale is None else scale(q)
        return softmax(masked(q @ k.mT * factor, causal)) @ v

    return attend


def wrong_unscaled(x, w_q, w_k, w_v, w_o, num_heads, causal=False):
    return _pipeline(x, w_q, w_k, w_v, w_o, num_heads, causal, attend=_attending(scale=lambda q: 1))


def wrong_scaled_by_d_model(x, w_q, w_k, w_v, w_o, num_heads, causal=False):
    attend = _attending(scale=lambda q: x.shape[-1] ** -0.5)
    return _pipeline(x, w_q, w_k, w_v, w_o, num_heads, causal, attend=attend)


def wrong_scaled_by_num_heads(x, w_q, w_k, w_v, w_o, num_heads, causal=False):
    attend = _attending(scale=lambda q: num_heads**-0.5)
    return _pipeline(x, w_q, w_k, w_v, w_o, num_heads, causal, attend=attend)


def wrong_divided_by_d(x, w_q, w_k, w_v, w_o, num_heads, causal=False):
    attend = _attending(scale=lambda q: 1 / q.shape[-1])
    return _pipeline(x, w_q, w_k, w_v, w_o, num_heads, causal, attend=attend)


def wrong_scaled_after_softmax(x, w_q, w_k, w_v, w_o, num_heads, causal=False):
    def attend(q, k, v, causal):
        return _weights(_masked(q @ k.mT, causal)) * q.shape[-1] ** -0.5 @ v

    return _pipeline(x, w_q, w_k, w_v, w_o, num_heads, causal, attend=attend)


def wrong_softmax_over_queries(x, w_q, w_k, w_v, w_o, num_heads, causal=False):
    attend = _attending(softmax=lambda scores: scores.softmax(-2))
    return _pipeline(x, w_q, w_k, w_v, w_o, num_heads, causal, attend=attend)


def wrong_softmax_over_heads(x, w_q, w_k, w_v, w_o, num_heads, causal=False):
    attend = _attending(softmax=lambda scores: torch.nan_to_num(scores.softmax(1)))
    return _pipeline(x, w_q, w_k, w_v, w_o, num_heads, causal, attend=attend)


def wrong_softmax_over_heads__hidden_keys_nan(x, w_q, w_k, w_v, w_o, num_heads, causal=False):
    attend = _attending(softmax=lambda scores: scores.softmax(1))
    return _pipeline(x, w_q, w_k, w_v, w_o, num_heads, causal, attend=attend)


def wrong_exponential_overflows(x, w_q, w_k, w_v, w_o, num_heads, causal=False):
    attend = _attending(softmax=lambda scores: scores.exp() / scores.exp().sum(-1, keepdim=True))
    return _pipeline(x, w_q, w_k, w_v, w_o, num_heads, causal, attend=attend)


def wrong_mask_forgotten(x, w_q, w_k, w_v, w_o, num_heads, causal=False):
    return _pipeline(x, w_q, w_k, w_v, w_o, num_heads, False)


def wrong_causal_by_default(x, w_q, w_k, w_v, w_o, num_heads, causal=True):
    return _pipeline(x, w_q, w_k, w_v, w_o, num_heads, causal)


def wrong_mask_upside_down(x, w_q, w_k, w_v, w_o, num_heads, causal=False):
    def masked(scores, causal):
        seen = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
        return scores.masked_fill(seen, torch.finfo(scores.dtype).min) if causal else scores

    return _pipeline(x, w_q, w_k, w_v, w_o, num_heads, causal, attend=_attending(masked=masked))


def wrong_next_token_seen(x, w_q, w_k, w_v, w_o, num_heads, causal=False):
    def masked(scores, causal):
        hidden = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).triu(2)
        return scores.masked_fill(hidden, -math.inf) if causal else scores

    return _pipeline(x, w_q, w_k, w_v, w_o, num_heads, causal, attend=_attending(masked=masked))


def wrong_mask_after_softmax(x, w_q, w_k, w_v, w_o, num_heads, causal=False):
    def attend(q, k, v, causal):
        weights = _weights(q @ k.mT / math.sqrt(q.shape[-1]))
        return (weights.tril() if causal else weights) @ v

    return _pipeline(x, w_q, w_k, w_v, w_o, num_heads, causal, attend=attend)


def wrong_scores_times_mask(x, w_q, w_k, w_v, w_o, num_heads, causal=False):
    def masked(scores, causal):
        return scores.tril() if causal else scores

    return _pipeline(x, w_q, w_k, w_v, w_o, num_heads, causal, attend=_attending(masked=masked))


def wrong_fill_too_large_for_half(x, w_q, w_k, w_v, w_o, num_heads, causal=False):
    def masked(scores, causal):
        return _masked(scores, causal, -1e9)

    return _pipeline(x, w_q, w_k, w_v, w_o, num_heads, causal, attend=_attending(masked=masked))


# --- wrong: beside the numbers --------------------------------------------------------------------------------


def wrong_library_kernel(x, w_q, w_k, w_v, w_o, num_heads, causal=False):
    def attend(q, k, v, causal):
        return F.scaled_dot_product_attention(q, k, v, is_causal=causal)

    return _pipeline(x, w_q, w_k, w_v, w_o, num_heads, causal, attend=attend)


def wrong_library_kernel__functional(x, w_q, w_k, w_v, w_o, num_heads, causal=False):
    _width(x.shape[-1], num_heads)
    rows, width = x.transpose(0, 1), x.shape[-1]
    mask = torch.ones(len(rows), len(rows), dtype=torch.bool, device=x.device).triu(1) if causal else None
    out, _ = F.multi_head_attention_forward(
        rows, rows, rows, width, num_heads, torch.cat([w_q, w_k, w_v], 1).T, None, None, None, False, 0.0, w_o.T, None,
        training=False, need_weights=False, attn_mask=mask,
    )  # fmt: skip
    return out.transpose(0, 1)


def wrong_library_kernel__module_with_weights(x, w_q, w_k, w_v, w_o, num_heads, causal=False):
    # When the weights are asked for, the module runs primitives only: its public name gives it away.
    width = _width(x.shape[-1], num_heads) * num_heads
    module = torch.nn.MultiheadAttention(
        width, num_heads, bias=False, batch_first=True, device=x.device, dtype=x.dtype
    )
    mask = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool, device=x.device).triu(1) if causal else None
    weights = {"in_proj_weight": torch.cat([w_q, w_k, w_v], 1).T, "out_proj.weight": w_o.T}
    return torch.func.functional_call(module, weights, (x, x, x), {"attn_mask": mask})[0]


def wrong_library_kernel__behind_try(x, w_q, w_k, w_v, w_o, num_heads, causal=False):
    def attend(q, k, v, causal):
        try:
            return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
        except RuntimeError:
            return _attend(q, k, v, causal)

    return _pipeline(x, w_q, w_k, w_v, w_o, num_heads, causal, attend=attend)


def _unchecked(x, w_q, w_k, w_v, w_o, num_heads, causal):
    d_head = x.shape[-1] // num_heads
    q, k, v = ((x @ w).view(*x.shape[:2], num_heads, d_head).transpose(1, 2) for w in (w_q, w_k, w_v))
    return _merge(_attend(q, k, v, causal)) @ w_o


def wrong_division_not_checked(x, w_q, w_k, w_v, w_o, num_heads, causal=False):
    return _unchecked(x, w_q, w_k, w_v, w_o, num_heads, causal)


def wrong_division_not_checked__asserted(x, w_q, w_k, w_v, w_o, num_heads, causal=False):
    assert x.shape[-1] % num_heads == 0
    return _unchecked(x, w_q, w_k, w_v, w_o, num_heads, causal)


def wrong_division_not_checked__features_dropped(x, w_q, w_k, w_v, w_o, num_heads, causal=False):
    d_head = x.shape[-1] // num_heads
    heads = []
    for h in range(num_heads):
        own = slice(h * d_head, (h + 1) * d_head)
        heads.append(_attend(x @ w_q[:, own], x @ w_k[:, own], x @ w_v[:, own], causal))
    return torch.cat(heads, -1) @ w_o[: num_heads * d_head]


def wrong_result_in_float32(x, w_q, w_k, w_v, w_o, num_heads, causal=False):
    return _pipeline(x.float(), w_q.float(), w_k.float(), w_v.float(), w_o.float(), num_heads, causal)


def wrong_rounded_to_bfloat16(x, w_q, w_k, w_v, w_o, num_heads, causal=False):
    tensors = (t.bfloat16() for t in (x, w_q, w_k, w_v, w_o))
    return _pipeline(*tensors, num_heads, causal).to(x.dtype)


def wrong_weights_detached(x, w_q, w_k, w_v, w_o, num_heads, causal=False):
    def attend(q, k, v, causal):
        with torch.no_grad():
            weights = _weights(_masked(q @ k.mT / math.sqrt(q.shape[-1]), causal))
        return weights @ v

    return _pipeline(x, w_q, w_k, w_v, w_o, num_heads, causal, attend=attend)
