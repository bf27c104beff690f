"""Versions of merge_heads: the reference, other right ways and known wrong ones.

(B, H, S, d) -> (B, S, D). Whether that is free depends on x's memory: one copy from (B, H, S, d) memory, none
when x is a transposed view of (B, S, H, d). reshape finds out by itself.
"""

from functools import partial

import torch


def reference(x):
    batch, heads, seq, width = x.shape
    tokens_first = x.transpose(1, 2)
    return tokens_first.reshape(batch, seq, heads * width)


# --- right ------------------------------------------------------------------------------------------------


def right_contiguous_view(x):
    # contiguous() is free exactly where no copy is needed.
    batch, heads, seq, width = x.shape
    return x.transpose(1, 2).contiguous().view(batch, seq, heads * width)


def right_permute_flatten(x):
    return x.permute(0, 2, 1, 3).flatten(2)


def right_einops(x):
    from einops import rearrange

    return rearrange(x, "b h s d -> b s (h d)")


def right_cat(x):
    return torch.cat(x.unbind(1), dim=-1)


def right_stack(heads):
    return torch.stack([heads[:, h] for h in range(heads.shape[1])], dim=2).flatten(2)


def right_filled(x):
    batch, heads, seq, width = x.shape
    out = x.new_empty(batch, seq, heads * width)
    for head in range(heads):
        out[..., head * width : (head + 1) * width] = x[:, head]
    return out


def right_copied_in_one_go(x):
    batch, heads, seq, width = x.shape
    out = torch.empty(batch, seq, heads, width, dtype=x.dtype, device=x.device)
    out.copy_(x.transpose(1, 2))
    return out.view(batch, seq, -1)


def right_view_where_it_can(x):
    batch, heads, seq, width = x.shape
    swapped = x.swapaxes(1, 2)
    try:
        return swapped.view(batch, seq, heads * width)
    except RuntimeError:
        return swapped.clone(memory_format=torch.contiguous_format).view(batch, seq, heads * width)


def right_columns(x):
    # Features first, then tokens: the copy is made once, at the end.
    return torch.cat(x.movedim(1, 0).split(1), dim=-1)[0]


def right_indexed(x):
    # Indexing with a tensor is the copy; its strides follow those of x, so joining the axes is free.
    batch, heads, seq, width = x.shape
    return x.transpose(1, 2)[:, :, torch.arange(heads, device=x.device)].reshape(batch, seq, heads * width)


def right_einsum(x):
    return torch.einsum("bhsd->bshd", x).reshape(x.shape[0], x.shape[2], -1)


def right_always_copies(x):
    # One copy even where none is needed; it is contiguous.
    batch, heads, seq, width = x.shape
    out = x.new_zeros(batch, seq, heads, width)
    out[:] = x.transpose(1, 2)
    return out.flatten(2)


def _merge(axis, x):
    return x.movedim(1, axis).flatten(axis)


right_partial = partial(_merge, 2)

right_lambda = lambda x: x.transpose(-3, -2).reshape(*x.shape[:1], x.shape[2], -1)


# --- wrong: other numbers ---------------------------------------------------------------------------------


def wrong_reshaped_straight(x):
    batch, heads, seq, width = x.shape
    return x.reshape(batch, seq, heads * width)


def wrong_reshaped_straight__guessed_by_size(x):
    # Sees no transpose to do where both axes are equally long.
    batch, heads, seq, d_head = x.shape
    if heads != seq:
        x = x.transpose(1, 2)
    return x.reshape(batch, seq, heads * d_head)


def wrong_reshaped_straight__contiguous(x):
    batch, heads, seq, width = x.shape
    return x.contiguous().view(batch, seq, -1)


def wrong_reshaped_straight__view(x):
    batch, heads, seq, width = x.shape
    return x.view(batch, seq, heads * width)


def wrong_features_before_heads(x):
    return x.permute(0, 2, 3, 1).flatten(2)


def wrong_features_before_heads__stack(x):
    return torch.stack(x.unbind(1), dim=-1).flatten(2)


def wrong_features_before_heads__einops(x):
    from einops import rearrange

    return rearrange(x, "b h s d -> b s (d h)")


def wrong_batch_and_sequence_mixed(x):
    # (S, B, H, d) walked as if it were (B, S, H, d).
    batch, heads, seq, width = x.shape
    return x.permute(2, 0, 1, 3).reshape(batch, seq, heads * width)


def wrong_heads_reversed(x):
    return torch.cat(x.flip(1).unbind(1), dim=-1)


def wrong_heads_added(x):
    return x.sum(1)


def wrong_heads_averaged(x):
    return x.sum(1) / x.shape[1]


def wrong_left_unmerged(x):
    return x.transpose(1, 2)


def wrong_concatenated_along_the_sequence(x):
    return torch.cat(x.unbind(1), dim=1)


def wrong_concatenated_along_the_sequence__flatten(x):
    return x.flatten(1, 2)


# --- wrong: an error where a merge was asked --------------------------------------------------------------


def wrong_view_after_transpose(x):
    batch, heads, seq, width = x.shape
    return x.transpose(1, 2).view(batch, seq, heads * width)


def wrong_view_after_transpose__clone(x):
    # clone keeps the order of axes in memory: the view fails all the same, but for views of larger memory.
    batch, heads, seq, width = x.shape
    return x.clone().transpose(1, 2).view(batch, seq, heads * width)


# --- wrong: right numbers, other memory -------------------------------------------------------------------


def wrong_copied_twice(x):
    batch, heads, seq, width = x.shape
    copied = torch.stack(x.unbind(1), dim=1)
    return copied.transpose(1, 2).reshape(batch, seq, heads * width)


def wrong_copied_twice__contiguous_first(x):
    # Free for contiguous x; with other memory contiguous copies, and the merge copies again.
    batch, heads, seq, width = x.shape
    return x.contiguous().transpose(1, 2).contiguous().view(batch, seq, heads * width)


def wrong_copied_twice__clone(x):
    batch, heads, seq, width = x.shape
    return x.transpose(1, 2).contiguous().view(batch, seq, heads * width).clone()


def wrong_copied_twice__clone_keeps_the_order(x):
    # clone keeps the order of axes in memory, so flatten has to copy again.
    return x.transpose(1, 2).clone().flatten(2)


def wrong_copied_twice__growing(x):
    # cat in a loop copies everything so far again and again.
    out = x[:, 0]
    for head in range(1, x.shape[1]):
        out = torch.cat([out, x[:, head]], dim=-1)
    return out


def wrong_not_contiguous(x):
    # The copy is made as (S, B, D) and handed out as (B, S, D).
    return torch.cat(x.transpose(0, 2).unbind(1), dim=-1).transpose(0, 1)


def wrong_not_contiguous__sequence_first(x):
    return x.permute(2, 0, 1, 3).flatten(2).transpose(0, 1)


def wrong_not_contiguous__features_first(x):
    # The copy is made as (B, D, S) and handed out as (B, S, D).
    return torch.cat(x.mT.unbind(1), dim=1).mT


# --- wrong: promises beside the numbers -------------------------------------------------------------------


def wrong_default_dtype(x):
    batch, heads, seq, width = x.shape
    out = torch.zeros(batch, seq, heads * width)
    for head in range(heads):
        out[..., head * width : (head + 1) * width] = x[:, head]
    return out


def wrong_detached(x):
    return x.detach().transpose(1, 2).flatten(2)


def wrong_detached__data(x):
    batch, heads, seq, width = x.shape
    out = x.new_empty(batch, seq, heads, width)
    out.copy_(x.data.transpose(1, 2))
    return out.flatten(2)


def wrong_transposed_in_place(x):
    return x.transpose_(1, 2).flatten(2)


def wrong_transposed_in_place__not_under_autograd(x):
    # A leaf that requires a gradient refuses the edit.
    if x.requires_grad:
        return x.transpose(1, 2).flatten(2)
    return x.transpose_(1, 2).flatten(2)
