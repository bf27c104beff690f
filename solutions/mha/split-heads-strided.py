"""Versions of split_heads_strided: the reference, other right ways and known wrong ones.

The view is written down by hand: sizes, strides and offset of the result, all derived from x's own.
"""

import torch


def _width(x, num_heads):
    """d_head, or ValueError."""
    if x.shape[-1] % num_heads:
        raise ValueError(f"d_model {x.shape[-1]} is not divisible by num_heads {num_heads}")
    return x.shape[-1] // num_heads


def reference(x, num_heads):
    batch, seq, d_model = x.shape
    if d_model % num_heads:
        raise ValueError(f"d_model {d_model} is not divisible by num_heads {num_heads}")
    width = d_model // num_heads
    per_batch, per_token, per_feature = x.stride()
    size = (batch, num_heads, seq, width)
    strides = (per_batch, width * per_feature, per_token, per_feature)
    return torch.as_strided(x, size, strides, x.storage_offset())


# --- right ------------------------------------------------------------------------------------------------


def right_method(x, num_heads):
    # Without an offset as_strided keeps x's own.
    batch, seq, _ = x.size()
    width = _width(x, num_heads)
    strides = (x.stride(0), width * x.stride(2), x.stride(1), x.stride(2))
    return x.as_strided((batch, num_heads, seq, width), strides)


def right_keywords(x, num_heads):
    width = _width(x, num_heads)
    sizes = [x.size(0), num_heads, x.size(1), width]
    s0, s1, s2 = x.stride()
    strides = [s0, width * s2, s1, s2]
    return torch.as_strided(input=x, size=sizes, stride=strides, storage_offset=x.storage_offset())


def right_two_steps(embeddings, heads):
    # First (B, S, H, d), then the two middle axes change places: as_strided both times.
    batch, seq, _ = embeddings.shape
    width = _width(embeddings, heads)
    s0, s1, s2 = embeddings.stride()
    split = embeddings.as_strided((batch, seq, heads, width), (s0, s1, width * s2, s2))
    t0, t1, t2, t3 = split.stride()
    return split.as_strided((batch, heads, seq, width), (t0, t2, t1, t3))


def right_unbound(x, num_heads):
    width = _width(x, num_heads)
    shape, stride = list(x.shape), list(x.stride())
    shape[1:] = [num_heads, shape[1], width]
    stride[1:] = [width * stride[2], stride[1], stride[2]]
    return torch.Tensor.as_strided(x, shape, stride)


class HeadCountError(ValueError):
    """A more telling ValueError."""


class _Strided:
    """A callable that builds the view."""

    def __call__(self, x, *, num_heads):
        width, rest = divmod(x.shape[2], num_heads)
        if rest:
            raise HeadCountError(num_heads)
        a, b, c = x.stride()
        return x.as_strided((x.shape[0], num_heads, x.shape[1], width), (a, c * width, b, c))


right_instance = _Strided()


# --- wrong: other numbers ---------------------------------------------------------------------------------


def wrong_contiguous_assumed(x, num_heads):
    batch, seq, d_model = x.shape
    width = _width(x, num_heads)
    return torch.as_strided(x, (batch, num_heads, seq, width), (seq * d_model, width, d_model, 1))


def wrong_last_stride_assumed(x, num_heads):
    batch, seq, _ = x.shape
    width = _width(x, num_heads)
    per_batch, per_token, _ = x.stride()
    return torch.as_strided(x, (batch, num_heads, seq, width), (per_batch, width, per_token, 1))


def wrong_batch_stride_derived(x, num_heads):
    batch, seq, _ = x.shape
    width = _width(x, num_heads)
    _, per_token, step = x.stride()
    size = (batch, num_heads, seq, width)
    return torch.as_strided(x, size, (seq * per_token, width * step, per_token, step))


def wrong_token_stride_derived(x, num_heads):
    batch, seq, d_model = x.shape
    width = _width(x, num_heads)
    per_batch, _, step = x.stride()
    size = (batch, num_heads, seq, width)
    return torch.as_strided(x, size, (per_batch, width * step, d_model * step, step))


def wrong_offset_dropped(x, num_heads):
    batch, seq, _ = x.shape
    width = _width(x, num_heads)
    per_batch, per_token, step = x.stride()
    return torch.as_strided(x, (batch, num_heads, seq, width), (per_batch, width * step, per_token, step), 0)


def wrong_head_stride_unscaled(x, num_heads):
    # d instead of d * s2: the same unless the last stride is above 1.
    batch, seq, _ = x.shape
    width = _width(x, num_heads)
    per_batch, per_token, step = x.stride()
    return torch.as_strided(x, (batch, num_heads, seq, width), (per_batch, width, per_token, step))


def wrong_strides_of_a_copy(x, num_heads):
    batch, seq, _ = x.shape
    width = _width(x, num_heads)
    size = (batch, num_heads, seq, width)
    return torch.as_strided(x, size, (num_heads * seq * width, seq * width, width, 1))


def wrong_head_and_token_strides_swapped(x, num_heads):
    batch, seq, _ = x.shape
    width = _width(x, num_heads)
    per_batch, per_token, step = x.stride()
    return torch.as_strided(x, (batch, num_heads, seq, width), (per_batch, per_token, width * step, step))


def wrong_features_before_heads(x, num_heads):
    batch, seq, _ = x.shape
    width = _width(x, num_heads)
    per_batch, per_token, step = x.stride()
    return torch.as_strided(x, (batch, num_heads, seq, width), (per_batch, step, per_token, num_heads * step))


def wrong_left_token_first(x, num_heads):
    batch, seq, _ = x.shape
    width = _width(x, num_heads)
    per_batch, per_token, step = x.stride()
    return torch.as_strided(x, (batch, seq, num_heads, width), (per_batch, per_token, width * step, step))


# --- wrong: right numbers, by other means -----------------------------------------------------------------


def wrong_other_view(x, num_heads):
    batch, seq, _ = x.shape
    return x.view(batch, seq, num_heads, _width(x, num_heads)).transpose(1, 2)


def wrong_other_view__unflatten(x, num_heads):
    return x.unflatten(-1, (num_heads, _width(x, num_heads))).permute(0, 2, 1, 3)


def wrong_other_view__mixed(x, num_heads):
    batch, seq, _ = x.shape
    width = _width(x, num_heads)
    per_batch, per_token, step = x.stride()
    split = x.as_strided((batch, seq, num_heads, width), (per_batch, per_token, width * step, step))
    return split.transpose(1, 2)


def wrong_other_view__only_strides_read(x, num_heads):
    # Lets view and transpose find the strides, then repeats them.
    view = x.unflatten(-1, (num_heads, _width(x, num_heads))).transpose(1, 2)
    return x.as_strided(view.shape, view.stride())


def wrong_made_contiguous_first(x, num_heads):
    batch, seq, d_model = x.shape
    width = _width(x, num_heads)
    size = (batch, num_heads, seq, width)
    return torch.as_strided(x.contiguous(), size, (seq * d_model, width, d_model, 1))


def wrong_copied(x, num_heads):
    return reference(x, num_heads).clone()


def wrong_copied__contiguous(x, num_heads):
    return reference(x, num_heads).contiguous()


def wrong_copied__as_strided_copy(x, num_heads):
    view = reference(x, num_heads)
    return torch.as_strided_copy(x, view.shape, view.stride())


# --- wrong: promises beside the numbers -------------------------------------------------------------------


def wrong_detached(x, num_heads):
    return reference(x.detach(), num_heads)


def wrong_detached__data(x, num_heads):
    return reference(x.data, num_heads)


def wrong_detached__no_grad(x, num_heads):
    with torch.no_grad():
        return reference(x, num_heads)


def wrong_no_value_error(x, num_heads):
    # as_strided never complains: the last features are left out.
    batch, seq, d_model = x.shape
    width = d_model // num_heads
    per_batch, per_token, step = x.stride()
    return torch.as_strided(x, (batch, num_heads, seq, width), (per_batch, width * step, per_token, step))


def wrong_other_exception(x, num_heads):
    assert x.shape[-1] % num_heads == 0, "d_model must be divisible by num_heads"
    return reference(x, num_heads)
