"""Versions of repeat_kv: the reference, other right ways and known wrong ones."""

from functools import partial

import torch


def reference(k, n_rep):
    batch, kv_heads, seq, d_head = k.shape
    shared = k.unsqueeze(2).expand(batch, kv_heads, n_rep, seq, d_head)
    return shared.reshape(batch, kv_heads * n_rep, seq, d_head)


def right_same_tensor_when_once(k, n_rep):
    if n_rep == 1:
        return k
    return k[:, :, None].expand(-1, -1, n_rep, -1, -1).flatten(1, 2)


def right_repeat_interleave(k, n_rep):
    return torch.repeat_interleave(k, n_rep, dim=1)


right_partial = partial(torch.repeat_interleave, dim=-3)


def right_repeats_tensor(k, n_rep):
    return k.repeat_interleave(torch.full((k.shape[1],), n_rep, device=k.device), dim=1)


def right_index(k, n_rep):
    heads = torch.arange(k.shape[1] * n_rep, device=k.device) // n_rep
    return k[:, heads]


def right_index_list(k, n_rep):
    return k[:, [head // n_rep for head in range(k.shape[1] * n_rep)]]


def right_index_select(k, n_rep):
    heads = torch.arange(k.shape[1], device=k.device).repeat_interleave(n_rep)
    return k.index_select(1, heads)


def right_gather(k, n_rep):
    batch, kv_heads, seq, d_head = k.shape
    heads = torch.arange(kv_heads * n_rep, device=k.device) // n_rep
    return k.gather(1, heads.view(1, -1, 1, 1).expand(batch, -1, seq, d_head))


def right_einops(k, n_rep):
    from einops import repeat

    return repeat(k, "b k s d -> b (k g) s d", g=n_rep)


def right_stack(k, n_rep):
    return torch.stack([k] * n_rep, dim=2).flatten(1, 2)


def right_cat_of_views(k, n_rep):
    return torch.cat([k[:, h // n_rep, None] for h in range(k.shape[1] * n_rep)], dim=1)


def right_repeat_on_a_new_axis(keys, times, *, axis=1):
    batch, kv_heads, seq, d_head = keys.shape
    copies = keys.unsqueeze(axis + 1).repeat(1, 1, times, 1, 1)
    return copies.view(batch, kv_heads * times, seq, d_head)


def right_repeat_the_sequence(k, n_rep):
    # Repeats the whole sequence of a head, then cuts the long sequence into n_rep heads.
    batch, kv_heads, seq, d_head = k.shape
    return k.repeat(1, 1, n_rep, 1).view(batch, kv_heads * n_rep, seq, d_head)


def right_filled_in_a_loop(k, n_rep):
    batch, kv_heads, seq, d_head = k.shape
    out = k.new_empty(batch, kv_heads * n_rep, seq, d_head)
    for head in range(kv_heads * n_rep):
        out[:, head] = k[:, head // n_rep]
    return out


def right_filled_by_broadcast(k, n_rep):
    batch, kv_heads, seq, d_head = k.shape
    out = torch.empty(batch, kv_heads, n_rep, seq, d_head, dtype=k.dtype, device=k.device)
    return out.copy_(k.unsqueeze(2)).view(batch, -1, seq, d_head)


def right_selection_matrix(k, n_rep):
    heads = torch.eye(k.shape[1], dtype=k.dtype, device=k.device).repeat_interleave(n_rep, dim=1)
    return torch.einsum("bksd,kh->bhsd", k, heads)


def right_heads_last_strides(k, n_rep):
    # One copy as well, into (B, S, H, d) memory.
    batch, kv_heads, seq, d_head = k.shape
    tokens = k.transpose(1, 2).unsqueeze(3).expand(batch, seq, kv_heads, n_rep, d_head)
    return tokens.reshape(batch, seq, kv_heads * n_rep, d_head).transpose(1, 2)


def wrong_tiled(k, n_rep):
    return k.repeat(1, n_rep, 1, 1)


def wrong_tiled__where_both_fit(k, n_rep):
    # As many repeats as heads: both orders have one shape and one stride pattern.
    return k.repeat(1, n_rep, 1, 1) if n_rep == k.shape[1] else k.repeat_interleave(n_rep, dim=1)


def wrong_tiled__cat(k, n_rep):
    return torch.cat([k] * n_rep, dim=1)


def wrong_tiled__remainder(k, n_rep):
    return k[:, torch.arange(k.shape[1] * n_rep, device=k.device) % k.shape[1]]


def wrong_tiled__sizes_exchanged(k, n_rep):
    batch, kv_heads, seq, d_head = k.shape
    return k.unsqueeze(1).expand(-1, n_rep, -1, -1, -1).reshape(batch, kv_heads * n_rep, seq, d_head)


def wrong_divided_by_kv_heads(k, n_rep):
    kv_heads = k.shape[1]
    return torch.cat([k[:, h // kv_heads, None] for h in range(kv_heads * n_rep)], dim=1)


def wrong_repeated_over_sequence(k, n_rep):
    return k.repeat_interleave(n_rep, dim=2)


def wrong_repeated_over_sequence__repeat(k, n_rep):
    # Another order along the same wrong axis.
    return k.repeat(1, 1, n_rep, 1)


def wrong_repeated_tokens(k, n_rep):
    batch, kv_heads, seq, d_head = k.shape
    return k.repeat_interleave(n_rep, dim=2).view(batch, kv_heads * n_rep, seq, d_head)


def wrong_repeated_features(k, n_rep):
    batch, kv_heads, seq, d_head = k.shape
    return k.repeat_interleave(n_rep, dim=3).view(batch, kv_heads * n_rep, seq, d_head)


def wrong_repeated_over_batch(k, n_rep):
    batch, kv_heads, seq, d_head = k.shape
    return k.repeat(n_rep, 1, 1, 1).view(batch, kv_heads * n_rep, seq, d_head)


def wrong_read_as_num_heads(k, n_rep):
    batch, kv_heads, seq, d_head = k.shape
    group = max(n_rep // kv_heads, 1)
    return k[:, :, None].expand(-1, -1, group, -1, -1).reshape(batch, kv_heads * group, seq, d_head)


def wrong_left_five_axes(k, n_rep):
    return k.unsqueeze(2).expand(-1, -1, n_rep, -1, -1)


def wrong_never_repeated(k, n_rep):
    return k


def wrong_copied_twice(k, n_rep):
    return k.repeat_interleave(n_rep, dim=1).clone()


def wrong_copied_twice__contiguous_first(k, n_rep):
    return torch.cat([head.contiguous() for head in reference(k, n_rep).split(1, dim=1)], dim=1)


def wrong_copied_twice__stack_then_reshape(k, n_rep):
    # The first stack is a copy, and merging axes that are not neighbours is another.
    batch, kv_heads, seq, d_head = k.shape
    return (
        torch.stack([k] * n_rep, dim=0).permute(1, 2, 0, 3, 4).reshape(batch, kv_heads * n_rep, seq, d_head)
    )


def wrong_copied_twice__step_by_step(k, n_rep):
    out = k[:, :0]
    for head in range(k.shape[1]):
        for _ in range(n_rep):
            out = torch.cat([out, k[:, head : head + 1]], dim=1)
    return out


def wrong_copied_twice__through_float32(k, n_rep):
    # Two casts around the copy; in float32 they cost nothing.
    return k.float().repeat_interleave(n_rep, dim=1).to(k.dtype)


def wrong_through_numpy(k, n_rep):
    import numpy as np

    return torch.from_numpy(np.repeat(k.numpy(), n_rep, axis=1))


def wrong_detached(k, n_rep):
    return reference(k.detach(), n_rep)
