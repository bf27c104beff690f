"""Versions of causal_mask: the reference, other right ways and known wrong ones."""

import math
from functools import lru_cache, partial

import torch


def _future(scores):
    """(Sq, Sk), True where the key comes after the query; the last query stands at the last key."""
    seq_q, seq_k = scores.shape[-2:]
    query = torch.arange(seq_q, device=scores.device).unsqueeze(1) + (seq_k - seq_q)
    return torch.arange(seq_k, device=scores.device) > query


def reference(scores):
    return scores.masked_fill(_future(scores), float("-inf"))


# --- right -------------------------------------------------------------------------------------------------


def right_triu(scores):
    seq_q, seq_k = scores.size(-2), scores.size(-1)
    ones = torch.ones(seq_q, seq_k, dtype=torch.bool, device=scores.device)
    return scores.masked_fill(ones.triu(diagonal=seq_k - seq_q + 1), -math.inf)


def right_tril_zero(scores):
    seq_q, seq_k = scores.shape[2:]
    keep = torch.tril(torch.ones(seq_q, seq_k), diagonal=seq_k - seq_q)
    return scores.masked_fill(keep == 0, float("-inf"))


def right_added_mask(scores):
    seq_q, seq_k = scores.shape[-2:]
    blocked = torch.full((seq_q, seq_k), -math.inf, dtype=scores.dtype, device=scores.device)
    return scores + blocked.triu(seq_k - seq_q + 1)


def right_added_float32_mask_cast_back(scores):
    seq_q, seq_k = scores.shape[-2:]
    mask = torch.zeros(seq_q, seq_k).masked_fill(_future(scores), float("-inf"))
    return (scores + mask).to(scores.dtype)


def right_added_logarithm(scores):
    # log 1 = 0 keeps a score, log 0 = -inf removes it.
    return scores + (~_future(scores)).to(scores.dtype).log()


def right_where(scores):
    seq_q, seq_k = scores.shape[-2:]
    distance = torch.arange(seq_k)[None, :] - torch.arange(seq_q)[:, None]
    return torch.where(distance <= seq_k - seq_q, scores, float("-inf"))


def right_where_full(scores):
    return torch.where(_future(scores), torch.full_like(scores, -torch.inf), scores)


def right_own_copy(scores):
    out = scores.clone()
    out[..., _future(scores)] = -math.inf
    return out


def right_row_by_row(scores):
    seq_q, seq_k = scores.shape[-2:]
    rows = []
    for i in range(seq_q):
        seen = max(i + 1 + seq_k - seq_q, 0)
        row = torch.full_like(scores[:, :, i], float("-inf"))
        row[..., :seen] = scores[:, :, i, :seen]
        rows.append(row)
    return torch.stack(rows, dim=2)


def right_prefix_columns(scores):
    # A square mask for the new tokens, with columns of zeros for the keys that were there before.
    seq_q, seq_k = scores.shape[-2:]
    mask = torch.full((seq_q, seq_q), -math.inf, dtype=scores.dtype).triu(1)
    if seq_k >= seq_q:
        mask = torch.cat([mask.new_zeros(seq_q, seq_k - seq_q), mask], dim=-1)
    else:
        mask = mask[:, seq_q - seq_k :]
    return scores + mask


def right_counted_from_the_end(scores):
    # Both axes flipped, position 0 is the last one, so the ordinary square rule applies.
    seq_q, seq_k = scores.shape[-2:]
    keep = torch.ones(seq_q, seq_k, dtype=torch.bool).triu().flip(0, 1)
    back_q = torch.arange(seq_q - 1, -1, -1).view(-1, 1)
    back_k = torch.arange(seq_k - 1, -1, -1).view(1, -1)
    assert torch.equal(keep, back_k >= back_q)
    return scores.masked_fill(~keep, -math.inf)


def right_single_query_skipped(scores):
    # One query is the last token: it may see every key, so there is nothing to hide.
    if scores.shape[-2] == 1:
        return scores.clone()
    return right_triu(scores)


def right_nothing_hidden_returns_the_input(scores):
    future = _future(scores)
    return scores.masked_fill(future, -math.inf) if future.any() else scores


def right_slice_of_a_buffer(scores):
    seq_q, seq_k = scores.shape[-2:]
    size = max(seq_q, seq_k)
    buffer = torch.tril(torch.ones(size, size)).view(1, 1, size, size)
    keep = buffer[:, :, size - seq_q :, size - seq_k :]
    return scores.masked_fill(keep == 0, float("-inf"))


def right_einops_positions(scores):
    from einops import rearrange

    seq_q, seq_k = scores.shape[-2:]
    query = rearrange(torch.arange(seq_k - seq_q, seq_k), "i -> i 1")
    key = rearrange(torch.arange(seq_k), "j -> 1 j")
    return scores.masked_fill(rearrange(key > query, "i j -> 1 1 i j"), -math.inf)


def right_cumulative(scores):
    # The first hidden key of each query is marked; everything after it is hidden too.
    seq_q, seq_k = scores.shape[-2:]
    first = torch.zeros(seq_q, seq_k + 1, dtype=torch.long)
    first[torch.arange(seq_q), (torch.arange(seq_q) + seq_k - seq_q + 1).clamp(0, seq_k)] = 1
    return scores.masked_fill(first.cumsum(-1)[:, :-1].bool(), -math.inf)


def right_subtracted(scores):
    blocked = torch.zeros_like(scores).masked_fill(_future(scores), math.inf)
    return torch.sub(scores, blocked)


@lru_cache(maxsize=None)
def _cached(seq_q, seq_k):
    return torch.ones(seq_q, seq_k, dtype=torch.bool).tril(seq_k - seq_q).logical_not()


def right_cached_mask(scores):
    return scores.masked_fill(_cached(*scores.shape[-2:]), -math.inf)


def _fill(scores, value):
    return torch.masked_fill(scores, _future(scores), value)


right_partial = partial(_fill, value=float("-inf"))

right_lambda = lambda scores: scores.masked_fill(_future(scores)[None, None], -torch.inf)  # noqa: E731


class _CausalMask:
    """A callable instance."""

    def __call__(self, s, *, fill=-math.inf):
        return s.masked_fill(_future(s), fill)


right_callable_instance = _CausalMask()


# --- wrong -------------------------------------------------------------------------------------------------


def _masked(scores, diagonal, value=-math.inf):
    future = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(diagonal)
    return scores.masked_fill(future, value)


def _offset(scores):
    return scores.shape[-1] - scores.shape[-2]


def wrong_aligned_top_left(scores):
    return _masked(scores, 1)


def wrong_aligned_top_left__tril(scores):
    seq_q, seq_k = scores.shape[-2:]
    keep = torch.tril(torch.ones(seq_q, seq_k))
    return scores.masked_fill(keep == 0, -math.inf)


def wrong_own_key_hidden(scores):
    return _masked(scores, _offset(scores))


def wrong_next_key_visible(scores):
    return _masked(scores, _offset(scores) + 2)


def wrong_past_hidden(scores):
    future = _future(scores)
    own = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(_offset(scores)).logical_and(~future)
    return scores.masked_fill(~future & ~own, -math.inf)


def wrong_polarity_inverted(scores):
    return scores.masked_fill(~_future(scores), -math.inf)


def wrong_multiplied_by_the_mask(scores):
    return scores * (~_future(scores)).to(scores.dtype)


def wrong_multiplied_by_the_mask__tril(scores):
    return torch.tril(scores, diagonal=_offset(scores))


def wrong_mask_added_as_numbers(scores):
    return scores + (~_future(scores)).to(scores.dtype)


def wrong_zero_times_infinity(scores):
    return scores + _future(scores).to(scores.dtype) * -math.inf


def wrong_finite_fill(scores):
    return scores.masked_fill(_future(scores), -1e9)


def wrong_finite_fill__finfo_min(scores):
    return scores.masked_fill(_future(scores), torch.finfo(scores.dtype).min)


def wrong_finite_fill__minus_1e4(scores):
    return scores.masked_fill(_future(scores), -1e4)


def wrong_finite_fill__minus_1e20(scores):
    return scores.masked_fill(_future(scores), -1e20)


def wrong_finite_fill__added(scores):
    return scores + _future(scores).to(scores.dtype) * -1e9


def wrong_finite_fill__finfo_min_of_float32(scores):
    return scores.masked_fill(_future(scores), torch.finfo(torch.float32).min)


def wrong_only_when_square(scores):
    return _masked(scores, 1) if _offset(scores) == 0 else scores.clone()


def wrong_prefix_on_the_wrong_side(scores):
    seq_q, seq_k = scores.shape[-2:]
    if seq_k < seq_q:
        return _masked(scores, seq_k - seq_q + 1)
    mask = torch.full((seq_q, seq_q), -math.inf, dtype=scores.dtype).triu(1)
    return scores + torch.cat([mask, mask.new_zeros(seq_q, seq_k - seq_q)], dim=-1)


def wrong_offset_never_negative(scores):
    return _masked(scores, max(_offset(scores), 0) + 1)


def wrong_empty_rows_left_open(scores):
    future = _future(scores)
    return scores.masked_fill(future & ~future.all(dim=-1, keepdim=True), -math.inf)


def wrong_written_in_place(scores):
    return scores.masked_fill_(_future(scores), -math.inf)


def wrong_written_in_place__indexed(scores):
    scores[..., _future(scores)] = -math.inf
    return scores


def wrong_written_in_place__data(scores):
    scores.data.masked_fill_(_future(scores), -math.inf)
    return scores


def wrong_promoted_to_float32(scores):
    seq_q, seq_k = scores.shape[-2:]
    return scores + torch.full((seq_q, seq_k), -math.inf).triu(seq_k - seq_q + 1)


def wrong_promoted_to_float32__always(scores):
    return scores.float().masked_fill(_future(scores), -math.inf)


def wrong_gradient_lost(scores):
    return scores.detach().masked_fill(_future(scores), -math.inf)


def wrong_softmax_included(scores):
    future = _future(scores)
    weights = scores.masked_fill(future, -math.inf).softmax(-1)
    return weights.masked_fill(future.all(-1, keepdim=True), 0.0)
