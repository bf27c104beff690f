import torch


def split_heads(x, num_heads):
    return torch.ones(2**50)
