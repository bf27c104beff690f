"""Versions of expand_kv: the reference, other right ways and known wrong ones."""

import torch


def _group_size(num_heads, num_kv_heads):
    if num_heads % num_kv_heads:
        raise ValueError(f"{num_heads} query heads cannot be shared out over {num_kv_heads} K/V heads")
    return num_heads // num_kv_heads


def reference(k, num_heads):
    batch, kv_heads, seq, d_head = k.shape
    group = _group_size(num_heads, kv_heads)
    return k.unsqueeze(2).expand(batch, kv_heads, group, seq, d_head)


def right_keeps_other_sizes(keys, heads):
    group = _group_size(heads, keys.shape[1])
    return keys[:, :, None].expand(-1, -1, group, -1, -1)


def right_broadcast_to(k, num_heads):
    batch, kv_heads, *rest = k.shape
    return torch.broadcast_to(k[:, :, None], (batch, kv_heads, _group_size(num_heads, kv_heads), *rest))


def right_einops(k, num_heads):
    from einops import repeat

    return repeat(k, "b k s d -> b k g s d", g=_group_size(num_heads, k.shape[1]))


def right_as_strided(k, num_heads):
    batch, kv_heads, seq, d_head = k.shape
    group = _group_size(num_heads, kv_heads)
    s0, s1, s2, s3 = k.stride()
    return k.as_strided((batch, kv_heads, group, seq, d_head), (s0, s1, 0, s2, s3), k.storage_offset())


def right_group_first_then_swapped(k, num_heads):
    # A new axis before K, then swapped behind it: the same view.
    batch, kv_heads, seq, d_head = k.shape
    group = _group_size(num_heads, kv_heads)
    return k.unsqueeze(1).expand(batch, group, kv_heads, seq, d_head).transpose(1, 2)


def right_expand_in_front(k, num_heads):
    return k.expand(_group_size(num_heads, k.size(1)), *k.shape).movedim(0, 2)


def right_broadcast_tensors(k, num_heads):
    like = torch.empty(_group_size(num_heads, k.shape[1]), 1, 1, device=k.device)
    return torch.broadcast_tensors(k.unsqueeze(2), like)[0]


class _ExpandKV:
    """A classmethod as the entry."""

    @classmethod
    def expand(cls, k, num_heads, /):
        if num_heads % k.shape[1] != 0:
            raise ValueError("num_heads must be a multiple of the number of K/V heads")
        return k.unsqueeze(2).expand(*k.shape[:2], num_heads // k.shape[1], *k.shape[2:])


right_classmethod = _ExpandKV.expand


def wrong_tiled(k, num_heads):
    # Row h of the flattened (K, G) reads K/V head h % K.
    batch, kv_heads, seq, d_head = k.shape
    group = _group_size(num_heads, kv_heads)
    return k.repeat(1, group, 1, 1).view(batch, kv_heads, group, seq, d_head)


def wrong_tiled__expand_then_reshape(k, num_heads):
    batch, kv_heads, seq, d_head = k.shape
    group = _group_size(num_heads, kv_heads)
    return (
        k.unsqueeze(1)
        .expand(batch, group, kv_heads, seq, d_head)
        .reshape(batch, kv_heads, group, seq, d_head)
    )


def wrong_copied(k, num_heads):
    return k.unsqueeze(2).repeat(1, 1, _group_size(num_heads, k.shape[1]), 1, 1)


def wrong_copied__repeat_interleave(k, num_heads):
    group = _group_size(num_heads, k.shape[1])
    return k.repeat_interleave(group, dim=1).unflatten(1, (-1, group))


def wrong_copied__stack(k, num_heads):
    return torch.stack([k] * _group_size(num_heads, k.shape[1]), dim=2)


def wrong_copied__contiguous(k, num_heads):
    return reference(k, num_heads).clone(memory_format=torch.contiguous_format)


def wrong_copied__made_contiguous(k, num_heads):
    # With one head to a group and contiguous k this is a view after all.
    return reference(k, num_heads).contiguous()


def wrong_copied__index(k, num_heads):
    group = _group_size(num_heads, k.shape[1])
    return k[:, (torch.arange(num_heads, device=k.device) // group).view(-1, group)]


def wrong_expanded_a_copy(k, num_heads):
    # Stride 0 on the group, but of a contiguous copy: free only where k was contiguous already.
    return reference(k.contiguous(), num_heads)


def wrong_expanded_a_copy__clone(k, num_heads):
    return reference(k.clone(), num_heads)


def wrong_flattened(k, num_heads):
    return reference(k, num_heads).reshape(k.shape[0], num_heads, *k.shape[2:])


def wrong_flattened__repeat_interleave(k, num_heads):
    return k.repeat_interleave(_group_size(num_heads, k.shape[1]), dim=1)


def wrong_group_axis_first(k, num_heads):
    batch, kv_heads, seq, d_head = k.shape
    return k.unsqueeze(1).expand(batch, _group_size(num_heads, kv_heads), kv_heads, seq, d_head)


def wrong_group_axis_first__where_both_fit(k, num_heads):
    expanded = reference(k, num_heads)
    return expanded.transpose(1, 2) if expanded.shape[1] == expanded.shape[2] else expanded


def wrong_group_after_sequence(k, num_heads):
    group = _group_size(num_heads, k.shape[1])
    return k.unsqueeze(3).expand(-1, -1, -1, group, -1)


def wrong_expanded_to_num_heads(k, num_heads):
    _group_size(num_heads, k.shape[1])
    return k.unsqueeze(2).expand(-1, -1, num_heads, -1, -1)


def wrong_left_at_one(k, num_heads):
    _group_size(num_heads, k.shape[1])
    return k.unsqueeze(2)


def wrong_strides_assumed(k, num_heads):
    batch, kv_heads, seq, d_head = k.shape
    group = _group_size(num_heads, kv_heads)
    block = seq * d_head
    return k.as_strided((batch, kv_heads, group, seq, d_head), (kv_heads * block, block, 0, d_head, 1))


def wrong_zero_padded(k, num_heads):
    # Only the first head of each group receives the keys.
    out = k.new_zeros(*k.shape[:2], _group_size(num_heads, k.shape[1]), *k.shape[2:])
    out[:, :, 0] = k
    return out


def wrong_remainder_dropped(k, num_heads):
    return k.unsqueeze(2).expand(-1, -1, num_heads // k.shape[1], -1, -1)


def wrong_other_exception(k, num_heads):
    assert num_heads % k.shape[1] == 0
    return k.unsqueeze(2).expand(-1, -1, num_heads // k.shape[1], -1, -1)


def wrong_other_exception__viewed(k, num_heads):
    # The view of the head numbers is what fails, with a message about [7] and an "invalid" shape.
    group = torch.arange(num_heads).view(k.shape[1], -1).shape[1]
    return k.unsqueeze(2).expand(-1, -1, group, -1, -1)


def wrong_input_reshaped_in_place(k, num_heads):
    group = _group_size(num_heads, k.shape[1])
    return k.unsqueeze_(2).expand(-1, -1, group, -1, -1)


def wrong_detached(k, num_heads):
    return reference(k.detach(), num_heads)
