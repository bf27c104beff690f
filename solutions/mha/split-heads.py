"""Versions of split_heads: the reference, other right ways and known wrong ones.

(B, S, D) -> (B, H, S, d) is a re-labelling: every right version is a view whose strides follow from x's own.
"""

from functools import partial

import torch


def _width(x, num_heads):
    """d_head, or ValueError."""
    if x.shape[-1] % num_heads:
        raise ValueError(f"d_model {x.shape[-1]} is not divisible by num_heads {num_heads}")
    return x.shape[-1] // num_heads


def reference(x, num_heads):
    d_model = x.shape[-1]
    if d_model % num_heads:
        raise ValueError(f"d_model {d_model} is not divisible by num_heads {num_heads}")
    tokens_then_heads = x.unflatten(-1, (num_heads, d_model // num_heads))
    return tokens_then_heads.transpose(1, 2)


# --- right ------------------------------------------------------------------------------------------------


def right_view_transpose(x, num_heads):
    batch, seq, _ = x.shape
    return x.view(batch, seq, num_heads, _width(x, num_heads)).transpose(1, 2)


def right_view_permute(x, num_heads):
    batch, seq, _ = x.shape
    return x.view(batch, seq, num_heads, _width(x, num_heads)).permute(0, 2, 1, 3)


def right_reshape_swapaxes(x, num_heads):
    # Splitting one axis never needs a copy, whatever the strides: this reshape is a view.
    _width(x, num_heads)
    return torch.swapaxes(torch.reshape(x, (*x.shape[:2], num_heads, -1)), 1, 2)


def right_unflatten_movedim(x, num_heads):
    return x.unflatten(-1, (-1, _width(x, num_heads))).movedim(2, 1)


def right_transposed_first(x, num_heads):
    # Features forward, then split, then swap back: (B, D, S) -> (B, H, d, S) -> (B, H, S, d).
    batch, seq, _ = x.shape
    return x.transpose(1, 2).view(batch, num_heads, _width(x, num_heads), seq).mT


def right_einops(x, num_heads):
    from einops import rearrange

    _width(x, num_heads)
    return rearrange(x, "b s (h d) -> b h s d", h=num_heads)


def right_unfold(x, num_heads):
    # Windows of d features, d apart.
    width = _width(x, num_heads)
    return x.unfold(-1, width, width).transpose(1, 2)


def right_as_strided(x, num_heads):
    batch, seq, _ = x.shape
    width = _width(x, num_heads)
    batch_stride, seq_stride, feature_stride = x.stride()
    strides = (batch_stride, width * feature_stride, seq_stride, feature_stride)
    return x.as_strided((batch, num_heads, seq, width), strides)


class HeadCountError(ValueError):
    """A more telling ValueError."""


def right_subclass(embeddings, heads):
    tokens, rest = divmod(embeddings.size(2), heads)
    if rest:
        raise HeadCountError(heads)
    return embeddings.view(embeddings.size(0), embeddings.size(1), heads, tokens).transpose(-3, -2)


class _Splitter:
    def __call__(self, x, *, num_heads):
        return x.unflatten(2, (num_heads, _width(x, num_heads))).permute(0, 2, 1, 3)


right_instance = _Splitter()

right_lambda = lambda x, num_heads: x.unflatten(-1, (num_heads, _width(x, num_heads))).transpose(1, 2)


def _split(axis, x, num_heads):
    return x.unflatten(axis, (num_heads, _width(x, num_heads))).transpose(1, 2)


right_partial = partial(_split, -1)


# --- wrong: other numbers ---------------------------------------------------------------------------------


def wrong_viewed_straight(x, num_heads):
    batch, seq, _ = x.shape
    return x.reshape(batch, num_heads, seq, _width(x, num_heads))


def wrong_viewed_straight__contiguous(x, num_heads):
    batch, seq, _ = x.shape
    return x.contiguous().view(batch, num_heads, -1, _width(x, num_heads))


def wrong_viewed_straight__view(x, num_heads):
    # The same mistake, but view refuses where x is not contiguous.
    batch, seq, _ = x.shape
    return x.view(batch, num_heads, seq, _width(x, num_heads))


def wrong_viewed_straight__folded(x, num_heads):
    batch = x.shape[0]
    return x.reshape(batch * num_heads, -1, _width(x, num_heads)).unflatten(0, (batch, num_heads))


def wrong_features_before_heads(x, num_heads):
    return x.unflatten(-1, (_width(x, num_heads), num_heads)).permute(0, 3, 1, 2)


def wrong_features_before_heads__einops(x, num_heads):
    from einops import rearrange

    _width(x, num_heads)
    return rearrange(x, "b s (d h) -> b h s d", h=num_heads)


def wrong_features_before_heads__steps(x, num_heads):
    _width(x, num_heads)
    return torch.stack([x[..., h::num_heads] for h in range(num_heads)], dim=1)


def wrong_features_before_tokens(x, num_heads):
    return x.unflatten(-1, (num_heads, _width(x, num_heads))).permute(0, 2, 3, 1)


def wrong_left_token_first(x, num_heads):
    return x.unflatten(-1, (num_heads, _width(x, num_heads)))


def wrong_left_token_first__guessed_by_size(x, num_heads):
    # Takes an axis as long as there are heads for the head axis.
    _width(x, num_heads)
    heads = x.unflatten(-1, (num_heads, -1))
    return heads if heads.shape[1] == num_heads else heads.transpose(1, 2)


def wrong_folded_into_batch(x, num_heads):
    split = x.unflatten(-1, (num_heads, _width(x, num_heads))).transpose(1, 2)
    return split.reshape(-1, *split.shape[2:])


def wrong_batch_and_sequence_swapped(x, num_heads):
    # As if x were (S, B, D).
    return x.unflatten(-1, (num_heads, _width(x, num_heads))).permute(1, 2, 0, 3)


def wrong_whole_token_each(x, num_heads):
    _width(x, num_heads)
    return x.unsqueeze(1).expand(-1, num_heads, -1, -1)


def wrong_whole_token_each__repeat(x, num_heads):
    _width(x, num_heads)
    return x.unsqueeze(1).repeat(1, num_heads, 1, 1)


def wrong_strides_assumed(x, num_heads):
    batch, seq, d_model = x.shape
    width = _width(x, num_heads)
    return x.as_strided((batch, num_heads, seq, width), (seq * d_model, width, d_model, 1))


# --- wrong: right numbers, other memory -------------------------------------------------------------------


def wrong_tokens_flattened(x, num_heads):
    batch, seq, _ = x.shape
    flat = x.view(batch * seq, num_heads, _width(x, num_heads))
    return flat.view(batch, seq, num_heads, -1).transpose(1, 2)


def wrong_made_contiguous(x, num_heads):
    return x.unflatten(-1, (num_heads, _width(x, num_heads))).transpose(1, 2).contiguous()


def wrong_made_contiguous__stack(x, num_heads):
    return torch.stack(x.split(_width(x, num_heads), dim=-1), dim=1)


def wrong_made_contiguous__cat(x, num_heads):
    pieces = torch.cat(x.split(_width(x, num_heads), dim=-1), dim=1)
    return pieces.view(x.shape[0], num_heads, x.shape[1], -1)


def wrong_made_contiguous__loop(x, num_heads):
    batch, seq, _ = x.shape
    width = _width(x, num_heads)
    out = x.new_empty(batch, num_heads, seq, width)
    for head in range(num_heads):
        out[:, head] = x[:, :, head * width : (head + 1) * width]
    return out


def wrong_copied_with_the_strides_of_a_view(x, num_heads):
    return x.clone().unflatten(-1, (num_heads, _width(x, num_heads))).transpose(1, 2)


def wrong_copied_with_the_strides_of_a_view__index_select(x, num_heads):
    batch, seq, d_model = x.shape
    picked = x.index_select(2, torch.arange(d_model, device=x.device))
    return picked.view(batch, seq, num_heads, _width(x, num_heads)).transpose(1, 2)


def wrong_copied_with_the_strides_of_a_view__indexing(x, num_heads):
    width = _width(x, num_heads)
    columns = torch.arange(x.shape[-1], device=x.device).view(num_heads, width)
    return x[:, :, columns].transpose(1, 2)


def wrong_copied_with_the_strides_of_a_view__stack(x, num_heads):
    split = x.unflatten(-1, (num_heads, _width(x, num_heads)))
    return torch.stack(split.unbind(2), dim=2).permute(0, 2, 1, 3)


def wrong_copied_when_strided(x, num_heads):
    batch, seq, _ = x.shape
    return x.contiguous().view(batch, seq, num_heads, _width(x, num_heads)).transpose(1, 2)


def wrong_copied_when_strided__flattened(x, num_heads):
    batch, seq, _ = x.shape
    flat = x.reshape(batch * seq, num_heads, _width(x, num_heads))
    return flat.view(batch, seq, num_heads, -1).transpose(1, 2)


def wrong_copied_and_dropped(x, num_heads):
    # Returns the view, but has copied x on the way.
    width = _width(x, num_heads)
    split = x.unflatten(-1, (num_heads, width)).transpose(1, 2)
    per_head = split.clone()
    return split if per_head.shape == split.shape else per_head


# --- wrong: promises beside the numbers -------------------------------------------------------------------


def wrong_detached(x, num_heads):
    return x.detach().unflatten(-1, (num_heads, _width(x, num_heads))).transpose(1, 2)


def wrong_detached__data(x, num_heads):
    return x.data.view(*x.shape[:2], num_heads, _width(x, num_heads)).permute(0, 2, 1, 3)


def wrong_detached__no_grad(x, num_heads):
    with torch.no_grad():
        return x.unflatten(-1, (num_heads, _width(x, num_heads))).transpose(1, 2)


def wrong_no_value_error(x, num_heads):
    # view complains, but with a RuntimeError about shapes.
    batch, seq, d_model = x.shape
    return x.view(batch, seq, num_heads, d_model // num_heads).transpose(1, 2)


def wrong_no_value_error__assert(x, num_heads):
    batch, seq, d_model = x.shape
    assert d_model % num_heads == 0, "d_model must be divisible by num_heads"
    return x.view(batch, seq, num_heads, d_model // num_heads).transpose(1, 2)


def wrong_remainder_dropped(x, num_heads):
    width = x.shape[-1] // num_heads
    return x[..., : num_heads * width].unflatten(-1, (num_heads, width)).transpose(1, 2)


def wrong_remainder_dropped__unfold(x, num_heads):
    width = x.shape[-1] // num_heads
    return x.unfold(-1, width, width)[:, :, :num_heads].transpose(1, 2)
