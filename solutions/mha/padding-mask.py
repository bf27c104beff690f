"""Versions of masked_softmax: the reference, other right ways and known wrong ones."""

import math
from functools import partial

import torch
import torch.nn.functional as F


def reference(scores, keep):
    visible = keep[:, None, None, :]
    masked = scores.masked_fill(~visible, float("-inf"))
    top = masked.amax(dim=-1, keepdim=True).detach()
    # A row with nothing to attend to has no maximum and no sum; it stays at zero all the way.
    weights = (masked - top.masked_fill(top == float("-inf"), 0.0)).exp()
    total = weights.sum(dim=-1, keepdim=True)
    return weights / total.masked_fill(total == 0, 1.0)


# --- right -------------------------------------------------------------------------------------------------


def right_nan_to_num(scores, keep):
    # masked_fill lets no gradient through to hidden keys, so the NaN of a dead row stays inside.
    return scores.masked_fill(~keep[:, None, None], float("-inf")).softmax(dim=-1).nan_to_num(0.0)


def right_where_dead(scores, keep):
    visible = keep.view(keep.shape[0], 1, 1, keep.shape[1])
    weights = torch.softmax(torch.where(visible, scores, -math.inf), dim=-1)
    return torch.where(visible.any(-1, keepdim=True), weights, torch.zeros_like(weights))


def right_lowest_number_then_zeroed(scores, keep):
    visible = keep[:, None, None, :]
    weights = scores.masked_fill(~visible, torch.finfo(scores.dtype).min).softmax(-1)
    return weights * visible


def right_lowest_number_then_dead_rows_zeroed(scores, keep):
    visible = keep[:, None, None, :]
    weights = scores.masked_fill(~visible, torch.finfo(scores.dtype).min).softmax(-1)
    return weights.masked_fill(~visible.any(dim=-1, keepdim=True), 0.0)


def right_dead_rows_opened_first(scores, keep):
    # A dead sample may attend to everything, so that no NaN ever arises; then its weights are dropped.
    alive = keep.any(dim=-1, keepdim=True)
    hidden = (~keep & alive)[:, None, None, :]
    weights = F.softmax(scores.masked_fill(hidden, -math.inf), dim=-1)
    return weights.masked_fill(~alive[:, None, None, :], 0.0)


def right_softmax_then_renormalised(scores, keep):
    weights = scores.softmax(-1) * keep[:, None, None, :]
    total = weights.sum(-1, keepdim=True)
    return weights / torch.where(total > 0, total, torch.ones_like(total))


def right_exponentials_masked(scores, keep):
    visible = keep[:, None, None, :].to(scores.dtype)
    weights = (scores - scores.amax(-1, keepdim=True)).exp() * visible
    return weights / weights.sum(-1, keepdim=True).clamp(min=torch.finfo(scores.dtype).tiny)


def right_additive_bias_of_the_lowest_number(scores, keep):
    # The sum may round to -inf in 16 bit, but only for hidden keys of a row that has a visible one;
    # dead rows are opened, so they have none.
    alive = keep.any(-1, keepdim=True)
    bias = torch.zeros(keep.shape, dtype=scores.dtype).masked_fill(
        ~keep & alive, torch.finfo(scores.dtype).min
    )
    weights = (scores + bias[:, None, None]).softmax(-1)
    return weights * alive[:, None, None].to(scores.dtype)


def right_float32_inside(scores, keep):
    from einops import rearrange

    masked = scores.masked_fill(~rearrange(keep, "b k -> b 1 1 k"), -math.inf)
    weights = F.softmax(masked, dim=-1, dtype=torch.float32)
    return weights.nan_to_num(nan=0.0).to(scores.dtype)


def right_log_softmax(scores, keep):
    hidden = ~keep[:, None, None, :]
    alive = keep.any(-1)[:, None, None, None]
    masked = scores.masked_fill(hidden & alive, -math.inf)
    return torch.where(alive, masked.log_softmax(-1).exp(), 0.0)


def right_mask_repeated_per_head(scores, keep):
    batch, heads, seq_q, seq_k = scores.shape
    flat = scores.reshape(batch * heads, seq_q, seq_k)
    mask = keep.repeat_interleave(heads, dim=0).unsqueeze(1)
    weights = flat.masked_fill(~mask, -math.inf).softmax(-1).nan_to_num(nan=0.0)
    return weights.view(batch, heads, seq_q, seq_k)


def right_mask_written_out(scores, keep):
    from einops import repeat

    _, heads, seq_q, _ = scores.shape
    mask = repeat(keep, "b k -> b h q k", h=heads, q=seq_q)
    masked = torch.full_like(scores, -math.inf)
    masked = torch.where(mask, scores, masked)
    return torch.nan_to_num(torch.softmax(masked, -1), nan=0.0)


def right_visible_keys_only(scores, keep):
    # Sample by sample: the softmax of the visible columns, written into zeros.
    samples = []
    for sample, mask in zip(scores, keep):
        out = torch.zeros_like(sample)
        if mask.any():
            out[..., mask] = sample[..., mask].softmax(-1)
        samples.append(out)
    return torch.stack(samples)


def right_scattered(scores, keep):
    samples = []
    for b in range(scores.shape[0]):
        index = keep[b].nonzero().squeeze(-1)
        weights = torch.softmax(scores[b].index_select(-1, index), dim=-1)
        samples.append(torch.zeros_like(scores[b]).index_copy(-1, index, weights))
    return torch.stack(samples)


def right_own_buffer_in_place(scores, keep):
    out = scores.clone()
    out.masked_fill_(~keep[:, None, None, :], -math.inf)
    return out.softmax(-1).masked_fill(~keep[:, None, None, :], 0.0)


def right_safe_softmax(scores, keep):
    return torch.ops.aten._safe_softmax(scores.masked_fill(~keep[:, None, None, :], -math.inf), -1)


def right_sum_by_matmul(scores, keep):
    # The mask itself is the vector that sums the visible exponentials.
    visible = keep.to(scores.dtype)[:, None, :, None]
    hidden = ~keep[:, None, None, :]
    weights = (
        scores - scores.masked_fill(hidden, torch.finfo(scores.dtype).min).amax(-1, keepdim=True)
    ).masked_fill(hidden, -math.inf)
    weights = weights.exp()
    total = weights @ visible
    return weights / (total + (total == 0).to(total.dtype))


def right_softmax_then_renormalised_in_float32(scores, keep):
    weights = scores.float().softmax(-1) * keep[:, None, None, :]
    return (weights / (weights.sum(-1, keepdim=True) + 1e-12)).to(scores.dtype)


def right_mask_as_logarithm(scores, keep):
    # log 1 = 0, log 0 = -inf; a dead sample is opened first so that no NaN arises.
    alive = keep.any(-1, keepdim=True)
    bias = (keep | ~alive).to(scores.dtype).log()
    return (scores + bias[:, None, None, :]).softmax(-1) * alive[:, None, None, :]


def right_sink_for_dead_rows(scores, keep):
    # A dead row gives all its weight to an extra column, which is cut off.
    alive = keep.any(-1)[:, None, None, None]
    sink = torch.zeros_like(scores[..., :1]).masked_fill(alive, -math.inf)
    masked = scores.masked_fill(~keep[:, None, None, :], -math.inf)
    return torch.cat([masked, sink], dim=-1).softmax(-1)[..., :-1]


right_lambda = lambda scores, keep: (  # noqa: E731
    scores.masked_fill(~keep[:, None, None], -torch.inf).softmax(-1).masked_fill(~keep[:, None, None], 0)
)


def _masked(scores, keep, fill):
    masked = scores.masked_fill(~keep[:, None, None, :], fill)
    return masked.softmax(-1).masked_fill(~keep.any(-1)[:, None, None, None], 0.0)


right_partial = partial(_masked, fill=-math.inf)


class _MaskedSoftmax:
    """A callable instance with an option of its own."""

    def __call__(self, s, mask, *, dim=-1):
        return s.masked_fill(mask.logical_not()[:, None, None, :], -math.inf).softmax(dim).nan_to_num(0.0)


right_callable_instance = _MaskedSoftmax()


# --- wrong -------------------------------------------------------------------------------------------------


def wrong_nan_on_dead_rows(scores, keep):
    return scores.masked_fill(~keep[:, None, None, :], -math.inf).softmax(-1)


def wrong_nan_on_dead_rows__by_hand(scores, keep):
    masked = scores.masked_fill(~keep[:, None, None, :], -math.inf)
    weights = (masked - masked.amax(-1, keepdim=True)).exp()
    return weights / weights.sum(-1, keepdim=True)


def wrong_mean_on_dead_rows(scores, keep):
    return scores.masked_fill(~keep[:, None, None, :], torch.finfo(scores.dtype).min).softmax(-1)


def wrong_mean_on_dead_rows__minus_1e9(scores, keep):
    fill = max(-1e9, torch.finfo(scores.dtype).min)
    return scores.masked_fill(~keep[:, None, None, :], fill).softmax(-1)


def wrong_dead_rows_unmasked(scores, keep):
    # The NaN was avoided by opening dead rows, and they were left open.
    hidden = ~keep & keep.any(-1, keepdim=True)
    return scores.masked_fill(hidden[:, None, None, :], -math.inf).softmax(-1)


def wrong_nan_gradient_on_dead_rows(scores, keep):
    bias = torch.zeros(keep.shape, dtype=scores.dtype).masked_fill(~keep, -math.inf)
    return (scores + bias[:, None, None, :]).softmax(-1).nan_to_num(0.0)


def wrong_nan_gradient_on_dead_rows__where(scores, keep):
    bias = torch.zeros(keep.shape, dtype=scores.dtype).masked_fill(~keep, -math.inf)
    weights = (scores + bias[:, None, None, :]).softmax(-1)
    return torch.where(keep.any(-1)[:, None, None, None], weights, 0.0)


def wrong_polarity_inverted(scores, keep):
    return _masked(scores, ~keep, -math.inf)


def wrong_mask_on_the_queries(scores, keep):
    rows = keep[:, None, :, None]
    return scores.masked_fill(~rows, -math.inf).softmax(-1).nan_to_num(0.0)


def wrong_mask_on_the_queries__lowest_number(scores, keep):
    rows = keep[:, None, :, None]
    weights = scores.masked_fill(~rows, torch.finfo(scores.dtype).min).softmax(-1)
    return weights * keep.any(-1)[:, None, None, None]


def wrong_not_renormalised(scores, keep):
    return scores.softmax(-1) * keep[:, None, None, :]


def wrong_zeros_before_the_softmax(scores, keep):
    weights = (scores * keep[:, None, None, :]).softmax(-1)
    return weights.masked_fill(~keep.any(-1)[:, None, None, None], 0.0)


def wrong_mask_added_as_numbers(scores, keep):
    weights = (scores + keep[:, None, None, :]).softmax(-1)
    return weights.masked_fill(~keep.any(-1)[:, None, None, None], 0.0)


def wrong_mask_of_another_sample(scores, keep):
    batch, heads, seq_q, seq_k = scores.shape
    mask = keep.repeat(heads, 1).view(batch, heads, 1, seq_k)
    return scores.masked_fill(~mask, -math.inf).softmax(-1).nan_to_num(0.0)


def wrong_mask_of_the_first_sample(scores, keep):
    return scores.masked_fill(~keep[0], -math.inf).softmax(-1).nan_to_num(0.0)


def wrong_fill_of_minus_1e4(scores, keep):
    return _masked(scores, keep, -1e4)


def wrong_fill_of_minus_1e4__dead_rows_averaged(scores, keep):
    return scores.masked_fill(~keep[:, None, None, :], -1e4).softmax(-1)


def wrong_fill_of_minus_1e4__hidden_zeroed(scores, keep):
    hidden = ~keep[:, None, None, :]
    return scores.masked_fill(hidden, -1e4).softmax(-1).masked_fill(hidden, 0)


def wrong_fill_too_large_for_float16(scores, keep):
    return _masked(scores, keep, -1e9)


def wrong_mask_ignored(scores, keep):
    return scores.softmax(dim=-1)


def wrong_right_padding_assumed(scores, keep):
    # The mask is boiled down to a length, so holes and padding on the left move.
    lengths = keep.sum(dim=-1, keepdim=True)
    return _masked(scores, torch.arange(keep.shape[-1]) < lengths, -math.inf)


def wrong_maximum_not_subtracted(scores, keep):
    weights = scores.exp() * keep[:, None, None, :]
    total = weights.sum(-1, keepdim=True)
    return weights / total.masked_fill(total == 0, 1.0)


def wrong_softmax_over_the_queries(scores, keep):
    weights = scores.masked_fill(~keep[:, None, None, :], -math.inf).softmax(-2)
    return weights.nan_to_num(0.0)


def wrong_scores_overwritten(scores, keep):
    scores.masked_fill_(~keep[:, None, None, :], -math.inf)
    return scores.softmax(-1).nan_to_num(0.0)


def wrong_mask_inverted_in_place(scores, keep):
    hidden = keep.logical_not_()
    return scores.masked_fill(hidden[:, None, None, :], -math.inf).softmax(-1).nan_to_num(0.0)


def wrong_promoted_to_float32(scores, keep):
    wide = torch.float64 if scores.dtype == torch.float64 else torch.float32
    masked = scores.masked_fill(~keep[:, None, None, :], -math.inf)
    return masked.softmax(-1, dtype=wide).nan_to_num(0.0)


def wrong_promoted_to_float32__always(scores, keep):
    return _masked(scores.float(), keep, -math.inf)


def wrong_gradient_lost(scores, keep):
    return _masked(scores.detach(), keep, -math.inf)


def wrong_gradient_lost__data(scores, keep):
    masked = scores.data.masked_fill(~keep[:, None, None, :], -math.inf)
    return torch.softmax(masked, -1).nan_to_num(0.0)


def wrong_computed_in_bfloat16(scores, keep):
    return _masked(scores.to(torch.bfloat16), keep, -math.inf).to(scores.dtype)
