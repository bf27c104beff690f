import torch


def split_heads(x, num_heads):
    return x.view(1, 2
