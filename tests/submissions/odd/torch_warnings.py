import torch


def split_heads(x, num_heads):
    if x.shape[-1] % num_heads:
        raise ValueError("not divisible")
    torch.zeros(2, 3).T.T
    torch.ones(3, 2, 4).mT
    torch.nested.nested_tensor([torch.ones(2)])
    torch.empty(2).resize_(3)
    return x.unflatten(-1, (num_heads, x.shape[-1] // num_heads)).transpose(1, 2)
