import torch

loop = []
loop.append(loop)


def split_heads(x, num_heads):
    if x.shape[-1] % num_heads:
        raise ValueError('not divisible')
    y = x.unflatten(-1, (num_heads, -1)).transpose(1, 2)
    return loop
