"""Versions of qkv_projection: the reference, other right ways and known wrong ones.

Weights are (in, out) and used as x @ W. Nothing is promised about strides, so results may be views of one tensor.
"""

import functools
from typing import NamedTuple

import torch
import torch.nn.functional as F


def reference(x, w_q, w_k, w_v):
    return x @ w_q, x @ w_k, x @ w_v


# --- right ------------------------------------------------------------------------------------------------


def right_matmul_function(x, w_q, w_k, w_v):
    return torch.matmul(x, w_q), torch.matmul(x, w_k), torch.matmul(x, w_v)


def right_linear_of_the_transpose(x, w_q, w_k, w_v):
    # nn.Linear keeps its weight as (out, in): the transpose makes up for it.
    return tuple(F.linear(x, w.T) for w in (w_q, w_k, w_v))


def right_fused_chunk(x, w_q, w_k, w_v):
    return torch.cat([w_q, w_k, w_v], dim=1).__rmatmul__(x).chunk(3, dim=-1)


def right_fused_slices(x, w_q, w_k, w_v):
    width = w_q.shape[1]
    qkv = x @ torch.cat([w_q, w_k, w_v], dim=-1)
    return qkv[..., :width], qkv[..., width : 2 * width], qkv[..., 2 * width :]


def right_one_batched_product(x, w_q, w_k, w_v):
    # (1, B, S, D) @ (3, 1, D, N) -> (3, B, S, N)
    return (x.unsqueeze(0) @ torch.stack([w_q, w_k, w_v]).unsqueeze(1)).unbind(0)


def right_flattened_tokens(x, w_q, w_k, w_v):
    batch, seq, _ = x.shape
    tokens = x.reshape(batch * seq, -1)
    return [torch.mm(tokens, w).view(batch, seq, -1) for w in (w_q, w_k, w_v)]


def right_einsum(x, w_q, w_k, w_v):
    project = functools.partial(torch.einsum, "bsd,dn->bsn", x)
    return project(w_q), project(w_k), project(w_v)


def right_einops(x, w_q, w_k, w_v):
    import einops

    weights = einops.rearrange([w_q, w_k, w_v], "three d n -> d three n")
    return tuple(einops.einsum(x, weights, "b s d, d three n -> three b s n"))


def right_tensordot(x, w_q, w_k, w_v):
    return tuple(torch.tensordot(x, w, dims=1) for w in (w_q, w_k, w_v))


def right_transposed_product(x, w_q, w_k, w_v):
    # (x W) is (W^T x^T)^T; the results are not contiguous, and nobody asked them to be.
    return tuple((w.mT @ x.mT).mT for w in (w_q, w_k, w_v))


def right_multiply_and_sum(x, w_q, w_k, w_v):
    return tuple((x.unsqueeze(-1) * w).sum(-2) for w in (w_q, w_k, w_v))


def right_column_by_column(x, w_q, w_k, w_v):
    def project(w):
        return torch.stack([(x @ column) for column in w.unbind(1)], dim=-1)

    return project(w_q), project(w_k), project(w_v)


def right_token_by_token(x, w_q, w_k, w_v):
    def project(w):
        return torch.stack([torch.stack([token @ w for token in sentence]) for sentence in x])

    return project(w_q), project(w_k), project(w_v)


def right_row_by_row_sum(x, w_q, w_k, w_v):
    # Each input feature adds its row of W, weighted: the sum of outer products.
    def project(w):
        total = x.new_zeros(*x.shape[:-1], w.shape[1])
        for feature in range(w.shape[0]):
            total = total + x[..., feature, None] * w[feature]
        return total

    return project(w_q), project(w_k), project(w_v)


def right_float32_inside(x, w_q, w_k, w_v):
    return tuple((x.float() @ w.float()).to(x.dtype) for w in (w_q, w_k, w_v))


class _Projections(NamedTuple):
    queries: torch.Tensor
    keys: torch.Tensor
    values: torch.Tensor


def right_named_tuple(hidden, query_weight, key_weight, value_weight):
    return _Projections(hidden @ query_weight, hidden @ key_weight, hidden @ value_weight)


def right_keyword_extras(x, w_q, w_k, w_v, *, bias=None, scale=1.0):
    results = [x @ w for w in (w_q, w_k, w_v)]
    return results if bias is None else [r + b for r, b in zip(results, bias)]


right_lambda = lambda x, *weights: [x.matmul(w) for w in weights]


class _Projector:
    def __call__(self, x, w_q, w_k, w_v):
        return self.project(x, w_q), self.project(x, w_k), self.project(x, w_v)

    @staticmethod
    def project(x, w):
        return torch.baddbmm(x.new_zeros(()), x, w.expand(x.shape[0], -1, -1), beta=0)


right_callable_instance = _Projector()


def _project_all(transform, x, w_q, w_k, w_v):
    return tuple(map(functools.partial(transform, x), (w_q, w_k, w_v)))


right_partial = functools.partial(_project_all, torch.matmul)


def right_vmap_over_weights(x, w_q, w_k, w_v):
    projected = torch.func.vmap(torch.matmul, in_dims=(None, 0))(x, torch.stack((w_q, w_k, w_v)))
    return projected[0], projected[1], projected[2]


# --- wrong: which weight, which way round -----------------------------------------------------------------


def wrong_transposed_weights(x, w_q, w_k, w_v):
    return F.linear(x, w_q), F.linear(x, w_k), F.linear(x, w_v)


def wrong_transposed_weights__where_it_fits(x, w_q, w_k, w_v):
    # Tries nn.Linear's way first; only a weight that is not square makes it change its mind.
    def project(w):
        try:
            return F.linear(x, w)
        except RuntimeError:
            return x @ w

    return project(w_q), project(w_k), project(w_v)


def wrong_transposed_weights__transpose(x, w_q, w_k, w_v):
    return x @ w_q.T, x @ w_k.T, x @ w_v.T


def wrong_transposed_weights__einsum(x, w_q, w_k, w_v):
    return tuple(torch.einsum("bsd,nd->bsn", x, w) for w in (w_q, w_k, w_v))


def wrong_reshaped_weights(x, w_q, w_k, w_v):
    # Copies the numbers into an nn.Linear's shape without transposing them.
    return tuple(F.linear(x, w.reshape(w.shape[1], w.shape[0])) for w in (w_q, w_k, w_v))


def wrong_keys_values_swapped(x, w_q, w_k, w_v):
    return x @ w_q, x @ w_v, x @ w_k


def wrong_keys_values_swapped__unpacked(x, w_q, w_k, w_v):
    q, v, k = (x @ torch.cat([w_q, w_k, w_v], dim=1)).chunk(3, dim=-1)
    return q, k, v


def wrong_queries_keys_swapped(x, w_q, w_k, w_v):
    k, q, v = x @ w_q, x @ w_k, x @ w_v
    return q, k, v


def wrong_one_weight_for_all(x, w_q, w_k, w_v):
    q = x @ w_q
    return q, q, q


def wrong_one_weight_for_all__projected_thrice(x, w_q, w_k, w_v):
    return tuple(x @ w_q for _ in range(3))


def wrong_keys_used_as_values(x, w_q, w_k, w_v):
    k = x @ w_k
    return x @ w_q, k, k


def wrong_chained_projections(x, w_q, w_k, w_v):
    q = x @ w_q
    k = q @ w_k
    return q, k, k @ w_v


def wrong_chained_projections__overwritten(x, w_q, w_k, w_v):
    results = []
    for w in (w_q, w_k, w_v):
        x = x @ w
        results.append(x)
    return results


def wrong_interleaved_columns(x, w_q, w_k, w_v):
    qkv = x @ torch.stack([w_q, w_k, w_v], dim=-1).flatten(1)
    return qkv.chunk(3, dim=-1)


def wrong_viewed_as_three(x, w_q, w_k, w_v):
    qkv = x @ torch.cat([w_q, w_k, w_v], dim=1)
    return tuple(qkv.reshape(3, *x.shape[:-1], w_q.shape[1]))


# --- wrong: more or less than was asked -------------------------------------------------------------------


def wrong_scaled_queries(x, w_q, w_k, w_v):
    q = x @ w_q
    return q * q.shape[-1] ** -0.5, x @ w_k, x @ w_v


def wrong_stacked_result(x, w_q, w_k, w_v):
    return torch.stack([x @ w_q, x @ w_k, x @ w_v])


def wrong_stacked_result__matmul(x, w_q, w_k, w_v):
    return x @ torch.stack([w_q, w_k, w_v]).unsqueeze(1)


def wrong_left_flat(x, w_q, w_k, w_v):
    tokens = x.reshape(-1, x.shape[-1])
    return tokens @ w_q, tokens @ w_k, tokens @ w_v


def wrong_squeezed(x, w_q, w_k, w_v):
    x = x.squeeze()
    return x @ w_q, x @ w_k, x @ w_v


def wrong_view_not_possible(x, w_q, w_k, w_v):
    batch, seq, d_model = x.shape
    tokens = x.view(batch * seq, d_model)
    return tuple((tokens @ w).view(batch, seq, -1) for w in (w_q, w_k, w_v))


# --- wrong: precision and gradient ------------------------------------------------------------------------


def wrong_dtype_promoted(x, w_q, w_k, w_v):
    x = x.float()
    return x @ w_q.float(), x @ w_k.float(), x @ w_v.float()


def wrong_dtype_promoted__double(x, w_q, w_k, w_v):
    return tuple(x.double() @ w.double() for w in (w_q, w_k, w_v))


def wrong_low_precision(x, w_q, w_k, w_v):
    return tuple((x.bfloat16() @ w.bfloat16()).to(x.dtype) for w in (w_q, w_k, w_v))


def wrong_low_precision__half(x, w_q, w_k, w_v):
    return tuple((x.half() @ w.half()).to(x.dtype) for w in (w_q, w_k, w_v))


def wrong_low_precision__autocast(x, w_q, w_k, w_v):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        results = x @ w_q, x @ w_k, x @ w_v
    return tuple(r.to(x.dtype) for r in results)


@torch.no_grad()
def wrong_no_gradient(x, w_q, w_k, w_v):
    return x @ w_q, x @ w_k, x @ w_v


def wrong_no_gradient__parameters(x, w_q, w_k, w_v):
    results = []
    for w in (w_q, w_k, w_v):
        layer = torch.nn.Linear(*w.shape, bias=False, dtype=w.dtype)
        layer.weight.data.copy_(w.T)
        results.append(layer(x).detach())
    return tuple(results)


def wrong_weights_detached(x, w_q, w_k, w_v):
    return x @ w_q.detach(), x @ w_k.detach(), x @ w_v.detach()


def wrong_weights_detached__linear_layers(x, w_q, w_k, w_v):
    results = []
    for w in (w_q, w_k, w_v):
        layer = torch.nn.Linear(*w.shape, bias=False, dtype=w.dtype)
        layer.weight.data.copy_(w.T)
        results.append(layer(x))
    return tuple(results)
