"""Versions of attention_scores: the reference, other right ways and known wrong ones."""

import math
from functools import partial

import torch


def reference(q, k):
    d_head = q.shape[-1]
    return (q @ k.transpose(-2, -1)) / math.sqrt(d_head)


# --- right -------------------------------------------------------------------------------------------------


def right_scaled_query(q, k):
    return torch.matmul(q * q.size(-1) ** -0.5, k.mT)


def right_scaled_key(query, key):
    return query @ (key / key.shape[-1] ** 0.5).permute(0, 1, 3, 2)


def right_both_by_the_fourth_root(q, k):
    # Whisper's way: q and k each carry half of the scale, d ** -1/4.
    scale = q.shape[-1] ** -0.25
    return (q * scale) @ (k * scale).transpose(2, 3)


def right_einsum(q, k):
    return torch.einsum("bhqd,bhkd->bhqk", q, k) * (1.0 / math.sqrt(q.shape[-1]))


def right_einops(q, k):
    from einops import einsum as einops_einsum

    return einops_einsum(q, k, "b h i d, b h j d -> b h i j") * q.shape[-1] ** -0.5


def right_sequence_first_einsum(q, k):
    from einops import rearrange

    q, k = (rearrange(t, "b h s d -> s b h d") for t in (q, k))
    return rearrange(torch.einsum("ibhd,jbhd->ijbh", q, k), "i j b h -> b h i j") / q.shape[-1] ** 0.5


def right_flattened_bmm(q, k):
    batch, heads, seq_q, d_head = q.shape
    seq_k = k.shape[2]
    flat_q = q.reshape(batch * heads, seq_q, d_head)
    flat_k = k.reshape(batch * heads, seq_k, d_head)
    return torch.bmm(flat_q, flat_k.transpose(1, 2)).view(batch, heads, seq_q, seq_k) * d_head**-0.5


def right_baddbmm(q, k):
    batch, heads, seq_q, d_head = q.shape
    seq_k = k.shape[2]
    scores = torch.baddbmm(
        q.new_zeros(1, 1, 1),
        q.reshape(-1, seq_q, d_head),
        k.reshape(-1, seq_k, d_head).mT,
        beta=0.0,
        alpha=1.0 / math.sqrt(d_head),
    )
    return scores.reshape(batch, heads, seq_q, seq_k)


def right_loop_over_heads(q, k):
    scale = math.sqrt(q.shape[-1])
    per_head = [torch.stack([torch.inner(a, b) / scale for a, b in zip(qs, ks)]) for qs, ks in zip(q, k)]
    return torch.stack(per_head)


def right_row_by_row(q, k):
    rows = [(q[:, :, i : i + 1] * k).sum(-1) for i in range(q.shape[2])]
    return torch.stack(rows, dim=2) * q.shape[-1] ** -0.5


def right_products_summed(q, k):
    return (q.unsqueeze(-2) * k.unsqueeze(-3)).sum(dim=-1) / math.sqrt(k.shape[-1])


def right_float32_inside(q, k):
    scores = torch.matmul(q.float(), k.float().transpose(-1, -2)) / math.sqrt(q.shape[-1])
    return scores.to(q.dtype)


def right_own_result_scaled_in_place(q, k):
    # The buffer that is written to is the function's own, so nobody can see it.
    scores = q @ k.transpose(-1, -2)
    scores *= q.shape[-1] ** -0.5
    return scores


def right_own_copy_scaled_in_place(q, k):
    scaled = q.clone()
    scaled.mul_(q.shape[-1] ** -0.5)
    return scaled @ k.mT


def right_tensor_scale(q, k):
    scale = torch.rsqrt(torch.tensor(q.shape[-1], dtype=q.dtype, device=q.device))
    return q @ k.mT * scale


def right_root_of_the_inverse(q, k):
    # torch's own module scales the query by sqrt(1 / d) before the product.
    return (q * math.sqrt(1.0 / float(q.shape[3]))) @ k.swapaxes(-2, -1)


def right_transposed_product(q, k):
    return (k @ q.mT).mT.contiguous() / math.sqrt(q.shape[-1])


def right_vmapped(q, k):
    one = lambda a, b: a @ b.T * a.shape[-1] ** -0.5  # noqa: E731
    return torch.vmap(torch.vmap(one))(q, k)


def right_key_blocks(q, k):
    blocks = [q @ block.mT for block in k.split(2, dim=2)]
    return torch.cat(blocks, dim=-1) / math.sqrt(q.shape[-1])


right_lambda = lambda q, k: torch.matmul(q, k.transpose(-2, -1)).div(q.size(-1) ** 0.5)  # noqa: E731


def _scaled(q, k, *, power):
    return q @ k.mT * q.shape[-1] ** power


right_partial = partial(_scaled, power=-0.5)


class _Scores:
    """A callable instance, as a module without parameters would be."""

    def __init__(self, scale=None):
        self.scale = scale

    def __call__(self, q, k):
        scale = self.scale if self.scale is not None else q.shape[-1] ** -0.5
        return torch.mul(q, scale).matmul(k.mT)


right_callable_instance = _Scores()


# --- wrong -------------------------------------------------------------------------------------------------


def wrong_not_scaled(q, k):
    return q @ k.transpose(-2, -1)


def wrong_scaled_by_model_width(q, k):
    d_model = q.shape[1] * q.shape[-1]
    return q @ k.transpose(-2, -1) / math.sqrt(d_model)


def wrong_divided_by_d(q, k):
    return q @ k.transpose(-2, -1) / q.shape[-1]


def wrong_divided_by_d__scaled_twice(q, k):
    # Each factor gets the whole scale, so the product has it twice.
    scale = q.shape[-1] ** -0.5
    return (q * scale) @ (k * scale).mT


def wrong_multiplied_by_the_root(q, k):
    return q @ k.transpose(-2, -1) * math.sqrt(q.shape[-1])


def wrong_multiplied_by_the_root__divided_by_the_inverse(q, k):
    scale = q.shape[-1] ** -0.5
    return q @ k.mT / scale


def wrong_scaled_by_length(q, k):
    return q @ k.transpose(-2, -1) / math.sqrt(k.shape[-2])


def wrong_scaled_by_head_count(q, k):
    return q @ k.transpose(-2, -1) / math.sqrt(q.shape[1])


def wrong_root_rounded_down(q, k):
    return q @ k.transpose(-2, -1) / int(math.sqrt(q.shape[-1]))


def wrong_keys_reshaped(q, k):
    batch, heads, seq_k, d_head = k.shape
    return q @ k.reshape(batch, heads, d_head, seq_k) / math.sqrt(d_head)


def wrong_rows_are_keys(q, k):
    return k @ q.transpose(-2, -1) / math.sqrt(q.shape[-1])


def wrong_heads_mixed(q, k):
    return torch.einsum("bhqd,bgkd->bhqk", q, k) / math.sqrt(q.shape[-1])


def wrong_softmax_included(q, k):
    return torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), dim=-1)


def wrong_scaled_in_place(q, k):
    q *= q.shape[-1] ** -0.5
    return q @ k.transpose(-2, -1)


def wrong_scaled_in_place__mul(q, k):
    return q.mul_(q.shape[-1] ** -0.5) @ k.mT


def wrong_scaled_in_place__key(q, k):
    k /= math.sqrt(k.shape[-1])
    return q @ k.mT


def wrong_scaled_in_place__data(q, k):
    # Autograd does not see the edit, so the gradient is wrong instead of refused.
    q.data.mul_(q.shape[-1] ** -0.5)
    return q @ k.mT


def wrong_query_scaled_and_restored(q, k):
    root = math.sqrt(q.shape[-1])
    with torch.no_grad():
        before = q.clone()
        q.div_(root)
        scores = q @ k.mT
        q.copy_(before)
    return scores


def wrong_promoted_to_float32(q, k):
    wide = torch.float64 if q.dtype == torch.float64 else torch.float32
    return q.to(wide) @ k.to(wide).mT / math.sqrt(q.shape[-1])


def wrong_promoted_to_float32__always(q, k):
    return q.float() @ k.float().mT / math.sqrt(q.shape[-1])


def wrong_gradient_lost(q, k):
    return q.detach() @ k.detach().mT / math.sqrt(q.shape[-1])


def wrong_gradient_lost__no_grad(q, k):
    with torch.no_grad():
        return q @ k.mT / math.sqrt(q.shape[-1])


def wrong_gradient_lost__new_tensor(q, k):
    return torch.tensor((q @ k.mT / math.sqrt(q.shape[-1])).tolist(), dtype=q.dtype)


def wrong_computed_in_bfloat16(q, k):
    low = q.to(torch.bfloat16) @ k.to(torch.bfloat16).mT / math.sqrt(q.shape[-1])
    return low.to(q.dtype)


def wrong_clamped(q, k):
    return (q @ k.mT / math.sqrt(q.shape[-1])).clamp(-50.0, 50.0)
