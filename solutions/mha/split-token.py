"""Versions of split_token: the reference, other right ways and known wrong ones.

(D,) -> (H, d) only gives one axis its two factors; the token stays where it is.
"""

import torch


def _width(q, num_heads):
    """d_head, or ValueError."""
    if q.shape[-1] % num_heads:
        raise ValueError(f"d_model {q.shape[-1]} is not divisible by num_heads {num_heads}")
    return q.shape[-1] // num_heads


def reference(q, num_heads):
    d_model = q.shape[0]
    if d_model % num_heads:
        raise ValueError(f"d_model {d_model} is not divisible by num_heads {num_heads}")
    return q.unflatten(0, (num_heads, d_model // num_heads))


# --- right ------------------------------------------------------------------------------------------------


def right_view(q, num_heads):
    return q.view(num_heads, _width(q, num_heads))


def right_view_rest(q, num_heads):
    _width(q, num_heads)
    return q.view(num_heads, -1)


def right_reshape(q, num_heads):
    # Splitting one axis never needs a copy, whatever the stride: this reshape is a view.
    return torch.reshape(q, (-1, _width(q, num_heads)))


def right_unfold(q, num_heads):
    width = _width(q, num_heads)
    return q.unfold(0, width, width)


def right_as_strided(q, num_heads):
    width = _width(q, num_heads)
    (stride,) = q.stride()
    return torch.as_strided(q, (num_heads, width), (width * stride, stride))


def right_einops(q, num_heads):
    from einops import rearrange

    _width(q, num_heads)
    return rearrange(q, "(h d) -> h d", h=num_heads)


def right_batch_of_one(token, heads):
    # As a batch of one token.
    return token.unsqueeze(0).view(1, heads, _width(token, heads)).squeeze(0)


class WidthError(ValueError):
    """A more telling ValueError."""


def right_subclass(q, *, num_heads):
    if len(q) % num_heads != 0:
        raise WidthError(f"{len(q)} features for {num_heads} heads")
    return q[None].unflatten(1, (num_heads, -1))[0]


right_lambda = lambda q, num_heads: q.view(num_heads, _width(q, num_heads))


# --- wrong: other numbers ---------------------------------------------------------------------------------


def wrong_axes_swapped(q, num_heads):
    return q.view(_width(q, num_heads), num_heads)


def wrong_axes_swapped__transposed(q, num_heads):
    return q.view(num_heads, _width(q, num_heads)).t()


def wrong_features_interleaved(q, num_heads):
    return q.view(_width(q, num_heads), num_heads).T


def wrong_features_interleaved__einops(q, num_heads):
    from einops import rearrange

    _width(q, num_heads)
    return rearrange(q, "(d h) -> h d", h=num_heads)


def wrong_features_interleaved__steps(q, num_heads):
    _width(q, num_heads)
    return torch.stack([q[head::num_heads] for head in range(num_heads)])


def wrong_whole_token_each(q, num_heads):
    _width(q, num_heads)
    return q.expand(num_heads, -1)


def wrong_whole_token_each__repeat(q, num_heads):
    _width(q, num_heads)
    return q.repeat(num_heads, 1)


def wrong_tuple_of_pieces(q, num_heads):
    _width(q, num_heads)
    return q.chunk(num_heads)


def wrong_tuple_of_pieces__list(q, num_heads):
    width = _width(q, num_heads)
    return [q[head * width : (head + 1) * width] for head in range(num_heads)]


def wrong_stride_assumed(q, num_heads):
    width = _width(q, num_heads)
    return q.as_strided((num_heads, width), (width, 1))


def wrong_offset_assumed(q, num_heads):
    width = _width(q, num_heads)
    (stride,) = q.stride()
    return q.as_strided((num_heads, width), (width * stride, stride), 0)


# --- wrong: right numbers, other memory -------------------------------------------------------------------


def wrong_copied(q, num_heads):
    return q.view(num_heads, _width(q, num_heads)).clone()


def wrong_copied__stack(q, num_heads):
    return torch.stack(q.split(_width(q, num_heads)))


def wrong_copied__cat(q, num_heads):
    return torch.cat([piece.unsqueeze(0) for piece in q.split(_width(q, num_heads))])


def wrong_copied__indexing(q, num_heads):
    return q[torch.arange(q.shape[0], device=q.device).view(num_heads, _width(q, num_heads))]


def wrong_copied__loop(q, num_heads):
    width = _width(q, num_heads)
    heads = q.new_empty(num_heads, width)
    for head in range(num_heads):
        heads[head] = q[head * width : (head + 1) * width]
    return heads


def wrong_copied_when_strided(q, num_heads):
    return q.contiguous().view(num_heads, _width(q, num_heads))


def wrong_copied_and_dropped(q, num_heads):
    pieces = torch.stack(q.split(_width(q, num_heads)))
    return q.view(pieces.shape)


# --- wrong: promises beside the numbers -------------------------------------------------------------------


def wrong_detached(q, num_heads):
    return q.detach().view(num_heads, _width(q, num_heads))


def wrong_detached__data(q, num_heads):
    return q.data.view(num_heads, _width(q, num_heads))


def wrong_no_value_error(q, num_heads):
    # view complains, but with a RuntimeError about shapes.
    return q.view(num_heads, q.shape[0] // num_heads)


def wrong_no_value_error__assert(q, num_heads):
    assert q.shape[0] % num_heads == 0, "d_model must be divisible by num_heads"
    return q.view(num_heads, -1)


def wrong_remainder_dropped(q, num_heads):
    width = q.shape[0] // num_heads
    return q[: num_heads * width].view(num_heads, width)


def wrong_remainder_dropped__more_heads(q, num_heads):
    # Ten features for four heads become five heads of two.
    return q.unflatten(0, (-1, max(1, q.shape[0] // num_heads)))


def wrong_remainder_dropped__unfold(q, num_heads):
    width = q.shape[0] // num_heads
    return q.unfold(0, width, width)[:num_heads]
