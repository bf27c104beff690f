"""Versions of gqa_attention: the reference, other right ways and known wrong ones."""

import math

import torch
import torch.nn.functional as F


def _check(q, k):
    heads, kv_heads = q.shape[1], k.shape[1]
    if heads % kv_heads:
        raise ValueError(f"{heads} query heads cannot be shared out over {kv_heads} K/V heads")
    return heads // kv_heads


def _future(seq, device):
    """(S, S), True where the key comes after the query."""
    return torch.ones(seq, seq, dtype=torch.bool, device=device).triu(1)


def _softmax(scores):
    exps = torch.exp(scores - scores.amax(-1, keepdim=True).detach())
    return exps / exps.sum(-1, keepdim=True)


def reference(q, k, v, causal=False):
    batch, heads, seq, d_head = q.shape
    kv_heads = k.shape[1]
    if heads % kv_heads:
        raise ValueError(f"{heads} query heads cannot be shared out over {kv_heads} K/V heads")
    grouped = q.unflatten(1, (kv_heads, heads // kv_heads))
    scores = torch.einsum("bkgsd,bktd->bkgst", grouped, k) / math.sqrt(d_head)
    if causal:
        future = torch.ones(seq, seq, dtype=torch.bool, device=q.device).triu(1)
        scores = scores.masked_fill(future, -math.inf)
    exps = torch.exp(scores - scores.amax(-1, keepdim=True).detach())
    weights = exps / exps.sum(-1, keepdim=True)
    return torch.einsum("bkgst,bktd->bkgsd", weights, v).flatten(1, 2)


# --- right ways -------------------------------------------------------------------------------------------


def right_broadcast_matmul(q, k, v, causal=False):
    # K/V get a group axis of size one; matmul broadcasts it (and copies inside, which is its own affair).
    group = _check(q, k)
    scores = (q.unflatten(1, (-1, group)) @ k.unsqueeze(2).mT) * q.shape[-1] ** -0.5
    if causal:
        scores = scores.masked_fill(_future(q.shape[2], q.device), float("-inf"))
    return (torch.softmax(scores, dim=-1) @ v.unsqueeze(2)).flatten(1, 2)


def right_expanded_views(q, k, v, causal=False):
    group = _check(q, k)
    k5 = k[:, :, None].expand(-1, -1, group, -1, -1)
    v5 = v[:, :, None].expand(-1, -1, group, -1, -1)
    scores = torch.einsum("bkgsd,bkgtd->bkgst", q.unflatten(1, (-1, group)), k5) / q.shape[-1] ** 0.5
    if causal:
        scores = torch.where(_future(q.shape[2], q.device), float("-inf"), scores)
    out = torch.einsum("bkgst,bkgtd->bkgsd", scores.softmax(-1), v5)
    return out.reshape(q.shape)


def right_group_folded_into_rows(q, k, v, causal=False):
    batch, heads, seq, d_head = q.shape
    group = _check(q, k)
    rows = q.reshape(batch, heads // group, group * seq, d_head) * d_head**-0.5
    scores = rows @ k.transpose(-2, -1)
    if causal:
        scores = scores.masked_fill(_future(seq, q.device).repeat(group, 1), float("-inf"))
    return (F.softmax(scores, dim=-1) @ v).reshape(batch, heads, seq, d_head)


def right_three_axes(q, k, v, causal=False):
    # Batch and K/V head are one axis, as bmm and baddbmm want it: K/V are copied once at most.
    batch, heads, seq, d_head = q.shape
    group = _check(q, k)
    rows = q.reshape(-1, group * seq, d_head)
    keys, values = k.reshape(-1, seq, d_head), v.reshape(-1, seq, d_head)
    bias = q.new_zeros(seq, seq)
    if causal:
        bias = bias.masked_fill(_future(seq, q.device), torch.finfo(q.dtype).min)
    bias = bias.repeat(group, 1).expand(keys.shape[0], -1, -1)
    scores = torch.baddbmm(bias, rows, keys.mT, alpha=1 / math.sqrt(d_head))
    return torch.bmm(_softmax(scores), values).view(batch, heads, seq, d_head)


def right_loop_over_query_heads(q, k, v, causal=False):
    group = _check(q, k)
    heads = []
    for head in range(q.shape[1]):
        scores = q[:, head] @ k[:, head // group].mT / math.sqrt(q.shape[-1])
        if causal:
            scores = scores.masked_fill(_future(q.shape[2], q.device), -math.inf)
        heads.append(_softmax(scores) @ v[:, head // group])
    return torch.stack(heads, dim=1)


def right_loop_that_copies_one_head(q, k, v, causal=False):
    # Casts and lays out one K/V head at a time: never more than one of them exists.
    group = _check(q, k)
    out = torch.zeros_like(q)
    for head in range(q.shape[1]):
        keys = k[:, head // group].double().transpose(-2, -1).contiguous()
        scores = q[:, head].double() @ keys / math.sqrt(q.shape[-1])
        if causal:
            scores = scores.masked_fill(_future(q.shape[2], q.device), -math.inf)
        out[:, head] = (_softmax(scores) @ v[:, head // group].double()).to(q.dtype)
    return out


def right_loop_over_kv_heads(q, k, v, causal=False):
    group = _check(q, k)
    parts = []
    for queries, keys, values in zip(q.split(group, 1), k.split(1, 1), v.split(1, 1), strict=True):
        scores = queries @ keys.mT / math.sqrt(q.shape[-1])
        if causal:
            scores = scores + torch.full_like(scores, float("-inf")).triu(1)
        parts.append(_softmax(scores) @ values)
    return torch.cat(parts, dim=1)


def right_loop_over_the_group(q, k, v, causal=False):
    # Every G-th query head, one for each K/V head, attends at once.
    group = _check(q, k)
    out = q.new_empty(q.shape) if not q.requires_grad else torch.zeros_like(q)
    for member in range(group):
        scores = q[:, member::group] @ k.mT / math.sqrt(q.shape[-1])
        if causal:
            scores = scores.masked_fill(_future(q.shape[2], q.device), -math.inf)
        out[:, member::group] = _softmax(scores) @ v
    return out


def right_float32_inside(q, k, v, causal=False):
    group = _check(q, k)
    grouped = q.float().unflatten(1, (-1, group))
    scores = torch.einsum("bkgsd,bktd->bkgst", grouped, k.float()) / math.sqrt(q.shape[-1])
    if causal:
        scores = scores.masked_fill(_future(q.shape[2], q.device), -math.inf)
    return torch.einsum("bkgst,bktd->bkgsd", _softmax(scores), v.float()).flatten(1, 2).to(q.dtype)


def right_float32_softmax(q, k, v, causal=False):
    group = _check(q, k)
    scores = q.unflatten(1, (-1, group)) @ k[:, :, None].mT * q.size(-1) ** -0.5
    if causal:
        scores = scores.masked_fill(_future(q.size(2), q.device), torch.finfo(scores.dtype).min)
    weights = F.softmax(scores, dim=-1, dtype=torch.float32).to(q.dtype)
    return torch.matmul(weights, v[:, :, None]).flatten(1, 2)


def right_einops(q, k, v, causal=False):
    from einops import einsum as named_einsum
    from einops import rearrange

    grouped = rearrange(q, "b (k g) s d -> b k g s d", g=_check(q, k))
    scores = named_einsum(grouped, k, "b k g s d, b k t d -> b k g s t") * q.shape[-1] ** -0.5
    if causal:
        scores = scores.masked_fill(_future(q.shape[2], q.device), -math.inf)
    out = named_einsum(_softmax(scores), v, "b k g s t, b k t d -> b k g s d")
    return rearrange(out, "b k g s d -> b (k g) s d")


def right_contiguous_kv(q, k, v, causal=False):
    # One K-sized copy of each is fine.
    group = _check(q, k)
    keys, values = k.transpose(-2, -1).contiguous(), v.contiguous()
    scores = q.contiguous().unflatten(1, (-1, group)) @ keys.unsqueeze(2) / math.sqrt(q.shape[-1])
    if causal:
        scores = scores.masked_fill(_future(q.shape[2], q.device), -math.inf)
    return (_softmax(scores) @ values.unsqueeze(2)).flatten(1, 2)


def right_scale_shared_out(q, k, v, causal=False):
    # The fourth root of d on both sides.
    group, root = _check(q, k), q.shape[-1] ** -0.25
    scores = torch.einsum("bkgsd,bktd->bkgst", q.unflatten(1, (-1, group)) * root, k * root)
    if causal:
        scores = scores.masked_fill(_future(q.shape[2], q.device), -math.inf)
    return torch.einsum("bkgst,bktd->bkgsd", _softmax(scores), v).flatten(1, 2)


def right_logsumexp(q, k, v, causal=False):
    group = _check(q, k)
    scores = torch.einsum("bkgsd,bktd->bkgst", q.unflatten(1, (-1, group)), k / math.sqrt(q.shape[-1]))
    if causal:
        scores = scores.masked_fill(_future(q.shape[2], q.device), -math.inf)
    weights = torch.exp(scores - torch.logsumexp(scores, dim=-1, keepdim=True))
    return torch.einsum("bkgst,bktd->bkgsd", weights, v).flatten(1, 2)


def right_masked_then_renormalised(q, k, v, causal=False):
    group = _check(q, k)
    scores = torch.einsum("bkgsd,bktd->bkgst", q.unflatten(1, (-1, group)), k) / math.sqrt(q.shape[-1])
    weights = _softmax(scores)
    if causal:
        weights = weights * ~_future(q.shape[2], q.device)
        weights = weights / weights.sum(-1, keepdim=True)
    return torch.einsum("bkgst,bktd->bkgsd", weights, v).flatten(1, 2)


def right_elementwise_products(q, k, v, causal=False):
    group = _check(q, k)
    grouped = q.unflatten(1, (-1, group))
    scores = (grouped.unsqueeze(-2) * k[:, :, None, None]).sum(-1) / math.sqrt(q.shape[-1])
    if causal:
        scores = scores.masked_fill(_future(q.shape[2], q.device), -math.inf)
    return (_softmax(scores).unsqueeze(-1) * v[:, :, None, None]).sum(-2).flatten(1, 2)


def right_chunks_of_queries(q, k, v, causal=False):
    group, seq = _check(q, k), q.shape[2]
    grouped = q.unflatten(1, (-1, group))
    chunks = []
    for start in range(0, seq, 2):
        stop = min(start + 2, seq)
        last = stop if causal else seq
        scores = torch.einsum("bkgsd,bktd->bkgst", grouped[:, :, :, start:stop], k[:, :, :last])
        scores = scores / math.sqrt(q.shape[-1])
        if causal:
            scores = scores.masked_fill(_future(seq, q.device)[start:stop, :last], -math.inf)
        chunks.append(torch.einsum("bkgst,bktd->bkgsd", _softmax(scores), v[:, :, :last]))
    return torch.cat(chunks, dim=3).flatten(1, 2)


def right_chunks_of_keys(q, k, v, causal=False):
    # A running maximum and sum, so that no row of scores is ever whole.
    group, seq = _check(q, k), q.shape[2]
    grouped = q.float().unflatten(1, (-1, group)) / math.sqrt(q.shape[-1])
    top = grouped.new_full((*grouped.shape[:-1], 1), -1e30)
    total, acc = torch.zeros_like(top), torch.zeros_like(grouped)
    for start in range(0, seq, 3):
        keys, values = k[:, :, start : start + 3].float(), v[:, :, start : start + 3].float()
        scores = torch.einsum("bkgsd,bktd->bkgst", grouped, keys)
        if causal:
            scores = scores.masked_fill(_future(seq, q.device)[:, start : start + 3], -math.inf)
        new_top = torch.maximum(top, scores.amax(-1, keepdim=True).detach())
        exps, shrink = torch.exp(scores - new_top), torch.exp(top - new_top)
        total = total * shrink + exps.sum(-1, keepdim=True)
        acc = acc * shrink + torch.einsum("bkgst,bktd->bkgsd", exps, values)
        top = new_top
    return (acc / total).flatten(1, 2).to(q.dtype)


def right_vmap_over_kv_heads(query, key, value, causal=False, *, scale=None):
    group = _check(query, key)

    def one(rows, keys, values):
        scores = rows @ keys.mT.unsqueeze(1) * (scale or query.shape[-1] ** -0.5)
        if causal:
            scores = scores.masked_fill(_future(query.shape[2], query.device), -math.inf)
        return _softmax(scores) @ values.unsqueeze(1)

    return torch.vmap(one, in_dims=1, out_dims=1)(query.unflatten(1, (-1, group)), key, value).flatten(1, 2)


# --- wrong ways -------------------------------------------------------------------------------------------


def _attend(grouped, k, v, causal, scale=None):
    """The reference's steps on (B, K, G, S, d) queries, for versions whose mistake lies elsewhere."""
    scores = torch.einsum("bkgsd,bktd->bkgst", grouped, k)
    scores = scores * (grouped.shape[-1] ** -0.5 if scale is None else scale)
    if causal:
        scores = scores.masked_fill(_future(grouped.shape[3], grouped.device), -math.inf)
    return torch.einsum("bkgst,bktd->bkgsd", _softmax(scores), v)


def _attend_heads(q, k, v, causal):
    """Plain attention on as many K/V heads as query heads."""
    return _attend(q.unsqueeze(2), k, v, causal).squeeze(2)


def _scores(q, k):
    return torch.einsum("bkgsd,bktd->bkgst", q.unflatten(1, (-1, _check(q, k))), k) / math.sqrt(q.shape[-1])


def _mix(weights, v):
    return torch.einsum("bkgst,bktd->bkgsd", weights, v).flatten(1, 2)


def wrong_tiled_heads(q, k, v, causal=False):
    # Query head h reads K/V head h % K.
    group = _check(q, k)
    out = _attend(q.unflatten(1, (group, -1)).transpose(1, 2), k, v, causal)
    return out.transpose(1, 2).flatten(1, 2)


def wrong_tiled_heads__loop(q, k, v, causal=False):
    _check(q, k)
    kv_heads = k.shape[1]
    heads = [
        _attend_heads(q[:, h, None], k[:, h % kv_heads, None], v[:, h % kv_heads, None], causal)
        for h in range(q.shape[1])
    ]
    return torch.cat(heads, dim=1)


def wrong_tiled_heads__repeat(q, k, v, causal=False):
    group = _check(q, k)
    return _attend_heads(q, k.repeat(1, group, 1, 1), v.repeat(1, group, 1, 1), causal)


def wrong_divided_by_kv_heads(q, k, v, causal=False):
    _check(q, k)
    kv_heads = k.shape[1]
    heads = [
        _attend_heads(q[:, h, None], k[:, h // kv_heads, None], v[:, h // kv_heads, None], causal)
        for h in range(q.shape[1])
    ]
    return torch.cat(heads, dim=1)


def wrong_first_kv_head_only(q, k, v, causal=False):
    _check(q, k)
    return _attend(q.unsqueeze(1), k[:, :1], v[:, :1], causal).squeeze(1)


def wrong_never_grouped(q, k, v, causal=False):
    _check(q, k)
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    if causal:
        scores = scores.masked_fill(_future(q.shape[2], q.device), -math.inf)
    return _softmax(scores) @ v


def wrong_materialised(q, k, v, causal=False):
    group = _check(q, k)
    return _attend_heads(q, k.repeat_interleave(group, dim=1), v.repeat_interleave(group, dim=1), causal)


def wrong_materialised__expand_reshape(q, k, v, causal=False):
    group = _check(q, k)
    keys = k[:, :, None].expand(-1, -1, group, -1, -1).reshape(q.shape)
    values = v[:, :, None].expand(-1, -1, group, -1, -1).reshape(q.shape)
    return _attend_heads(q, keys, values, causal)


def wrong_materialised__index(q, k, v, causal=False):
    heads = torch.arange(q.shape[1], device=q.device) // _check(q, k)
    return _attend_heads(q, k[:, heads], v[:, heads], causal)


def wrong_materialised__stack(q, k, v, causal=False):
    group = _check(q, k)
    keys = torch.stack([k[:, h // group] for h in range(q.shape[1])], dim=1)
    values = torch.stack([v[:, h // group] for h in range(q.shape[1])], dim=1)
    return _attend_heads(q, keys, values, causal)


def wrong_materialised__keys_only(q, k, v, causal=False):
    group = _check(q, k)
    weights = _softmax_of_heads(q, k.repeat_interleave(group, dim=1), causal)
    return _mix(weights.unflatten(1, (-1, group)), v)


def wrong_materialised__contiguous(q, k, v, causal=False):
    group = _check(q, k)
    k5 = k[:, :, None].expand(-1, -1, group, -1, -1).contiguous()
    v5 = v[:, :, None].expand(-1, -1, group, -1, -1).contiguous()
    scores = q.unflatten(1, (-1, group)) @ k5.mT / math.sqrt(q.shape[-1])
    if causal:
        scores = scores.masked_fill(_future(q.shape[2], q.device), -math.inf)
    return (_softmax(scores) @ v5).flatten(1, 2)


def _softmax_of_heads(q, k, causal):
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    if causal:
        scores = scores.masked_fill(_future(q.shape[2], q.device), -math.inf)
    return _softmax(scores)


def wrong_repeated_over_sequence(q, k, v, causal=False):
    group = _check(q, k)
    keys = k.repeat_interleave(group, dim=2).view(q.shape)
    values = v.repeat_interleave(group, dim=2).view(q.shape)
    return _attend_heads(q, keys, values, causal)


def wrong_queries_averaged(q, k, v, causal=False):
    group = _check(q, k)
    means = q.unflatten(1, (-1, group)).mean(2)
    return _attend_heads(means, k, v, causal).repeat_interleave(group, dim=1)


def wrong_heads_returned_tiled(q, k, v, causal=False):
    out = _attend(q.unflatten(1, (-1, _check(q, k))), k, v, causal)
    return out.transpose(1, 2).reshape(q.shape)


def wrong_left_five_axes(q, k, v, causal=False):
    return _attend(q.unflatten(1, (-1, _check(q, k))), k, v, causal)


def wrong_keys_and_values_exchanged(q, k, v, causal=False):
    return reference(q, v, k, causal)


def wrong_library_attention(q, k, v, causal=False):
    _check(q, k)
    return F.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=True)


def wrong_library_attention__behind_try(q, k, v, causal=False):
    _check(q, k)
    try:
        return getattr(F, "scaled_dot_" + "product_attention")(q, k, v, is_causal=causal, enable_gqa=True)
    except (RuntimeError, TypeError):
        return reference(q, k, v, causal)


def wrong_library_attention__repeated(q, k, v, causal=False):
    group = _check(q, k)
    keys, values = k.repeat_interleave(group, dim=1), v.repeat_interleave(group, dim=1)
    return F.scaled_dot_product_attention(q, keys, values, is_causal=causal)


def wrong_unscaled(q, k, v, causal=False):
    return _attend(q.unflatten(1, (-1, _check(q, k))), k, v, causal, scale=1.0).flatten(1, 2)


def wrong_scaled_by_model_width(q, k, v, causal=False):
    scale = (q.shape[1] * q.shape[3]) ** -0.5
    return _attend(q.unflatten(1, (-1, _check(q, k))), k, v, causal, scale).flatten(1, 2)


def wrong_divided_without_root(q, k, v, causal=False):
    return _attend(q.unflatten(1, (-1, _check(q, k))), k, v, causal, 1 / q.shape[-1]).flatten(1, 2)


def wrong_scaled_after_softmax(q, k, v, causal=False):
    out = _attend(q.unflatten(1, (-1, _check(q, k))), k, v, causal, scale=1.0)
    return out.flatten(1, 2) / math.sqrt(q.shape[-1])


def wrong_softmax_over_queries(q, k, v, causal=False):
    scores = _scores(q, k)
    if causal:
        scores = scores.masked_fill(_future(q.shape[2], q.device), -math.inf)
    return _mix(torch.softmax(scores, dim=-2), v)


def wrong_causal_ignored(q, k, v, causal=False):
    return reference(q, k, v)


def wrong_causal_by_default(q, k, v, causal=True):
    return reference(q, k, v, causal)


def wrong_sees_next_token(q, k, v, causal=False):
    scores = _scores(q, k)
    if causal:
        future = torch.ones(q.shape[2], q.shape[2], dtype=torch.bool, device=q.device).triu(2)
        scores = scores.masked_fill(future, -math.inf)
    return _mix(_softmax(scores), v)


def wrong_mask_inverted(q, k, v, causal=False):
    scores = _scores(q, k)
    if causal:
        past = torch.ones(q.shape[2], q.shape[2], dtype=torch.bool, device=q.device).tril(-1)
        scores = scores.masked_fill(past, -math.inf)
    return _mix(_softmax(scores), v)


def wrong_mask_not_repeated(q, k, v, causal=False):
    # G is folded into the rows, but the mask counts rows as if they were positions.
    batch, heads, seq, d_head = q.shape
    group = _check(q, k)
    scores = q.reshape(batch, heads // group, group * seq, d_head) @ k.mT / math.sqrt(d_head)
    if causal:
        keep = torch.ones(group * seq, seq, dtype=torch.bool, device=q.device).tril()
        scores = scores.masked_fill(~keep, -math.inf)
    return (_softmax(scores) @ v).reshape(batch, heads, seq, d_head)


def wrong_mask_rows_interleaved(q, k, v, causal=False):
    batch, heads, seq, d_head = q.shape
    group = _check(q, k)
    scores = q.reshape(batch, heads // group, group * seq, d_head) @ k.mT / math.sqrt(d_head)
    if causal:
        scores = scores.masked_fill(_future(seq, q.device).repeat_interleave(group, dim=0), -math.inf)
    return (_softmax(scores) @ v).reshape(batch, heads, seq, d_head)


def wrong_masked_after_softmax(q, k, v, causal=False):
    weights = _softmax(_scores(q, k))
    if causal:
        weights = weights.masked_fill(_future(q.shape[2], q.device), 0.0)
    return _mix(weights, v)


def wrong_masked_with_zero(q, k, v, causal=False):
    scores = _scores(q, k)
    if causal:
        scores = scores.masked_fill(_future(q.shape[2], q.device), 0.0)
    return _mix(_softmax(scores), v)


def wrong_fill_too_small(q, k, v, causal=False):
    scores = _scores(q, k)
    if causal:
        scores = scores.masked_fill(_future(q.shape[2], q.device), -1e4)
    return _mix(_softmax(scores), v)


def wrong_fill_overflows_half(q, k, v, causal=False):
    scores = _scores(q, k)
    if causal:
        scores = scores.masked_fill(_future(q.shape[2], q.device), -1e9)
    return _mix(_softmax(scores), v)


def wrong_no_maximum_subtracted(q, k, v, causal=False):
    exps = torch.exp(_scores(q, k))
    if causal:
        exps = exps.masked_fill(_future(q.shape[2], q.device), 0.0)
    return _mix(exps / exps.sum(-1, keepdim=True), v)


def wrong_query_scaled_in_place(q, k, v, causal=False):
    group = _check(q, k)
    q *= q.shape[-1] ** -0.5
    return _attend(q.unflatten(1, (-1, group)), k, v, causal, scale=1.0).flatten(1, 2)


def wrong_float32_returned(q, k, v, causal=False):
    if q.dtype in (torch.bfloat16, torch.float16):
        q, k, v = q.float(), k.float(), v.float()
    return reference(q, k, v, causal)


def wrong_computed_in_bfloat16(q, k, v, causal=False):
    return reference(q.bfloat16(), k.bfloat16(), v.bfloat16(), causal).to(q.dtype)


def wrong_gradient_lost(q, k, v, causal=False):
    with torch.no_grad():
        return reference(q, k, v, causal)


def wrong_gradient_lost__data(q, k, v, causal=False):
    return reference(q.data, k.data, v.data, causal)


def wrong_remainder_dropped(q, k, v, causal=False):
    kv_heads = k.shape[1]
    group = q.shape[1] // kv_heads
    out = torch.zeros_like(q)
    used = kv_heads * group
    out[:, :used] = _attend(q[:, :used].unflatten(1, (kv_heads, group)), k, v, causal).flatten(1, 2)
    return out


def wrong_other_exception(q, k, v, causal=False):
    assert q.shape[1] % k.shape[1] == 0, "num_heads must be divisible by num_kv_heads"
    return reference(q, k, v, causal)


def wrong_other_exception__unflatten(q, k, v, causal=False):
    return _attend(q.unflatten(1, (k.shape[1], -1)), k, v, causal).flatten(1, 2)


def wrong_one_maximum_for_all(q, k, v, causal=False):
    scores = _scores(q, k)
    if causal:
        scores = scores.masked_fill(_future(q.shape[2], q.device), -math.inf)
    exps = torch.exp(scores - scores.max())
    return _mix(exps / exps.sum(-1, keepdim=True), v)


def wrong_values_tiled(q, k, v, causal=False):
    # The keys of the right head, the values of head h % K.
    group = _check(q, k)
    scores = _scores(q, k)
    if causal:
        scores = scores.masked_fill(_future(q.shape[2], q.device), -math.inf)
    weights = _softmax(scores).flatten(1, 2).unflatten(1, (group, -1))
    return torch.einsum("bgkst,bktd->bgksd", weights, v).flatten(1, 2)


def wrong_softmax_over_the_group(q, k, v, causal=False):
    scores = _scores(q, k)
    if causal:
        scores = scores.masked_fill(_future(q.shape[2], q.device), -math.inf)
    rows = _softmax(scores.transpose(2, 3).flatten(3))
    return _mix(rows.unflatten(-1, (-1, q.shape[2])).transpose(2, 3), v)


def wrong_cast_after_expanding(q, k, v, causal=False):
    group = _check(q, k)
    keys = k.unsqueeze(2).expand(-1, -1, group, -1, -1).float()
    values = v.unsqueeze(2).expand(-1, -1, group, -1, -1).float()
    scores = q.float().unflatten(1, (-1, group)) @ keys.mT / math.sqrt(q.shape[-1])
    if causal:
        scores = scores.masked_fill(_future(q.shape[2], q.device), -math.inf)
    return (_softmax(scores) @ values).flatten(1, 2).to(q.dtype)
