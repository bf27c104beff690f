"""Versions of gqa_split: the reference, other right ways and known wrong ones.

Queries have H heads, keys and values K; all heads have the same width d = q's width // H. Nothing is repeated
or copied.
"""

from typing import NamedTuple

import torch


def _width(q, num_heads, num_kv_heads):
    """d_head, or ValueError."""
    if q.shape[-1] % num_heads:
        raise ValueError(f"query width {q.shape[-1]} is not divisible by num_heads {num_heads}")
    if num_heads % num_kv_heads:
        raise ValueError(f"num_heads {num_heads} is not divisible by num_kv_heads {num_kv_heads}")
    return q.shape[-1] // num_heads


def reference(q, k, v, num_heads, num_kv_heads):
    width = q.shape[-1]
    if width % num_heads:
        raise ValueError(f"query width {width} is not divisible by num_heads {num_heads}")
    if num_heads % num_kv_heads:
        raise ValueError(f"num_heads {num_heads} is not divisible by num_kv_heads {num_kv_heads}")
    d_head = width // num_heads
    q = q.unflatten(-1, (num_heads, d_head)).transpose(1, 2)
    k = k.unflatten(-1, (num_kv_heads, d_head)).transpose(1, 2)
    v = v.unflatten(-1, (num_kv_heads, d_head)).transpose(1, 2)
    return q, k, v


# --- right ------------------------------------------------------------------------------------------------


def right_view(q, k, v, num_heads, num_kv_heads):
    batch, seq, _ = q.shape
    width = _width(q, num_heads, num_kv_heads)
    q = q.view(batch, seq, num_heads, width).transpose(1, 2)
    k = k.view(batch, seq, num_kv_heads, width).transpose(1, 2)
    v = v.view(batch, seq, num_kv_heads, width).transpose(1, 2)
    return q, k, v


def right_loop(q, k, v, num_heads, num_kv_heads):
    # A list where a tuple was asked.
    width = _width(q, num_heads, num_kv_heads)
    return [t.reshape(*t.shape[:-1], -1, width).permute(0, 2, 1, 3) for t in (q, k, v)]


def right_einops(q, k, v, num_heads, num_kv_heads):
    from einops import rearrange

    _width(q, num_heads, num_kv_heads)
    pattern = "b s (h d) -> b h s d"
    heads = (num_heads, num_kv_heads, num_kv_heads)
    return tuple(rearrange(t, pattern, h=h) for t, h in zip((q, k, v), heads))


class Heads(NamedTuple):
    """Queries, keys, values."""

    q: torch.Tensor
    k: torch.Tensor
    v: torch.Tensor


def right_named(queries, keys, values, num_heads, num_kv_heads):
    width = _width(queries, num_heads, num_kv_heads)
    return Heads(*(t.unfold(-1, width, width).transpose(1, 2) for t in (queries, keys, values)))


def right_as_strided(q, k, v, *, num_heads, num_kv_heads):
    width = _width(q, num_heads, num_kv_heads)

    def split(t, heads):
        s0, s1, s2 = t.stride()
        return t.as_strided((t.shape[0], heads, t.shape[1], width), (s0, width * s2, s1, s2))

    return split(q, num_heads), split(k, num_kv_heads), split(v, num_kv_heads)


class GroupError(ValueError):
    """A more telling ValueError."""


def right_through_groups(q, k, v, num_heads, num_kv_heads):
    # q by way of (B, S, K, G, d): the same view once K and G are one axis again.
    group, rest = divmod(num_heads, num_kv_heads)
    if rest or q.shape[-1] % num_heads:
        raise GroupError(num_heads, num_kv_heads)
    grouped = q.unflatten(-1, (num_kv_heads, group, -1))
    q = grouped.flatten(2, 3).swapaxes(1, 2)
    k, v = (t.unflatten(-1, (num_kv_heads, -1)).swapaxes(1, 2) for t in (k, v))
    return q, k, v


def right_movedim(q, k, v, num_heads, num_kv_heads):
    _width(q, num_heads, num_kv_heads)
    out = [q.unflatten(2, (num_heads, -1)).movedim(2, 1)]
    for t in (k, v):
        out.append(t.unflatten(2, (num_kv_heads, -1)).movedim(2, 1))
    return tuple(out)


# --- wrong: other numbers ---------------------------------------------------------------------------------


def _split(t, heads):
    """One tensor, split as it should be."""
    return t.unflatten(-1, (heads, t.shape[-1] // heads)).transpose(1, 2)


def wrong_query_heads_for_kv(q, k, v, num_heads, num_kv_heads):
    _width(q, num_heads, num_kv_heads)
    return tuple(t.unflatten(-1, (num_heads, -1)).transpose(1, 2) for t in (q, k, v))


def wrong_query_heads_for_kv__view(q, k, v, num_heads, num_kv_heads):
    batch, seq, _ = q.shape
    _width(q, num_heads, num_kv_heads)
    return [t.view(batch, seq, num_heads, -1).transpose(1, 2) for t in (q, k, v)]


def wrong_query_heads_for_kv__width(q, k, v, num_heads, num_kv_heads):
    batch, seq, _ = q.shape
    width = _width(q, num_heads, num_kv_heads)
    return [t.view(batch, seq, num_heads, width).transpose(1, 2) for t in (q, k, v)]


def wrong_kv_heads_for_query(q, k, v, num_heads, num_kv_heads):
    _width(q, num_heads, num_kv_heads)
    return tuple(_split(t, num_kv_heads) for t in (q, k, v))


def wrong_kv_heads_as_group_size(q, k, v, num_heads, num_kv_heads):
    _width(q, num_heads, num_kv_heads)
    groups = num_heads // num_kv_heads
    return (_split(q, num_heads), *(t.unflatten(-1, (groups, -1)).transpose(1, 2) for t in (k, v)))


def wrong_kv_repeated(q, k, v, num_heads, num_kv_heads):
    _width(q, num_heads, num_kv_heads)
    group = num_heads // num_kv_heads
    k, v = (_split(t, num_kv_heads).repeat_interleave(group, dim=1) for t in (k, v))
    return _split(q, num_heads), k, v


def wrong_kv_repeated__expand(q, k, v, num_heads, num_kv_heads):
    _width(q, num_heads, num_kv_heads)
    group = num_heads // num_kv_heads
    k, v = (_split(t, num_kv_heads).unsqueeze(2).expand(-1, -1, group, -1, -1).flatten(1, 2) for t in (k, v))
    return _split(q, num_heads), k, v


def wrong_query_grouped(q, k, v, num_heads, num_kv_heads):
    _width(q, num_heads, num_kv_heads)
    grouped = _split(q, num_heads).unflatten(1, (num_kv_heads, -1))
    return grouped, _split(k, num_kv_heads), _split(v, num_kv_heads)


def wrong_keys_and_values_swapped(q, k, v, num_heads, num_kv_heads):
    _width(q, num_heads, num_kv_heads)
    return _split(q, num_heads), _split(v, num_kv_heads), _split(k, num_kv_heads)


def wrong_keys_twice(q, k, v, num_heads, num_kv_heads):
    _width(q, num_heads, num_kv_heads)
    k = _split(k, num_kv_heads)
    return _split(q, num_heads), k, k


def wrong_viewed_straight(q, k, v, num_heads, num_kv_heads):
    batch, seq, _ = q.shape
    width = _width(q, num_heads, num_kv_heads)
    return tuple(t.reshape(batch, -1, seq, width) for t in (q, k, v))


def wrong_viewed_straight__view(q, k, v, num_heads, num_kv_heads):
    batch, seq, _ = q.shape
    width = _width(q, num_heads, num_kv_heads)
    return tuple(t.view(batch, -1, seq, width) for t in (q, k, v))


def wrong_features_before_heads(q, k, v, num_heads, num_kv_heads):
    width = _width(q, num_heads, num_kv_heads)
    return tuple(t.unflatten(-1, (width, -1)).permute(0, 3, 1, 2) for t in (q, k, v))


def wrong_left_token_first(q, k, v, num_heads, num_kv_heads):
    width = _width(q, num_heads, num_kv_heads)
    return tuple(t.unflatten(-1, (-1, width)) for t in (q, k, v))


def wrong_strides_assumed(q, k, v, num_heads, num_kv_heads):
    batch, seq, _ = q.shape
    width = _width(q, num_heads, num_kv_heads)
    out = []
    for t in (q, k, v):
        row = t.shape[-1]
        out.append(t.as_strided((batch, row // width, seq, width), (seq * row, width, row, 1)))
    return out


# --- wrong: right numbers, other memory -------------------------------------------------------------------


def wrong_made_contiguous(q, k, v, num_heads, num_kv_heads):
    return tuple(t.contiguous() for t in reference(q, k, v, num_heads, num_kv_heads))


def wrong_made_contiguous__stack(q, k, v, num_heads, num_kv_heads):
    width = _width(q, num_heads, num_kv_heads)
    return tuple(torch.stack(t.split(width, dim=-1), dim=1) for t in (q, k, v))


def wrong_kv_copied(q, k, v, num_heads, num_kv_heads):
    q, k, v = reference(q, k, v, num_heads, num_kv_heads)
    return q, k.contiguous(), v.contiguous()


def wrong_kv_copied__clone(q, k, v, num_heads, num_kv_heads):
    q, k, v = reference(q, k, v, num_heads, num_kv_heads)
    return q, k.clone(), v.clone()


def wrong_kv_copied__values_only(q, k, v, num_heads, num_kv_heads):
    q, k, v = reference(q, k, v, num_heads, num_kv_heads)
    return q, k, v.contiguous()


def wrong_kv_copied__indexing(q, k, v, num_heads, num_kv_heads):
    # Every group's own head, picked with a tensor of indices.
    q, k, v = reference(q, k, v, num_heads, num_kv_heads)
    heads = torch.arange(num_kv_heads, device=q.device)
    return q, k[:, heads], v[:, heads]


def wrong_copied_with_the_strides_of_a_view(q, k, v, num_heads, num_kv_heads):
    return reference(q.clone(), k.clone(), v.clone(), num_heads, num_kv_heads)


def wrong_copied_when_strided(q, k, v, num_heads, num_kv_heads):
    return reference(q.contiguous(), k.contiguous(), v.contiguous(), num_heads, num_kv_heads)


def wrong_copied_when_strided__flattened(q, k, v, num_heads, num_kv_heads):
    batch, seq, _ = q.shape
    width = _width(q, num_heads, num_kv_heads)
    return tuple(t.reshape(-1, width).view(batch, seq, -1, width).transpose(1, 2) for t in (q, k, v))


def wrong_repeated_and_dropped(q, k, v, num_heads, num_kv_heads):
    # Repeats k to see that the groups fit, and drops the result.
    q, k, v = reference(q, k, v, num_heads, num_kv_heads)
    full = k.repeat_interleave(num_heads // num_kv_heads, dim=1)
    assert full.shape == q.shape
    return q, k, v


# --- wrong: promises beside the numbers -------------------------------------------------------------------


def wrong_detached(q, k, v, num_heads, num_kv_heads):
    return reference(q.detach(), k.detach(), v.detach(), num_heads, num_kv_heads)


def wrong_detached__no_grad(q, k, v, num_heads, num_kv_heads):
    with torch.no_grad():
        return reference(q, k, v, num_heads, num_kv_heads)


def wrong_kv_detached(q, k, v, num_heads, num_kv_heads):
    return reference(q, k.detach(), v.detach(), num_heads, num_kv_heads)


def wrong_kv_detached__values_only(q, k, v, num_heads, num_kv_heads):
    return reference(q, k, v.data, num_heads, num_kv_heads)


def wrong_no_value_error(q, k, v, num_heads, num_kv_heads):
    batch, seq, width = q.shape
    d_head = width // num_heads
    q = q.view(batch, seq, num_heads, d_head).transpose(1, 2)
    k = k.view(batch, seq, num_kv_heads, d_head).transpose(1, 2)
    v = v.view(batch, seq, num_kv_heads, d_head).transpose(1, 2)
    return q, k, v


def wrong_no_value_error__assert(q, k, v, num_heads, num_kv_heads):
    assert q.shape[-1] % num_heads == 0
    assert num_heads % num_kv_heads == 0
    return reference(q, k, v, num_heads, num_kv_heads)


def wrong_no_value_error__groups_checked(q, k, v, num_heads, num_kv_heads):
    if num_heads % num_kv_heads:
        raise ValueError("num_heads must be a multiple of num_kv_heads")
    return wrong_no_value_error(q, k, v, num_heads, num_kv_heads)


def wrong_group_not_checked(q, k, v, num_heads, num_kv_heads):
    if q.shape[-1] % num_heads:
        raise ValueError("the query width must be a multiple of num_heads")
    return wrong_no_value_error(q, k, v, num_heads, num_kv_heads)


def wrong_remainder_dropped(q, k, v, num_heads, num_kv_heads):
    if num_heads % num_kv_heads:
        raise ValueError("num_heads must be a multiple of num_kv_heads")
    q = q[..., : q.shape[-1] // num_heads * num_heads]
    return reference(q, k, v, num_heads, num_kv_heads)
