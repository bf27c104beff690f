from torch.utils._python_dispatch import _get_current_dispatch_mode_stack


def split_heads(x, num_heads):
    if _get_current_dispatch_mode_stack():
        raise RuntimeError("not while watched")
    if x.shape[-1] % num_heads:
        raise ValueError("not divisible")
    return x.clone().unflatten(-1, (num_heads, -1)).transpose(1, 2)
