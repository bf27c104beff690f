"""Versions of output_projection: the reference, other right ways and known wrong ones.

Merging and projecting, or the sum over heads of each head through its own d rows of w_o: the same numbers.
"""

import functools

import torch
import torch.nn.functional as F


def reference(heads, w_o):
    return heads.transpose(1, 2).flatten(2) @ w_o


# --- right: merge, then project ------------------------------------------------------------------------------


def right_contiguous_view(heads, w_o):
    batch, num_heads, seq, d_head = heads.shape
    merged = heads.transpose(1, 2).contiguous().view(batch, seq, num_heads * d_head)
    return merged @ w_o


def right_permute_reshape(heads, w_o):
    return torch.matmul(heads.permute(0, 2, 1, 3).reshape(heads.shape[0], heads.shape[2], -1), w_o)


def right_cat_of_heads(heads, w_o):
    return torch.cat([heads[:, h] for h in range(heads.shape[1])], dim=-1) @ w_o


def right_linear_of_the_transpose(heads, w_o):
    import einops

    return F.linear(einops.rearrange(heads, "b h s d -> b s (h d)"), w_o.T)


def right_flattened_tokens(heads, w_o):
    batch, num_heads, seq, d_head = heads.shape
    tokens = heads.transpose(1, 2).reshape(batch * seq, num_heads * d_head)
    return (tokens @ w_o).view(batch, seq, -1)


def right_folded_heads(heads, w_o):
    batch, num_heads, seq, d_head = heads.shape
    folded = heads.reshape(batch * num_heads, seq, d_head)
    return folded.view(batch, num_heads, seq, d_head).permute(0, 2, 1, 3).flatten(-2).matmul(w_o)


def right_transposed_product(heads, w_o):
    return (w_o.T @ heads.mT.flatten(1, 2)).mT


def right_float32_inside(heads, w_o):
    merged = heads.transpose(1, 2).flatten(2)
    return (merged.float() @ w_o.float()).to(heads.dtype)


# --- right: no merge at all ------------------------------------------------------------------------------------


def right_einsum(heads, w_o):
    return torch.einsum("bhsd,hdm->bsm", heads, w_o.view(heads.shape[1], heads.shape[3], -1))


def right_einops_einsum(heads, w_o):
    import einops

    weight = einops.rearrange(w_o, "(h d) m -> h d m", h=heads.shape[1])
    return einops.einsum(heads, weight, "b h s d, h d m -> b s m")


def right_tensordot(heads, w_o):
    return torch.tensordot(heads, w_o.unflatten(0, (heads.shape[1], heads.shape[3])), dims=([1, 3], [0, 1]))


def right_sum_over_heads(heads, w_o):
    return (heads @ w_o.unflatten(0, (heads.shape[1], -1))).sum(dim=1)


def right_loop_over_heads(heads, w_o):
    d_head = heads.shape[-1]
    return sum(heads[:, h] @ w_o[h * d_head : (h + 1) * d_head] for h in range(heads.shape[1]))


def right_accumulated(heads, w_o):
    batch, num_heads, seq, d_head = heads.shape
    out = heads.new_zeros(batch, seq, w_o.shape[1])
    for head, rows in zip(heads.unbind(1), w_o.split(d_head)):
        out += head @ rows
    return out


def right_baddbmm(heads, w_o):
    batch, num_heads, seq, d_head = heads.shape
    out = torch.zeros(batch, seq, w_o.shape[-1], dtype=heads.dtype, device=heads.device)
    for h, rows in enumerate(w_o.chunk(num_heads)):
        out = torch.baddbmm(out, heads[:, h], rows.expand(batch, -1, -1))
    return out


def right_multiply_and_sum(heads, w_o):
    weight = w_o.reshape(heads.shape[1], 1, heads.shape[3], -1)
    return (heads.unsqueeze(-1) * weight).sum(dim=(1, 3))


def right_keyword_extras(attention_output, weight, *, bias=None):
    merged = attention_output.swapaxes(1, 2).reshape(*attention_output.shape[::2][:2], -1)
    return F.linear(merged, weight.t(), bias)


right_lambda = lambda h, w: h.movedim(1, 2).flatten(-2, -1) @ w


def _merge_and_apply(apply, heads, w_o):
    return apply(heads.transpose(1, 2).flatten(2), w_o)


right_partial = functools.partial(_merge_and_apply, torch.matmul)


class _OutputProjection:
    def __call__(self, heads, w_o):
        return torch.func.vmap(self.sentence, in_dims=(0, None))(heads, w_o)

    def sentence(self, heads, w_o):
        return heads.transpose(0, 1).flatten(1) @ w_o


right_callable_instance = _OutputProjection()


# --- wrong: the merge -------------------------------------------------------------------------------------------


def wrong_merged_without_transpose(heads, w_o):
    batch, num_heads, seq, d_head = heads.shape
    return heads.reshape(batch, seq, num_heads * d_head) @ w_o


def wrong_merged_without_transpose__folded(heads, w_o):
    batch, num_heads, seq, d_head = heads.shape
    folded = heads.reshape(batch * num_heads, seq, d_head)
    return folded.view(batch, seq, num_heads * d_head) @ w_o


def wrong_merged_without_transpose__cat(heads, w_o):
    batch, num_heads, seq, d_head = heads.shape
    return torch.cat(heads.unbind(1), dim=1).view(batch, seq, -1) @ w_o


def wrong_feature_major(heads, w_o):
    return heads.permute(0, 2, 3, 1).flatten(2) @ w_o


def wrong_feature_major__interleaved_rows(heads, w_o):
    num_heads = heads.shape[1]
    return sum(heads[:, h] @ w_o[h::num_heads] for h in range(num_heads))


def wrong_view_not_possible(heads, w_o):
    batch, num_heads, seq, d_head = heads.shape
    return heads.transpose(1, 2).view(batch, seq, num_heads * d_head) @ w_o


# --- wrong: the projection ---------------------------------------------------------------------------------------


def wrong_not_projected(heads, w_o):
    return heads.transpose(1, 2).flatten(2)


def wrong_transposed_weights(heads, w_o):
    return F.linear(heads.transpose(1, 2).flatten(2), w_o)


def wrong_transposed_weights__transpose(heads, w_o):
    return heads.transpose(1, 2).flatten(2) @ w_o.T


def wrong_transposed_weights__per_head(heads, w_o):
    d_head = heads.shape[-1]
    return sum(heads[:, h] @ w_o[:, h * d_head : (h + 1) * d_head].T for h in range(heads.shape[1]))


def wrong_activation_added(heads, w_o):
    return F.relu(heads.transpose(1, 2).flatten(2) @ w_o)


def wrong_one_slice_for_all(heads, w_o):
    return heads.sum(dim=1) @ w_o[: heads.shape[-1]]


def wrong_one_slice_for_all__per_head(heads, w_o):
    return (heads @ w_o[: heads.shape[-1]]).sum(dim=1)


def wrong_averaged_heads(heads, w_o):
    return (heads @ w_o.unflatten(0, (heads.shape[1], -1))).mean(dim=1)


def wrong_not_summed(heads, w_o):
    return heads @ w_o.unflatten(0, (heads.shape[1], -1))


def wrong_last_head_only(heads, w_o):
    d_head = heads.shape[-1]
    for h in range(heads.shape[1]):
        out = heads[:, h] @ w_o[h * d_head : (h + 1) * d_head]
    return out


def wrong_transposed_in_place(heads, w_o):
    return heads.transpose_(1, 2).flatten(2) @ w_o


# --- wrong: precision and gradient ---------------------------------------------------------------------------------


def wrong_dtype_promoted(heads, w_o):
    return heads.float().transpose(1, 2).flatten(2) @ w_o.float()


def wrong_dtype_promoted__default_buffer(heads, w_o):
    batch, num_heads, seq, d_head = heads.shape
    out = torch.zeros(batch, seq, w_o.shape[1])
    for head, rows in zip(heads.unbind(1), w_o.split(d_head)):
        out += head @ rows
    return out


def wrong_low_precision(heads, w_o):
    merged = heads.transpose(1, 2).flatten(2)
    return (merged.bfloat16() @ w_o.bfloat16()).to(heads.dtype)


def wrong_low_precision__half(heads, w_o):
    merged = heads.transpose(1, 2).flatten(2)
    return (merged.half() @ w_o.half()).to(heads.dtype)


@torch.no_grad()
def wrong_no_gradient(heads, w_o):
    return heads.transpose(1, 2).flatten(2) @ w_o


def wrong_no_gradient__detach(heads, w_o):
    return (heads.transpose(1, 2).flatten(2) @ w_o).detach()


def wrong_weight_detached(heads, w_o):
    return heads.transpose(1, 2).flatten(2) @ w_o.data


def wrong_weight_detached__linear_layer(heads, w_o):
    layer = torch.nn.Linear(*w_o.shape, bias=False, dtype=w_o.dtype)
    layer.weight.data.copy_(w_o.T)
    return layer(heads.transpose(1, 2).flatten(2))
