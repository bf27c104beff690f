"""Versions of cross_attention(x, context, w_q, w_k, w_v, w_o, num_heads).

x is (B, Sq, D) and asks, context is (B, Sk, D) and answers. Weights are (in, out), used as x @ w.
Helpers with an underscore are shared by several versions.
"""

import math

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


def _attend(q, k, v):
    return _weights(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])) @ v


def _pipeline(x, context, w_q, w_k, w_v, w_o, num_heads, *, split=_split, attend=_attend, merge=_merge):
    """The whole of it, with one step exchanged."""
    _width(x.shape[-1], num_heads)
    q, k, v = (split(y, num_heads) for y in (x @ w_q, context @ w_k, context @ w_v))
    return merge(attend(q, k, v)) @ w_o


def reference(x, context, w_q, w_k, w_v, w_o, num_heads):
    batch, seq_q, d_model = x.shape
    seq_k = context.shape[1]
    if d_model % num_heads:
        raise ValueError(f"d_model {d_model} is not divisible by num_heads {num_heads}")
    d_head = d_model // num_heads
    q = (x @ w_q).view(batch, seq_q, num_heads, d_head).transpose(1, 2)  # (B, H, Sq, d)
    k = (context @ w_k).view(batch, seq_k, num_heads, d_head).transpose(1, 2)  # (B, H, Sk, d)
    v = (context @ w_v).view(batch, seq_k, num_heads, d_head).transpose(1, 2)
    weights = _weights(q @ k.transpose(-2, -1) / math.sqrt(d_head))  # (B, H, Sq, Sk), no mask
    heads = weights @ v
    return heads.transpose(1, 2).reshape(batch, seq_q, d_model) @ w_o


# --- right ------------------------------------------------------------------------------------------------


def right_library_softmax(x, context, w_q, w_k, w_v, w_o, num_heads):
    def attend(q, k, v):
        return torch.softmax(q @ k.mT * q.shape[-1] ** -0.5, dim=-1) @ v

    return _pipeline(x, context, w_q, w_k, w_v, w_o, num_heads, attend=attend)


def right_einops(x, context, w_q, w_k, w_v, w_o, num_heads):
    from einops import einsum, rearrange

    if x.size(-1) % num_heads != 0:
        raise ValueError("num_heads must divide d_model")
    q, k, v = (
        rearrange(y, "b s (h d) -> b h s d", h=num_heads) for y in (x @ w_q, context @ w_k, context @ w_v)
    )
    scores = einsum(q, k, "b h i d, b h j d -> b h i j") / math.sqrt(q.shape[-1])
    return (
        rearrange(einsum(scores.softmax(-1), v, "b h i j, b h j d -> b h i d"), "b h s d -> b s (h d)") @ w_o
    )


def right_fused_keys_and_values(x, context, w_q, w_k, w_v, w_o, num_heads):
    """One projection for k and v, which read the same tokens; q cannot join it."""
    _width(x.shape[-1], num_heads)
    k, v = (context @ torch.cat([w_k, w_v], dim=1)).chunk(2, dim=-1)
    q, k, v = (_split(y, num_heads) for y in (x @ w_q, k, v))
    return _merge(_attend(q, k, v)) @ w_o


def right_private_weights(x, context, w_q, w_k, w_v, w_o, num_heads):
    d_head = _width(x.shape[-1], num_heads)
    total = torch.zeros_like(x)
    for h in range(num_heads):
        own = slice(h * d_head, (h + 1) * d_head)
        total = total + _attend(x @ w_q[:, own], context @ w_k[:, own], context @ w_v[:, own]) @ w_o[own]
    return total


def right_concatenated_heads(x, context, w_q, w_k, w_v, w_o, num_heads):
    d_head = _width(x.shape[-1], num_heads)
    projected = (x @ w_q, context @ w_k, context @ w_v)
    parts = zip(*(y.split(d_head, dim=-1) for y in projected), strict=True)
    return torch.cat([_attend(q, k, v) for q, k, v in parts], dim=-1) @ w_o


def right_heads_stay_third(x, context, w_q, w_k, w_v, w_o, num_heads):
    """(B, S, H, d) throughout; scores as (b, i, j, h), so the softmax axis is 2."""
    d_head = _width(x.shape[-1], num_heads)
    q, k, v = (y.unflatten(-1, (num_heads, d_head)) for y in (x @ w_q, context @ w_k, context @ w_v))
    weights = torch.einsum("bihd,bjhd->bijh", q, k * d_head**-0.5).softmax(dim=2)
    return torch.einsum("bijh,bjhd->bihd", weights, v).flatten(2) @ w_o


def right_folded_heads(x, context, w_q, w_k, w_v, w_o, num_heads):
    batch, seq_q, d_model = x.shape
    d_head = _width(d_model, num_heads)

    def fold(y):
        return y.transpose(0, 1).reshape(y.shape[1], batch * num_heads, d_head).transpose(0, 1)

    q, k, v = fold(x @ w_q), fold(context @ w_k), fold(context @ w_v)
    bias = torch.zeros(1, dtype=x.dtype, device=x.device).expand(q.shape[0], seq_q, k.shape[1])
    weights = torch.baddbmm(bias, q, k.mT, alpha=d_head**-0.5).softmax(-1)
    heads = torch.bmm(weights, v).transpose(0, 1).reshape(seq_q, batch, d_model)
    return (heads @ w_o).transpose(0, 1)


def right_einsum_weights(queries, memory, wq, wk, wv, wo, heads, *, scale=None):
    d_model = queries.shape[-1]
    d_head = _width(d_model, heads)
    q = torch.einsum("bsm,mhd->bhsd", queries, wq.reshape(d_model, heads, d_head))
    k = torch.einsum("bsm,mhd->bhsd", memory, wk.reshape(d_model, heads, d_head))
    v = torch.einsum("bsm,mhd->bhsd", memory, wv.reshape(d_model, heads, d_head))
    weights = _weights(q @ k.mT * (scale or d_head**-0.5))
    return torch.einsum("bhsd,hdm->bsm", weights @ v, wo.reshape(heads, d_head, d_model))


def right_fourth_roots_float32(x, context, w_q, w_k, w_v, w_o, num_heads):
    def attend(q, k, v):
        root = q.shape[-1] ** -0.25
        return F.softmax((q * root) @ (k * root).mT, dim=-1, dtype=torch.float32).to(v.dtype) @ v

    return _pipeline(x, context, w_q, w_k, w_v, w_o, num_heads, attend=attend)


def right_float32_throughout(x, context, w_q, w_k, w_v, w_o, num_heads):
    wide = torch.float64 if x.dtype == torch.float64 else torch.float32
    tensors = (t.to(wide) for t in (x, context, w_q, w_k, w_v, w_o))
    return _pipeline(*tensors, num_heads).to(x.dtype)


def right_weighted_context_first(x, context, w_q, w_k, w_v, w_o, num_heads):
    """Average the context, then project: the values are linear in it."""
    d_head = _width(x.shape[-1], num_heads)
    q, k = _split(x @ w_q, num_heads), _split(context @ w_k, num_heads)
    averaged = _weights(q @ k.mT / math.sqrt(d_head)) @ context.unsqueeze(1)
    heads = averaged @ w_v.unflatten(1, (num_heads, d_head)).transpose(0, 1)
    return _merge(heads) @ w_o


def right_query_by_query(x, context, w_q, w_k, w_v, w_o, num_heads):
    q, k, v = (_split(y, num_heads) for y in (x @ w_q, context @ w_k, context @ w_v))
    rows = [_attend(q[:, :, i, None], k, v) for i in range(x.shape[1])]
    return _merge(torch.cat(rows, dim=2)) @ w_o


def right_linear_layers(x, context, w_q, w_k, w_v, w_o, num_heads):
    batch, d_model = x.shape[0], x.shape[2]
    d_head = _width(d_model, num_heads)
    q = F.linear(x, w_q.T).reshape(batch, -1, num_heads, d_head).permute(0, 2, 1, 3).contiguous()
    k = F.linear(context, w_k.T).reshape(batch, -1, num_heads, d_head).permute(0, 2, 3, 1).contiguous()
    v = F.linear(context, w_v.T).reshape(batch, -1, num_heads, d_head).permute(0, 2, 1, 3).contiguous()
    out = _weights(torch.matmul(q / d_head**0.5, k)) @ v
    return F.linear(out.permute(0, 2, 1, 3).contiguous().view(batch, -1, d_model), w_o.T)


right_lambda = lambda x, context, w_q, w_k, w_v, w_o, num_heads: _pipeline(  # noqa: E731
    x, context, w_q, w_k, w_v, w_o, num_heads
)


# --- wrong: who reads what ------------------------------------------------------------------------------------


def _from(sources, x, context, w_q, w_k, w_v, w_o, num_heads):
    """q, k and v each from x or from context."""
    _width(x.shape[-1], num_heads)
    tensors = {"x": x, "context": context}
    q, k, v = (_split(tensors[s] @ w, num_heads) for s, w in zip(sources, (w_q, w_k, w_v), strict=True))
    return _merge(_attend(q, k, v)) @ w_o


def wrong_context_ignored(x, context, w_q, w_k, w_v, w_o, num_heads):
    return _from(("x", "x", "x"), x, context, w_q, w_k, w_v, w_o, num_heads)


def wrong_keys_from_x(x, context, w_q, w_k, w_v, w_o, num_heads):
    return _from(("x", "x", "context"), x, context, w_q, w_k, w_v, w_o, num_heads)


def wrong_values_from_x(x, context, w_q, w_k, w_v, w_o, num_heads):
    return _from(("x", "context", "x"), x, context, w_q, w_k, w_v, w_o, num_heads)


def wrong_roles_exchanged(x, context, w_q, w_k, w_v, w_o, num_heads):
    return _from(("context", "x", "x"), x, context, w_q, w_k, w_v, w_o, num_heads)


def wrong_x_joined_to_context(x, context, w_q, w_k, w_v, w_o, num_heads):
    both = torch.cat([context, x], dim=1)
    return _pipeline(x, both, w_q, w_k, w_v, w_o, num_heads)


def wrong_context_not_projected(x, context, w_q, w_k, w_v, w_o, num_heads):
    q, k, v = (_split(y, num_heads) for y in (x @ w_q, context, context))
    return _merge(_attend(q, k, v)) @ w_o


def wrong_keys_and_values_swapped(x, context, w_q, w_k, w_v, w_o, num_heads):
    return _pipeline(x, context, w_q, w_v, w_k, w_o, num_heads)


def wrong_queries_and_keys_swapped(x, context, w_q, w_k, w_v, w_o, num_heads):
    return _pipeline(x, context, w_k, w_q, w_v, w_o, num_heads)


# --- wrong: lengths and layout ----------------------------------------------------------------------------------


def wrong_keys_viewed_with_query_length(x, context, w_q, w_k, w_v, w_o, num_heads):
    """The head count is what gives way: (B, Sq, -1, d) fits whenever Sk is a multiple of Sq."""
    batch, seq, d_model = x.shape
    d_head = _width(d_model, num_heads)
    q = (x @ w_q).view(batch, seq, num_heads, d_head).transpose(1, 2)
    k, v = ((context @ w).view(batch, seq, -1, d_head).transpose(1, 2) for w in (w_k, w_v))
    return (_attend(q, k, v)).transpose(1, 2).reshape(batch, seq, d_model) @ w_o


def wrong_keys_viewed_with_query_length__fixed_heads(x, context, w_q, w_k, w_v, w_o, num_heads):
    batch, seq, d_model = x.shape
    d_head = _width(d_model, num_heads)
    q, k, v = (
        y.view(batch, seq, num_heads, d_head).transpose(1, 2) for y in (x @ w_q, context @ w_k, context @ w_v)
    )
    return _merge(_attend(q, k, v)) @ w_o


def wrong_context_cut_to_query_length(x, context, w_q, w_k, w_v, w_o, num_heads):
    return _pipeline(x, context[:, : x.shape[1]], w_q, w_k, w_v, w_o, num_heads)


def wrong_equal_lengths_demanded(x, context, w_q, w_k, w_v, w_o, num_heads):
    if x.shape != context.shape:
        raise ValueError("x and context must have the same shape")
    return _pipeline(x, context, w_q, w_k, w_v, w_o, num_heads)


def wrong_viewed_straight(x, context, w_q, w_k, w_v, w_o, num_heads):
    def split(y, num_heads):
        return y.reshape(y.shape[0], num_heads, y.shape[1], -1)

    return _pipeline(x, context, w_q, w_k, w_v, w_o, num_heads, split=split)


def wrong_viewed_straight_both_ways(x, context, w_q, w_k, w_v, w_o, num_heads):
    def split(y, num_heads):
        return y.reshape(y.shape[0], num_heads, y.shape[1], -1)

    def merge(heads):
        return heads.reshape(heads.shape[0], heads.shape[2], -1)

    return _pipeline(x, context, w_q, w_k, w_v, w_o, num_heads, split=split, merge=merge)


def wrong_merged_without_transpose(x, context, w_q, w_k, w_v, w_o, num_heads):
    def merge(heads):
        return heads.reshape(heads.shape[0], heads.shape[2], -1)

    return _pipeline(x, context, w_q, w_k, w_v, w_o, num_heads, merge=merge)


def wrong_heads_interleaved(x, context, w_q, w_k, w_v, w_o, num_heads):
    from einops import rearrange

    def split(y, num_heads):
        return rearrange(y, "b s (d h) -> b h s d", h=num_heads)

    return _pipeline(x, context, w_q, w_k, w_v, w_o, num_heads, split=split)


def wrong_one_big_head(x, context, w_q, w_k, w_v, w_o, num_heads):
    _width(x.shape[-1], num_heads)
    return _attend(x @ w_q, context @ w_k, context @ w_v) @ w_o


# --- wrong: weights, scale, softmax, mask -------------------------------------------------------------------------


def wrong_weights_transposed(x, context, w_q, w_k, w_v, w_o, num_heads):
    return _pipeline(x, context, w_q.mT, w_k.mT, w_v.mT, w_o.mT, num_heads)


def wrong_output_weights_transposed(x, context, w_q, w_k, w_v, w_o, num_heads):
    return _pipeline(x, context, w_q, w_k, w_v, w_o.mT, num_heads)


def wrong_output_projection_missing(x, context, w_q, w_k, w_v, w_o, num_heads):
    q, k, v = (_split(y, num_heads) for y in (x @ w_q, context @ w_k, context @ w_v))
    return _merge(_attend(q, k, v))


def wrong_residual_added(x, context, w_q, w_k, w_v, w_o, num_heads):
    return x + _pipeline(x, context, w_q, w_k, w_v, w_o, num_heads)


def _attending(scale=None, softmax=_weights):
    def attend(q, k, v):
        factor = q.shape[-1] ** -0.5 if scale is None else scale
        return softmax(q @ k.mT * factor) @ v

    return attend


def wrong_unscaled(x, context, w_q, w_k, w_v, w_o, num_heads):
    return _pipeline(x, context, w_q, w_k, w_v, w_o, num_heads, attend=_attending(1.0))


def wrong_scaled_by_d_model(x, context, w_q, w_k, w_v, w_o, num_heads):
    return _pipeline(x, context, w_q, w_k, w_v, w_o, num_heads, attend=_attending(x.shape[-1] ** -0.5))


def wrong_scaled_by_key_length(x, context, w_q, w_k, w_v, w_o, num_heads):
    return _pipeline(x, context, w_q, w_k, w_v, w_o, num_heads, attend=_attending(context.shape[1] ** -0.5))


def wrong_softmax_over_queries(x, context, w_q, w_k, w_v, w_o, num_heads):
    attend = _attending(softmax=lambda scores: scores.softmax(-2))
    return _pipeline(x, context, w_q, w_k, w_v, w_o, num_heads, attend=attend)


def wrong_softmax_over_heads(x, context, w_q, w_k, w_v, w_o, num_heads):
    attend = _attending(softmax=lambda scores: scores.softmax(1))
    return _pipeline(x, context, w_q, w_k, w_v, w_o, num_heads, attend=attend)


def wrong_exponential_overflows(x, context, w_q, w_k, w_v, w_o, num_heads):
    attend = _attending(softmax=lambda scores: scores.exp() / scores.exp().sum(-1, keepdim=True))
    return _pipeline(x, context, w_q, w_k, w_v, w_o, num_heads, attend=attend)


def _causally(diagonal, x, context, w_q, w_k, w_v, w_o, num_heads):
    def softmax(scores):
        future = torch.ones(scores.shape[-2:], dtype=torch.bool, device=x.device).triu(diagonal + 1)
        # Rows without a key are given the mean, as with a finite fill.
        return scores.masked_fill(future, torch.finfo(scores.dtype).min).softmax(-1)

    return _pipeline(x, context, w_q, w_k, w_v, w_o, num_heads, attend=_attending(softmax=softmax))


def wrong_causal_mask(x, context, w_q, w_k, w_v, w_o, num_heads):
    return _causally(0, x, context, w_q, w_k, w_v, w_o, num_heads)


def wrong_causal_mask_bottom_right(x, context, w_q, w_k, w_v, w_o, num_heads):
    return _causally(context.shape[1] - x.shape[1], x, context, w_q, w_k, w_v, w_o, num_heads)


# --- wrong: beside the numbers ------------------------------------------------------------------------------------


def wrong_library_kernel(x, context, w_q, w_k, w_v, w_o, num_heads):
    return _pipeline(x, context, w_q, w_k, w_v, w_o, num_heads, attend=F.scaled_dot_product_attention)


def wrong_library_kernel__functional_with_weights(x, context, w_q, w_k, w_v, w_o, num_heads):
    # When the weights are asked for, the function runs primitives only: its public name gives it away.
    _width(x.shape[-1], num_heads)
    rows, others = x.transpose(0, 1), context.transpose(0, 1)
    out, _ = F.multi_head_attention_forward(
        rows, others, others, x.shape[-1], num_heads, None, None, None, None, False, 0.0, w_o.T, None, training=False,
        use_separate_proj_weight=True, q_proj_weight=w_q.T, k_proj_weight=w_k.T, v_proj_weight=w_v.T,
    )  # fmt: skip
    return out.transpose(0, 1)


def wrong_library_kernel__behind_try(x, context, w_q, w_k, w_v, w_o, num_heads):
    def attend(q, k, v):
        try:
            return torch.nn.functional.scaled_dot_product_attention(q, k, v)
        except RuntimeError:
            return _attend(q, k, v)

    return _pipeline(x, context, w_q, w_k, w_v, w_o, num_heads, attend=attend)


def _unchecked(x, context, w_q, w_k, w_v, w_o, num_heads):
    d_head = x.shape[-1] // num_heads
    q, k, v = (
        y.view(*y.shape[:2], num_heads, d_head).transpose(1, 2)
        for y in (x @ w_q, context @ w_k, context @ w_v)
    )
    return _merge(_attend(q, k, v)) @ w_o


def wrong_division_not_checked(x, context, w_q, w_k, w_v, w_o, num_heads):
    return _unchecked(x, context, w_q, w_k, w_v, w_o, num_heads)


def wrong_division_not_checked__asserted(x, context, w_q, w_k, w_v, w_o, num_heads):
    assert x.shape[-1] % num_heads == 0
    return _unchecked(x, context, w_q, w_k, w_v, w_o, num_heads)


def wrong_division_not_checked__features_dropped(x, context, w_q, w_k, w_v, w_o, num_heads):
    d_head = x.shape[-1] // num_heads
    heads = []
    for h in range(num_heads):
        own = slice(h * d_head, (h + 1) * d_head)
        heads.append(_attend(x @ w_q[:, own], context @ w_k[:, own], context @ w_v[:, own]))
    return torch.cat(heads, -1) @ w_o[: num_heads * d_head]


def wrong_result_in_float32(x, context, w_q, w_k, w_v, w_o, num_heads):
    return _pipeline(*(t.float() for t in (x, context, w_q, w_k, w_v, w_o)), num_heads)


def wrong_rounded_to_bfloat16(x, context, w_q, w_k, w_v, w_o, num_heads):
    return _pipeline(*(t.bfloat16() for t in (x, context, w_q, w_k, w_v, w_o)), num_heads).to(x.dtype)


def wrong_context_detached(x, context, w_q, w_k, w_v, w_o, num_heads):
    return _pipeline(x, context.detach(), w_q, w_k, w_v, w_o, num_heads)
