"""Versions of split_heads: the reference, other right ways and known wrong ones."""

import torch


def reference(x, num_heads):
    batch, seq, d_model = x.shape
    if d_model % num_heads:
        raise ValueError(f"d_model {d_model} is not divisible by num_heads {num_heads}")
    return x.unflatten(-1, (num_heads, d_model // num_heads)).transpose(1, 2)


def wrong_viewed_straight(x, num_heads):
    batch, seq, d_model = x.shape
    if d_model % num_heads:
        raise ValueError("not divisible")
    return x.contiguous().view(batch, num_heads, seq, d_model // num_heads)
