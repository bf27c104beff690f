"""Versions of pack_head_weights: the reference, other right ways and known wrong ones.

Pure movement: column h*d + j of the result is column j of head h's own weight. No strides are promised.
"""

import functools

import torch
import torch.nn.functional as F


def reference(w_heads):
    num_heads, d_model, d_head = w_heads.shape
    return w_heads.transpose(0, 1).reshape(d_model, num_heads * d_head)


# --- right ------------------------------------------------------------------------------------------------


def right_cat_of_heads(w_heads):
    return torch.cat(tuple(w_heads), dim=-1)


def right_cat_of_slices(w_heads):
    return torch.cat([w_heads[h] for h in range(w_heads.shape[0])], dim=1)


def right_hstack(w_heads):
    return torch.hstack(w_heads.unbind(0))


def right_stack_and_flatten(w_heads):
    return torch.stack(w_heads.unbind(), dim=1).flatten(1)


def right_permute_contiguous_view(w_heads):
    num_heads, d_model, d_head = w_heads.shape
    return w_heads.permute(1, 0, 2).contiguous().view(d_model, num_heads * d_head)


def right_movedim(per_head):
    return per_head.movedim(0, 1).flatten(start_dim=1)


def right_einops(w_heads):
    import einops

    return einops.rearrange(w_heads, "h m d -> m (h d)")


def right_einsum(w_heads):
    return torch.einsum("hmd->mhd", w_heads).flatten(-2)


def right_filled_buffer(w_heads):
    num_heads, d_model, d_head = w_heads.shape
    packed = w_heads.new_empty(d_model, num_heads * d_head)
    for h in range(num_heads):
        packed[:, h * d_head : (h + 1) * d_head] = w_heads[h]
    return packed


def right_row_by_row(w_heads):
    return torch.stack([w_heads[:, i].reshape(-1) for i in range(w_heads.shape[1])])


def right_built_transposed(w_heads):
    # (H*d, D) as nn.Linear would keep it, handed back as its transpose: a view with other strides.
    return w_heads.mT.reshape(-1, w_heads.shape[1]).T


def right_projected_identity(w_heads):
    # A projection is known by what it does to the unit vectors.
    num_heads, d_model, d_head = w_heads.shape
    unit = torch.eye(d_model, dtype=w_heads.dtype, device=w_heads.device)
    return (unit @ w_heads).swapaxes(0, 1).reshape(d_model, -1)


def right_gather(w_heads):
    num_heads, d_model, d_head = w_heads.shape
    column = torch.arange(num_heads * d_head)
    return w_heads[column // d_head, :, column % d_head].T


def right_unfolded_blocks(w_heads):
    num_heads, d_model, d_head = w_heads.shape
    return sum(F.pad(w, (h * d_head, (num_heads - 1 - h) * d_head)) for h, w in enumerate(w_heads))


def right_keyword_extras(w_heads, *, dtype=None):
    packed = torch.column_stack(list(w_heads))
    return packed if dtype is None else packed.to(dtype)


right_lambda = lambda w: torch.concat(w.unbind(0), axis=-1)


def _pack(w, pattern):
    return torch.einsum(pattern, w).flatten(1)


right_partial = functools.partial(_pack, pattern="hmd->mhd")


class _Packer:
    def __call__(self, w_heads):
        return w_heads.swapdims(0, 1).reshape(w_heads.size(1), -1)


right_callable_instance = _Packer()


# --- wrong: which number lands where ------------------------------------------------------------------------


def wrong_reshaped_straight(w_heads):
    num_heads, d_model, d_head = w_heads.shape
    return w_heads.reshape(d_model, num_heads * d_head)


def wrong_reshaped_straight__stacked_rows(w_heads):
    return torch.cat(tuple(w_heads), dim=0).reshape(w_heads.shape[1], -1)


def wrong_feature_major(w_heads):
    return w_heads.permute(1, 2, 0).reshape(w_heads.shape[1], -1)


def wrong_feature_major__stack(w_heads):
    return torch.stack(tuple(w_heads), dim=-1).flatten(1)


def wrong_linear_orientation(w_heads):
    return w_heads.mT.reshape(-1, w_heads.shape[1])


def wrong_linear_orientation__cat(w_heads):
    return torch.cat([w.T for w in w_heads], dim=0)


def wrong_joined_as_rows(w_heads):
    return torch.cat(tuple(w_heads), dim=0)


def wrong_joined_as_rows__flatten(w_heads):
    return w_heads.flatten(0, 1)


def wrong_not_merged(w_heads):
    return w_heads.transpose(0, 1)


def wrong_heads_see_own_slice(w_heads):
    num_heads, _, d_head = w_heads.shape
    return torch.block_diag(*(w_heads[h, h * d_head : (h + 1) * d_head] for h in range(num_heads)))


def wrong_one_head_repeated(w_heads):
    return w_heads[0].repeat(1, w_heads.shape[0])


def wrong_view_not_possible(w_heads):
    num_heads, d_model, d_head = w_heads.shape
    return w_heads.transpose(0, 1).view(d_model, num_heads * d_head)


def wrong_transposed_in_place(w_heads):
    num_heads, d_model, d_head = w_heads.shape
    return w_heads.transpose_(0, 1).reshape(d_model, num_heads * d_head)


# --- wrong: dtype, gradient ------------------------------------------------------------------------


def wrong_default_dtype_buffer(w_heads):
    num_heads, d_model, d_head = w_heads.shape
    packed = torch.zeros(d_model, num_heads * d_head)
    for h in range(num_heads):
        packed[:, h * d_head : (h + 1) * d_head] = w_heads[h]
    return packed


def wrong_default_dtype_buffer__float(w_heads):
    return w_heads.float().transpose(0, 1).flatten(1)


def wrong_no_gradient(w_heads):
    return torch.nn.Parameter(torch.cat(tuple(w_heads), dim=-1))


def wrong_no_gradient__detach(w_heads):
    return w_heads.detach().transpose(0, 1).flatten(1)


def wrong_no_gradient__copied_into(w_heads):
    packed = torch.empty_like(reference(w_heads))
    with torch.no_grad():
        packed.copy_(w_heads.transpose(0, 1).flatten(1))
    return packed
