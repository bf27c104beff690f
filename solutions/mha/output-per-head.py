"""Versions of output_projection_per_head: the reference, other right ways and known wrong ones.

Row h is heads[:, h] @ w_o[h*d : (h+1)*d]. The weight is read through views; any strides of the result are fine.
"""

import functools

import torch
import torch.nn.functional as F


def reference(heads, w_o):
    d_head = heads.shape[-1]
    per_head = [heads[:, h] @ w_o[h * d_head : (h + 1) * d_head] for h in range(heads.shape[1])]
    return torch.stack(per_head, dim=1)


# --- right ------------------------------------------------------------------------------------------------


def right_broadcast_matmul(heads, w_o):
    # matmul repeats the weight for each sentence inside; that is the library's copy, not this code's.
    return heads @ w_o.unflatten(0, (heads.shape[1], heads.shape[3]))


def right_broadcast_matmul_view(heads, w_o):
    batch, num_heads, seq, d_head = heads.shape
    return torch.matmul(heads, w_o.view(1, num_heads, d_head, w_o.shape[1]))


def right_einsum(heads, w_o):
    return torch.einsum("bhsd,hdm->bhsm", heads, w_o.reshape(heads.shape[1], heads.shape[3], -1))


def right_einops(heads, w_o):
    import einops

    weight = einops.rearrange(w_o, "(h d) m -> h d m", d=heads.shape[-1])
    return einops.einsum(heads, weight, "b h s d, h d m -> b h s m")


def right_one_product_a_head(heads, w_o):
    # One batched product over heads, tokens of all sentences side by side; heads are copied, the weight is not.
    batch, num_heads, seq, d_head = heads.shape
    tokens = heads.transpose(0, 1).reshape(num_heads, batch * seq, d_head)
    return torch.bmm(tokens, w_o.view(num_heads, d_head, -1)).unflatten(1, (batch, seq)).transpose(0, 1)


def right_split_and_cat(heads, w_o):
    parts = [head @ rows for head, rows in zip(heads.split(1, dim=1), w_o.split(heads.shape[-1]))]
    return torch.cat(parts, dim=1)


def right_filled_buffer(heads, w_o):
    batch, num_heads, seq, d_head = heads.shape
    out = heads.new_empty(batch, num_heads, seq, w_o.shape[-1])
    for h, rows in enumerate(w_o.chunk(num_heads)):
        out[:, h] = heads[:, h] @ rows
    return out


def right_linear_of_the_transpose(heads, w_o):
    weights = w_o.tensor_split(heads.shape[1])
    return torch.stack([F.linear(head, w.T) for head, w in zip(heads.unbind(1), weights)], dim=1)


def right_everything_else_zeroed(heads, w_o):
    # Head h alone in the merged vector, the others zero, through the whole weight.
    batch, num_heads, seq, d_head = heads.shape
    own = torch.eye(num_heads, dtype=heads.dtype, device=heads.device)
    alone = torch.einsum("bhsd,hg->bhsgd", heads, own).reshape(batch, num_heads, seq, -1)
    return alone @ w_o


def right_multiply_and_sum(heads, w_o):
    batch, num_heads, seq, d_head = heads.shape
    return (heads.unsqueeze(-1) * w_o.view(num_heads, 1, d_head, -1)).sum(dim=-2)


def right_vmap(heads, w_o):
    weight = w_o.unflatten(0, (heads.shape[1], -1))
    return torch.func.vmap(torch.matmul, in_dims=(1, 0), out_dims=1)(heads, weight)


def right_transposed_product(heads, w_o):
    return (w_o.T.unflatten(1, (heads.shape[1], -1)).transpose(0, 1) @ heads.mT).mT


def right_as_strided(heads, w_o):
    num_heads, d_head = heads.shape[1], heads.shape[3]
    row, column = w_o.stride()
    weight = w_o.as_strided((num_heads, d_head, w_o.shape[1]), (d_head * row, row, column))
    return heads @ weight


def right_feature_by_feature(heads, w_o):
    num_heads, d_head = heads.shape[1], heads.shape[3]
    out = 0
    for j in range(d_head):
        out = out + heads[..., j, None] * w_o[j::d_head].unsqueeze(1)
    return out


def right_float32_inside(heads, w_o):
    weight = w_o.unflatten(0, (heads.shape[1], -1))
    return (heads.float() @ weight.float()).to(heads.dtype)


def right_keyword_extras(z, weight, *, bias=None):
    result = torch.einsum("bhsd,hdm->bhsm", z, weight.view(z.size(1), z.size(3), -1))
    return result if bias is None else result + bias / z.size(1)


right_lambda = lambda heads, w: torch.stack(
    [h @ r for h, r in zip(heads.unbind(1), w.split(heads.size(-1)))], 1
)


def _apply(product, heads, w_o):
    return product(heads, w_o.unflatten(0, (heads.shape[1], -1)))


right_partial = functools.partial(_apply, functools.partial(torch.einsum, "bhsd,hdm->bhsm"))


class _PerHead:
    def __call__(self, heads, w_o):
        return torch.stack([self.head(heads, w_o, h) for h in range(heads.size(1))]).transpose(0, 1)

    def head(self, heads, w_o, h):
        return heads.select(1, h) @ w_o.narrow(0, h * heads.size(3), heads.size(3))


right_callable_instance = _PerHead()


# --- wrong: the weight is copied ----------------------------------------------------------------------------


def wrong_copied_weight(heads, w_o):
    return heads @ torch.stack(w_o.split(heads.shape[-1]))


def wrong_copied_weight__float64(heads, w_o):
    # More digits than were asked for, at the price of a second weight of twice the size.
    rows = w_o.double().unflatten(0, (heads.shape[1], -1))
    return (heads.double() @ rows).to(heads.dtype)


def wrong_copied_weight__repeat(heads, w_o):
    weight = w_o.unflatten(0, (heads.shape[1], -1)).repeat(heads.shape[0], 1, 1, 1)
    return heads @ weight


def wrong_copied_weight__expand_reshape(heads, w_o):
    batch, num_heads, seq, d_head = heads.shape
    weight = w_o.view(num_heads, d_head, -1).expand(batch, -1, -1, -1).reshape(batch * num_heads, d_head, -1)
    return torch.bmm(heads.reshape(batch * num_heads, seq, d_head), weight).view(batch, num_heads, seq, -1)


def wrong_copied_weight__clone(heads, w_o):
    num_heads, d_head = heads.shape[1], heads.shape[3]
    rows = [w_o[h * d_head : (h + 1) * d_head].clone() for h in range(num_heads)]
    return torch.stack([heads[:, h] @ rows[h] for h in range(num_heads)], dim=1)


def wrong_copied_weight__index(heads, w_o):
    d_head = heads.shape[-1]
    rows = torch.arange(w_o.shape[0]).view(-1, d_head)
    return heads @ w_o[rows]


def wrong_copied_weight__block_diagonal(heads, w_o):
    batch, num_heads, seq, d_head = heads.shape
    merged = heads.transpose(1, 2).flatten(2)
    blocks = torch.block_diag(*w_o.split(d_head))
    return (merged @ blocks).unflatten(-1, (num_heads, -1)).transpose(1, 2)


# --- wrong: which rows --------------------------------------------------------------------------------------


def wrong_interleaved_rows(heads, w_o):
    num_heads = heads.shape[1]
    return torch.stack([heads[:, h] @ w_o[h::num_heads] for h in range(num_heads)], dim=1)


def wrong_interleaved_rows__view(heads, w_o):
    return torch.einsum("bhsd,dhm->bhsm", heads, w_o.view(heads.shape[3], heads.shape[1], -1))


def wrong_columns_for_rows(heads, w_o):
    d_head = heads.shape[-1]
    parts = [heads[:, h] @ w_o[:, h * d_head : (h + 1) * d_head].T for h in range(heads.shape[1])]
    return torch.stack(parts, dim=1)


def wrong_columns_for_rows__transpose(heads, w_o):
    return heads @ w_o.T.unflatten(0, (heads.shape[1], -1))


def wrong_one_slice_for_all(heads, w_o):
    return heads @ w_o[: heads.shape[-1]]


def wrong_one_slice_for_all__einsum(heads, w_o):
    return torch.einsum("bhsd,dm->bhsm", heads, w_o.narrow(0, 0, heads.shape[-1]))


def wrong_offset_not_scaled(heads, w_o):
    # Head h starts at row h instead of row h * d.
    d_head = heads.shape[-1]
    return torch.stack([heads[:, h] @ w_o[h : h + d_head] for h in range(heads.shape[1])], dim=1)


# --- wrong: what comes back ---------------------------------------------------------------------------------


def wrong_already_summed(heads, w_o):
    return heads.transpose(1, 2).flatten(2) @ w_o


def wrong_already_summed__einsum(heads, w_o):
    return torch.einsum("bhsd,hdm->bsm", heads, w_o.unflatten(0, (heads.shape[1], -1)))


def wrong_split_after_projection(heads, w_o):
    out = heads.transpose(1, 2).flatten(2) @ w_o
    return out.unflatten(-1, (heads.shape[1], -1)).transpose(1, 2)


def wrong_shared_equally(heads, w_o):
    num_heads = heads.shape[1]
    out = heads.transpose(1, 2).flatten(2) @ w_o
    return (out / num_heads).unsqueeze(1).expand(-1, num_heads, -1, -1)


def wrong_running_sum(heads, w_o):
    total, seen = 0, []
    for head, rows in zip(heads.unbind(1), w_o.split(heads.shape[-1])):
        total = total + head @ rows
        seen.append(total)
    return torch.stack(seen, dim=1)


def wrong_running_sum__cumsum(heads, w_o):
    return reference(heads, w_o).cumsum(dim=1).to(heads.dtype)


def wrong_axes_in_token_order(heads, w_o):
    return torch.einsum("bhsd,hdm->bshm", heads, w_o.unflatten(0, (heads.shape[1], -1)))


def wrong_axes_in_token_order__stack(heads, w_o):
    return reference(heads, w_o).transpose(1, 2)


def wrong_scrambled_heads(heads, w_o):
    # (B, H, S, d) memory read as (B, S, H, d) and back: shapes agree, tokens and heads do not.
    batch, num_heads, seq, d_head = heads.shape
    scrambled = heads.reshape(batch, seq, num_heads, d_head).transpose(1, 2)
    return reference(scrambled, w_o)


# --- wrong: precision and gradient --------------------------------------------------------------------------


def wrong_default_dtype_buffer(heads, w_o):
    batch, num_heads, seq, d_head = heads.shape
    out = torch.zeros(batch, num_heads, seq, w_o.shape[1])
    for h, rows in enumerate(w_o.chunk(num_heads)):
        out[:, h] = heads[:, h] @ rows
    return out


def wrong_default_dtype_buffer__float(heads, w_o):
    return heads.float() @ w_o.float().unflatten(0, (heads.shape[1], -1))


def wrong_low_precision(heads, w_o):
    weight = w_o.bfloat16().unflatten(0, (heads.shape[1], -1))
    return (heads.bfloat16() @ weight).to(heads.dtype)


def wrong_low_precision__half(heads, w_o):
    weight = w_o.half().unflatten(0, (heads.shape[1], -1))
    return (heads.half() @ weight).to(heads.dtype)


@torch.no_grad()
def wrong_no_gradient(heads, w_o):
    return heads @ w_o.unflatten(0, (heads.shape[1], -1))


def wrong_no_gradient__out(heads, w_o):
    batch, num_heads, seq, d_head = heads.shape
    out = heads.new_empty(batch, num_heads, seq, w_o.shape[1])
    for h, rows in enumerate(w_o.detach().chunk(num_heads)):
        out[:, h] = heads.detach()[:, h] @ rows
    return out


def wrong_weight_detached(heads, w_o):
    return heads @ w_o.detach().unflatten(0, (heads.shape[1], -1))


def wrong_weight_detached__parameter(heads, w_o):
    # The weight's memory is kept, its history is not.
    weight = torch.nn.Parameter(w_o.detach())
    return heads @ weight.unflatten(0, (heads.shape[1], -1))
