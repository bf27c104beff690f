"""Versions of fused_qkv: the reference, other right ways and known wrong ones.

One product, one storage: q, k and v are the three thirds of the columns of x @ w_qkv, with strides (S*3D, 3D, 1).
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F


def reference(x, w_qkv):
    return (x @ w_qkv).chunk(3, dim=-1)


# --- right ------------------------------------------------------------------------------------------------


def right_split(x, w_qkv):
    q, k, v = torch.matmul(x, w_qkv).split(x.shape[-1], dim=2)
    return q, k, v


def right_split_by_sizes(x, w_qkv):
    # The form that still works when keys and values are narrower than queries.
    width = w_qkv.shape[-1] // 3
    return torch.split(x @ w_qkv, [width, width, width], dim=-1)


def right_slices(x, w_qkv):
    qkv, width = x @ w_qkv, x.shape[-1]
    return qkv[..., :width], qkv[..., width : 2 * width], qkv[..., 2 * width :]


def right_narrow(x, w_qkv):
    qkv, width = x @ w_qkv, x.shape[-1]
    return [qkv.narrow(-1, part * width, width) for part in range(3)]


def right_unflatten(x, w_qkv):
    return (x @ w_qkv).unflatten(-1, (3, -1)).unbind(-2)


def right_view_and_permute(x, w_qkv):
    batch, seq, d_model = x.shape
    qkv = (x @ w_qkv).view(batch, seq, 3, d_model).permute(2, 0, 1, 3)
    return qkv[0], qkv[1], qkv[2]


def right_view_and_select(x, w_qkv):
    qkv = (x @ w_qkv).reshape(*x.shape[:-1], 3, x.shape[-1])
    return qkv.select(2, 0), qkv.select(2, 1), qkv.select(2, 2)


def right_einops(x, w_qkv):
    import einops

    return tuple(einops.rearrange(x @ w_qkv, "b s (three d) -> three b s d", three=3))


def right_linear_of_the_transpose(x, w_qkv):
    return F.linear(x, w_qkv.t()).tensor_split(3, dim=-1)


def right_einsum(x, w_qkv):
    return torch.einsum("bsd,dn->bsn", x, w_qkv).chunk(3, -1)


def right_einsum_three_parts(x, w_qkv):
    # The result's axes are moved, its memory is the fused one.
    weight = w_qkv.unflatten(1, (3, x.shape[-1]))
    q, k, v = torch.einsum("bsd,dtn->bstn", x, weight).movedim(2, 0)
    return q, k, v


def right_tensordot(x, w_qkv):
    return torch.tensordot(x, w_qkv, dims=([2], [0])).dsplit(3)


def right_flattened_tokens(x, w_qkv):
    batch, seq, d_model = x.shape
    qkv = torch.mm(x.reshape(-1, d_model), w_qkv).view(batch, seq, 3 * d_model)
    return torch.chunk(qkv, 3, dim=2)


def right_batched_product(x, w_qkv):
    return torch.bmm(x, w_qkv.expand(x.shape[0], -1, -1)).chunk(3, dim=-1)


def right_as_strided(x, w_qkv):
    batch, seq, width = x.shape
    qkv = (x @ w_qkv).contiguous()
    strides = (seq * 3 * width, 3 * width, 1)
    return tuple(qkv.as_strided((batch, seq, width), strides, part * width) for part in range(3))


def right_convolution(x, w_qkv):
    # A convolution of width 1 is a projection of every token.
    qkv = F.conv1d(x.mT, w_qkv.T.unsqueeze(-1)).mT.contiguous()
    return qkv.chunk(3, dim=-1)


def right_multiply_and_sum(x, w_qkv):
    return (x.unsqueeze(-1) * w_qkv).sum(dim=-2).chunk(3, dim=-1)


def right_float32_inside(x, w_qkv):
    return (x.float() @ w_qkv.float()).to(x.dtype).chunk(3, dim=-1)


class _QKV(NamedTuple):
    q: torch.Tensor
    k: torch.Tensor
    v: torch.Tensor


def right_named_tuple(hidden_states, weight, *, bias=None):
    fused = hidden_states @ weight
    return _QKV(*(fused if bias is None else fused + bias).chunk(3, dim=-1))


right_lambda = lambda x, w: list((x @ w).chunk(3, -1))


class _Fused:
    parts = 3

    def __call__(self, x, w_qkv):
        return torch.tensor_split(x @ w_qkv, self.parts, dim=-1)


right_callable_instance = _Fused()


def right_vmap(x, w_qkv):
    return torch.func.vmap(lambda sentence: sentence @ w_qkv)(x).chunk(3, dim=-1)


# --- wrong: not one product, or not one storage ------------------------------------------------------------


def wrong_three_matmuls(x, w_qkv):
    w_q, w_k, w_v = w_qkv.chunk(3, dim=1)
    return x @ w_q, x @ w_k, x @ w_v


def wrong_three_matmuls__linear(x, w_qkv):
    return tuple(F.linear(x, w.T) for w in w_qkv.split(x.shape[-1], dim=1))


def wrong_three_matmuls__two(x, w_qkv):
    width = x.shape[-1]
    k, v = (x @ w_qkv[:, width:]).chunk(2, dim=-1)
    return x @ w_qkv[:, :width], k, v


def wrong_several_products(x, w_qkv):
    # One storage and the right strides in the end, but three products and a copy of them all.
    joined = torch.cat([x @ w for w in w_qkv.chunk(3, dim=1)], dim=-1)
    return joined.chunk(3, dim=-1)


def wrong_several_products__sentence_by_sentence(x, w_qkv):
    return torch.stack([sentence @ w_qkv for sentence in x]).chunk(3, dim=-1)


def wrong_made_contiguous(x, w_qkv):
    return tuple(part.contiguous() for part in (x @ w_qkv).chunk(3, dim=-1))


def wrong_made_contiguous__clone(x, w_qkv):
    q, k, v = (x @ w_qkv).split(x.shape[-1], dim=-1)
    return q.clone(memory_format=torch.contiguous_format), k.contiguous(), v.contiguous()


def wrong_made_contiguous__keys_and_values(x, w_qkv):
    q, k, v = (x @ w_qkv).chunk(3, dim=-1)
    return q, k.contiguous(), v.contiguous()


def wrong_regrouped(x, w_qkv):
    qkv = (x @ w_qkv).unflatten(-1, (3, -1)).movedim(-2, 0).contiguous()
    return qkv[0], qkv[1], qkv[2]


def wrong_regrouped__stack(x, w_qkv):
    return torch.stack((x @ w_qkv).chunk(3, dim=-1)).unbind(0)


def wrong_regrouped__batched_weights(x, w_qkv):
    weights = w_qkv.unflatten(1, (3, -1)).movedim(1, 0)
    tokens = x.reshape(1, -1, x.shape[-1]).expand(3, -1, -1)
    return torch.bmm(tokens, weights).unflatten(1, x.shape[:2]).unbind(0)


def wrong_other_order_in_memory(x, w_qkv):
    # Sequence first and back: the axes have their names again, the memory is (S, B, 3D).
    return (x.transpose(0, 1).contiguous() @ w_qkv).transpose(0, 1).chunk(3, dim=-1)


def wrong_other_order_in_memory__features_first(x, w_qkv):
    # The column-vector way of writing it: W^T x^T, memory (B, 3D, S).
    return (w_qkv.mT @ x.mT).mT.chunk(3, dim=-1)


# --- wrong: which columns ----------------------------------------------------------------------------------


def wrong_read_interleaved(x, w_qkv):
    return (x @ w_qkv).unflatten(-1, (-1, 3)).unbind(-1)


def wrong_read_interleaved__steps(x, w_qkv):
    qkv = x @ w_qkv
    return qkv[..., 0::3], qkv[..., 1::3], qkv[..., 2::3]


def wrong_keys_values_swapped(x, w_qkv):
    q, v, k = (x @ w_qkv).chunk(3, dim=-1)
    return q, k, v


def wrong_keys_first(x, w_qkv):
    k, q, v = (x @ w_qkv).chunk(3, dim=-1)
    return q, k, v


def wrong_viewed_as_three(x, w_qkv):
    batch, seq, d_model = x.shape
    return (x @ w_qkv).view(3, batch, seq, d_model).unbind(0)


def wrong_chunked_batch(x, w_qkv):
    return (x @ w_qkv).chunk(3)


def wrong_chunked_sequence(x, w_qkv):
    return (x @ w_qkv).chunk(3, dim=1)


def wrong_reshaped_weights(x, w_qkv):
    # Reads the (in, out) numbers as nn.Linear's (out, in) without transposing them.
    return F.linear(x, w_qkv.reshape(-1, x.shape[-1])).chunk(3, dim=-1)


def wrong_transposed_blocks(x, w_qkv):
    # Each third turned round by itself: three square blocks hide it from every shape.
    weight = torch.cat([block.T for block in w_qkv.chunk(3, dim=1)], dim=1)
    return (x @ weight).chunk(3, dim=-1)


# --- wrong: what comes back --------------------------------------------------------------------------------


def wrong_stacked_result(x, w_qkv):
    return (x @ w_qkv).unflatten(-1, (3, -1)).movedim(-2, 0)


def wrong_not_split(x, w_qkv):
    return x @ w_qkv


def wrong_dtype_promoted(x, w_qkv):
    return (x.float() @ w_qkv.float()).chunk(3, dim=-1)


def wrong_dtype_promoted__double(x, w_qkv):
    return (x.double() @ w_qkv.double()).chunk(3, dim=-1)


def wrong_low_precision(x, w_qkv):
    return (x.bfloat16() @ w_qkv.bfloat16()).to(x.dtype).chunk(3, dim=-1)


def wrong_low_precision__half(x, w_qkv):
    return (x.half() @ w_qkv.half()).to(x.dtype).chunk(3, dim=-1)


def wrong_no_gradient(x, w_qkv):
    return (x @ w_qkv).detach().chunk(3, dim=-1)


def wrong_no_gradient__data(x, w_qkv):
    return (x.data @ w_qkv.data).chunk(3, dim=-1)


def wrong_weight_detached(x, w_qkv):
    return (x @ w_qkv.detach()).chunk(3, dim=-1)


def wrong_weight_detached__linear_layer(x, w_qkv):
    layer = torch.nn.Linear(*w_qkv.shape, bias=False, dtype=w_qkv.dtype)
    with torch.no_grad():
        layer.weight.copy_(w_qkv.T)
    return layer(x).chunk(3, dim=-1)
