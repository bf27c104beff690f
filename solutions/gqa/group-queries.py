"""Versions of group_queries: the reference, other right ways and known wrong ones."""

import torch


def _group_size(num_heads, num_kv_heads):
    if num_heads % num_kv_heads:
        raise ValueError(f"{num_heads} query heads cannot be shared out over {num_kv_heads} K/V heads")
    return num_heads // num_kv_heads


def reference(q, num_kv_heads):
    return q.unflatten(1, (num_kv_heads, _group_size(q.shape[1], num_kv_heads)))


def right_view(q, num_kv_heads):
    batch, heads, seq, d_head = q.shape
    if heads % num_kv_heads != 0:
        raise ValueError("num_heads must be divisible by num_kv_heads")
    return q.view(batch, num_kv_heads, heads // num_kv_heads, seq, d_head)


def right_reshape_infers_the_group(x, kv_heads, *, check=True):
    if check:
        _group_size(x.size(1), kv_heads)
    return x.reshape(x.size(0), kv_heads, -1, *x.shape[2:])


def right_einops(q, num_kv_heads):
    from einops import rearrange

    _group_size(q.shape[1], num_kv_heads)
    return rearrange(q, "b (k g) s d -> b k g s d", k=num_kv_heads)


def right_as_strided(q, num_kv_heads):
    batch, heads, seq, d_head = q.shape
    group = _group_size(heads, num_kv_heads)
    s0, s1, s2, s3 = q.stride()
    shape, stride = (batch, num_kv_heads, group, seq, d_head), (s0, group * s1, s1, s2, s3)
    return torch.as_strided(q, shape, stride, q.storage_offset())


def right_unfold(q, num_kv_heads):
    # A window of G heads that steps by G heads; unfold puts the window last.
    group = _group_size(q.shape[1], num_kv_heads)
    return q.unfold(1, group, group).movedim(-1, 2)


def right_heads_first(q, num_kv_heads):
    group = _group_size(q.shape[1], num_kv_heads)
    heads_first = q.permute(1, 0, 2, 3)
    return heads_first.unflatten(0, (num_kv_heads, group)).permute(2, 0, 1, 3, 4)


class _GroupQueries:
    """A callable instance instead of a function."""

    def __call__(self, q, num_kv_heads):
        return torch.unflatten(q, 1, (num_kv_heads, _group_size(q.shape[1], num_kv_heads)))


right_callable_instance = _GroupQueries()

right_lambda = lambda q, num_kv_heads: q.unflatten(1, (-1, _group_size(q.shape[1], num_kv_heads)))  # noqa: E731


def wrong_tiled(q, num_kv_heads):
    # Reads head h as g * K + k: query head h lands beside K/V head h % K.
    group = _group_size(q.shape[1], num_kv_heads)
    return q.unflatten(1, (group, num_kv_heads)).transpose(1, 2)


def wrong_tiled__where_both_fit(q, num_kv_heads):
    # Right wherever the shape would tell; as many heads in a group as groups, and nothing does.
    grouped = reference(q, num_kv_heads)
    return grouped.transpose(1, 2) if grouped.shape[1] == grouped.shape[2] else grouped


def wrong_tiled__strided_slices(q, num_kv_heads):
    group = _group_size(q.shape[1], num_kv_heads)
    s0, s1, s2, s3 = q.stride()
    shape = (q.shape[0], num_kv_heads, group, *q.shape[2:])
    return q.as_strided(shape, (s0, s1, num_kv_heads * s1, s2, s3))


def wrong_count_read_as_group_size(q, num_kv_heads):
    _group_size(q.shape[1], num_kv_heads)
    return q.unflatten(1, (-1, num_kv_heads))


def wrong_count_read_as_group_size__view(q, num_kv_heads):
    batch, heads, seq, d_head = q.shape
    group = _group_size(heads, num_kv_heads)
    return q.view(batch, group, num_kv_heads, seq, d_head)


def wrong_split_the_sequence(q, num_kv_heads):
    # Cuts (H, S) as if the memory were (K, S, G): heads receive each other's tokens.
    batch, heads, seq, d_head = q.shape
    group = _group_size(heads, num_kv_heads)
    return q.contiguous().view(batch, num_kv_heads, seq, group, d_head).transpose(2, 3)


def wrong_group_after_sequence(q, num_kv_heads):
    group = _group_size(q.shape[1], num_kv_heads)
    return q.unflatten(1, (num_kv_heads, group)).transpose(2, 3)


def wrong_kept_four_axes(q, num_kv_heads):
    # Folds the group into the query axis, which is the next stage's business.
    group = _group_size(q.shape[1], num_kv_heads)
    return q.reshape(q.shape[0], num_kv_heads, group * q.shape[2], q.shape[3])


def wrong_copied(q, num_kv_heads):
    group = _group_size(q.shape[1], num_kv_heads)
    return q.contiguous().view(q.shape[0], num_kv_heads, group, *q.shape[2:])


def wrong_copied__stack(q, num_kv_heads):
    group = _group_size(q.shape[1], num_kv_heads)
    return torch.stack(q.split(group, dim=1), dim=1)


def wrong_copied__index(q, num_kv_heads):
    group = _group_size(q.shape[1], num_kv_heads)
    heads = torch.arange(q.shape[1], device=q.device).view(num_kv_heads, group)
    return q[:, heads]


def wrong_copied__clone(q, num_kv_heads):
    return reference(q, num_kv_heads).clone(memory_format=torch.contiguous_format)


def wrong_strides_assumed(q, num_kv_heads):
    batch, heads, seq, d_head = q.shape
    group = _group_size(heads, num_kv_heads)
    block = seq * d_head
    shape, stride = (
        (batch, num_kv_heads, group, seq, d_head),
        (heads * block, group * block, block, d_head, 1),
    )
    return q.as_strided(shape, stride)


def wrong_averaged_the_group(q, num_kv_heads):
    grouped = reference(q, num_kv_heads)
    return grouped.mean(2, keepdim=True).expand_as(grouped)


def wrong_remainder_dropped(q, num_kv_heads):
    group = q.shape[1] // num_kv_heads
    return q[:, : num_kv_heads * group].unflatten(1, (num_kv_heads, group))


def wrong_remainder_dropped__more_groups(q, num_kv_heads):
    # Six heads for four K/V heads become six groups of one.
    return q.unflatten(1, (-1, q.shape[1] // num_kv_heads))


def wrong_other_exception(q, num_kv_heads):
    return q.unflatten(1, (num_kv_heads, q.shape[1] // num_kv_heads))


def wrong_other_exception__assert(q, num_kv_heads):
    assert q.shape[1] % num_kv_heads == 0, "num_heads must be divisible by num_kv_heads"
    return q.unflatten(1, (num_kv_heads, -1))


def wrong_detached(q, num_kv_heads):
    return reference(q.detach(), num_kv_heads)


def wrong_detached__data(q, num_kv_heads):
    return reference(q.data, num_kv_heads)
