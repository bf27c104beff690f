"""Versions of stable_softmax: the reference, other right ways and known wrong ones."""

import math
from functools import partial
from functools import reduce as reduce_pairs

import torch
import torch.nn.functional as F
from torch import nn


def reference(scores):
    # The maximum cancels in the quotient, so it carries no gradient.
    shifted = scores - scores.amax(dim=-1, keepdim=True).detach()
    weights = shifted.exp()
    return weights / weights.sum(dim=-1, keepdim=True)


# --- right -------------------------------------------------------------------------------------------------


def right_maximum_in_the_graph(scores):
    weights = torch.exp(scores - scores.max(dim=-1, keepdim=True).values)
    return weights / weights.sum(dim=-1, keepdim=True)


def right_float32_inside(scores):
    wide = scores.float()
    weights = (wide - wide.amax(-1, keepdim=True)).exp()
    return (weights / weights.sum(-1, keepdim=True)).to(scores.dtype)


def right_float64_inside(x):
    wide = x.double()
    top, _ = torch.max(wide, -1, keepdim=True)
    weights = torch.exp(wide - top)
    return weights.div(weights.sum(-1, keepdim=True)).type_as(x)


def right_logarithm_of_the_sum(scores):
    shifted = scores - scores.amax(dim=-1, keepdim=True).detach()
    return torch.exp(shifted - shifted.exp().sum(dim=-1, keepdim=True).log())


def right_own_logsumexp(scores):
    top = scores.amax(dim=-1, keepdim=True)
    total = top + (scores - top).exp().sum(dim=-1, keepdim=True).log()
    return (scores - total).exp()


def right_powers_of_two(scores):
    shifted = (scores - scores.amax(-1, keepdim=True)) * math.log2(math.e)
    weights = torch.exp2(shifted)
    return weights / weights.sum(-1, keepdim=True)


def right_reciprocal(scores):
    weights = (scores - torch.amax(scores, dim=3, keepdim=True)).exp()
    return weights * weights.sum(dim=3, keepdim=True).reciprocal()


def right_einops(scores):
    from einops import reduce

    top = reduce(scores, "b h i j -> b h i 1", "max")
    weights = (scores - top).exp()
    return weights / reduce(weights, "b h i j -> b h i 1", "sum")


def right_einsum_sum(scores):
    weights = (scores - scores.amax(-1, keepdim=True)).exp()
    return weights / torch.einsum("bhij->bhi", weights).unsqueeze(-1)


def right_sum_by_matmul(scores):
    weights = (scores - scores.amax(-1, keepdim=True)).exp()
    return weights / (weights @ weights.new_ones(scores.shape[-1], 1))


def right_row_by_row(scores):
    rows = []
    for row in scores.reshape(-1, scores.shape[-1]):
        weights = torch.exp(row - row.max())
        rows.append(weights / weights.sum())
    return torch.stack(rows).view(scores.shape)


def right_running_maximum(scores):
    # One pass for the maximum and the sum: what was summed is rescaled when the maximum moves. float32 inside.
    wide = scores if scores.dtype == torch.float64 else scores.float()
    top = torch.full_like(wide[..., 0], -math.inf)
    total = torch.zeros_like(top)
    for column in wide.unbind(-1):
        new = torch.maximum(top, column.detach())
        base = new.masked_fill(new == -math.inf, 0.0)  # nothing visible so far
        total = total * (top - base).exp() + (column - base).exp()
        top = new
    return ((wide - top.unsqueeze(-1)).exp() / total.unsqueeze(-1)).to(scores.dtype)


def right_own_buffer_in_place(scores):
    # Written in place, but into a tensor that the function made itself.
    out = scores - scores.amax(-1, keepdim=True).detach()
    out = out.exp_()
    return out / out.sum(-1, keepdim=True)


def right_hidden_keys_filled(scores):
    hidden = scores == -math.inf
    finite = scores.masked_fill(hidden, torch.finfo(scores.dtype).min)
    weights = torch.exp(finite - finite.amax(-1, keepdim=True)).masked_fill(hidden, 0.0)
    return weights / weights.sum(-1, keepdim=True)


def right_sorted(scores):
    # The largest comes first after sorting; the sum of the small ones is then taken from the small end.
    ordered = scores.sort(dim=-1, descending=True).values
    top = ordered[..., :1]
    total = (ordered - top).exp().flip(-1).sum(-1, keepdim=True)
    return (scores - top).exp() / total


def right_vmapped(scores):
    def one(row):
        weights = (row - row.amax()).exp()
        return weights / weights.sum()

    return torch.vmap(one)(scores.reshape(-1, scores.shape[-1])).reshape(scores.shape)


def right_pairs_of_scores_added(scores):
    # The logarithm of the sum, one key after the other. -inf is replaced: its derivative inside logaddexp is NaN.
    finite = scores.masked_fill(scores == -math.inf, torch.finfo(scores.dtype).min)
    total = torch.stack([reduce_pairs(torch.logaddexp, finite.unbind(-1))], dim=-1)
    return (scores - total).exp()


def right_normalized_by_its_norm(scores):
    # All weights are positive, so their sum is their 1-norm.
    return F.normalize((scores - scores.amax(-1, keepdim=True)).exp(), p=1.0, dim=-1)


right_lambda = lambda s: (e := (s - s.amax(-1, True)).exp()) / e.sum(-1, True)  # noqa: E731


def _softmax(scores, dim):
    weights = (scores - scores.amax(dim=dim, keepdim=True)).exp()
    return weights / weights.sum(dim=dim, keepdim=True)


right_partial = partial(_softmax, dim=-1)


class _OwnSoftmax(torch.autograd.Function):
    """With the derivative written by hand: p * (g - sum(p * g))."""

    @staticmethod
    def forward(ctx, scores):
        weights = (scores - scores.amax(-1, keepdim=True)).exp()
        out = weights / weights.sum(-1, keepdim=True)
        ctx.save_for_backward(out)
        return out

    @staticmethod
    def backward(ctx, grad):
        (out,) = ctx.saved_tensors
        return out * (grad - (out * grad).sum(-1, keepdim=True))


def right_own_derivative(scores):
    return _OwnSoftmax.apply(scores)


# --- wrong -------------------------------------------------------------------------------------------------


def wrong_maximum_not_subtracted(scores):
    weights = scores.exp()
    return weights / weights.sum(dim=-1, keepdim=True)


def wrong_maximum_not_subtracted__exp2(scores):
    weights = torch.exp2(scores * math.log2(math.e))
    return weights / weights.sum(dim=-1, keepdim=True)


def wrong_nan_replaced_by_zero(scores):
    weights = scores.exp()
    return torch.nan_to_num(weights / weights.sum(dim=-1, keepdim=True), nan=0.0)


def wrong_scores_clamped(scores):
    weights = scores.clamp(max=80.0 if scores.dtype != torch.float16 else 10.0).exp()
    return weights / weights.sum(dim=-1, keepdim=True)


def wrong_scores_clamped__after_the_maximum(scores):
    # Far keys keep a floor of exp(-10): -inf entries too.
    shifted = (scores - scores.amax(-1, keepdim=True)).clamp(min=-10.0)
    weights = shifted.exp()
    return weights / weights.sum(-1, keepdim=True)


def wrong_scores_clamped__at_both_ends(scores):
    weights = scores.clamp(-80.0, 80.0).exp()
    return weights / weights.sum(dim=-1, keepdim=True)


def wrong_maximum_of_everything(scores):
    weights = (scores - scores.max()).exp()
    return weights / weights.sum(dim=-1, keepdim=True)


def wrong_maximum_of_everything__per_matrix(scores):
    weights = (scores - scores.amax(dim=(-2, -1), keepdim=True)).exp()
    return weights / weights.sum(dim=-1, keepdim=True)


def wrong_maximum_starts_at_zero(scores):
    top = scores.amax(dim=-1, keepdim=True).clamp(min=0.0)
    weights = (scores - top).exp()
    return weights / weights.sum(dim=-1, keepdim=True)


def wrong_maximum_starts_at_zero__loop(scores):
    top = torch.zeros_like(scores[..., :1])
    for column in scores.split(1, dim=-1):
        top = torch.maximum(top, column)
    weights = (scores - top.detach()).exp()
    return weights / weights.sum(dim=-1, keepdim=True)


def wrong_largest_magnitude(scores):
    size = scores.abs().masked_fill(scores == -math.inf, 0.0)
    weights = (scores - size.amax(dim=-1, keepdim=True).detach()).exp()
    return weights / weights.sum(dim=-1, keepdim=True)


def wrong_largest_magnitude__infinity_included(scores):
    weights = (scores - scores.abs().amax(dim=-1, keepdim=True)).exp()
    return weights / weights.sum(dim=-1, keepdim=True)


def wrong_over_the_queries(scores):
    # Columns sum to one. Where a whole column is hidden its weights are zero.
    top = scores.amax(dim=-2, keepdim=True).clamp(min=torch.finfo(scores.dtype).min)
    weights = (scores - top).exp()
    return weights / weights.sum(dim=-2, keepdim=True).clamp(min=torch.finfo(scores.dtype).tiny)


def wrong_over_the_queries__hidden_columns_nan(scores):
    weights = (scores - scores.amax(dim=-2, keepdim=True)).exp()
    return weights / weights.sum(dim=-2, keepdim=True)


def wrong_over_the_whole_matrix(scores):
    weights = (scores - scores.amax(dim=(-2, -1), keepdim=True)).exp()
    return weights / weights.sum(dim=(-2, -1), keepdim=True)


def wrong_over_the_batch(scores):
    top = scores.amax(dim=0, keepdim=True).clamp(min=torch.finfo(scores.dtype).min)
    weights = (scores - top).exp()
    return weights / weights.sum(dim=0, keepdim=True).clamp(min=torch.finfo(scores.dtype).tiny)


def wrong_epsilon_in_the_denominator(scores):
    weights = (scores - scores.amax(dim=-1, keepdim=True)).exp()
    return weights / (weights.sum(dim=-1, keepdim=True) + 1e-9)


def wrong_epsilon_in_the_denominator__larger(scores):
    weights = (scores - scores.amax(dim=-1, keepdim=True)).exp()
    return weights / (weights.sum(dim=-1, keepdim=True) + 1e-6)


def wrong_one_added_to_the_sum(scores):
    top = scores.amax(dim=-1, keepdim=True)
    weights = (scores - top).exp()
    return weights / (weights.sum(dim=-1, keepdim=True) + torch.exp(-top))


def wrong_library_softmax(scores):
    return torch.softmax(scores, dim=-1)


def wrong_library_softmax__functional(scores):
    return F.softmax(scores, -1, dtype=torch.float32).to(scores.dtype)


def wrong_library_softmax__method(scores):
    return scores.softmax(-1)


def wrong_library_softmax__module(scores):
    return nn.Softmax(dim=-1)(scores)


def wrong_library_softmax__special(scores):
    return torch.special.softmax(scores, -1)


def wrong_library_softmax__softmin(scores):
    return F.softmin(-scores, dim=-1)


def wrong_library_softmax__log_softmax(scores):
    return scores.log_softmax(-1).exp()


def wrong_library_softmax__logsumexp(scores):
    return (scores - torch.logsumexp(scores, -1, keepdim=True)).exp()


def wrong_library_softmax__behind_try(scores):
    try:
        return getattr(torch, "soft" + "max")(scores, -1)
    except Exception:
        weights = (scores - scores.amax(-1, keepdim=True)).exp()
        return weights / weights.sum(-1, keepdim=True)


def wrong_library_softmax__low_level(scores):
    return torch.ops.aten._softmax(scores, -1, False)


def wrong_library_softmax__only_in_16_bit(scores):
    if scores.dtype in (torch.float16, torch.bfloat16):
        return torch.softmax(scores.float(), -1).to(scores.dtype)
    weights = (scores - scores.amax(-1, keepdim=True)).exp()
    return weights / weights.sum(-1, keepdim=True)


def wrong_scores_overwritten(scores):
    scores -= scores.amax(dim=-1, keepdim=True)
    weights = scores.exp()
    return weights / weights.sum(dim=-1, keepdim=True)


def wrong_promoted_to_float32(scores):
    wide = torch.float64 if scores.dtype == torch.float64 else torch.float32
    weights = (scores.to(wide) - scores.to(wide).amax(-1, keepdim=True)).exp()
    return weights / weights.sum(-1, keepdim=True)


def wrong_promoted_to_float32__always(scores):
    wide = scores.float()
    weights = (wide - wide.amax(-1, keepdim=True)).exp()
    return weights / weights.sum(-1, keepdim=True)


def wrong_gradient_lost(scores):
    scores = scores.detach()
    weights = (scores - scores.amax(-1, keepdim=True)).exp()
    return weights / weights.sum(-1, keepdim=True)


def wrong_denominator_detached(scores):
    weights = (scores - scores.amax(-1, keepdim=True).detach()).exp()
    return weights / weights.sum(-1, keepdim=True).detach()


def wrong_computed_in_bfloat16(scores):
    low = scores.to(torch.bfloat16)
    weights = (low - low.amax(-1, keepdim=True)).exp()
    return (weights / weights.sum(-1, keepdim=True)).to(scores.dtype)


def wrong_logarithms_returned(scores):
    shifted = scores - scores.amax(-1, keepdim=True)
    return shifted - shifted.exp().sum(-1, keepdim=True).log()
