def split_heads(*args, **kwargs):
    x, num_heads = args
    if x.shape[-1] % num_heads:
        raise ValueError("not divisible")
    return x.unflatten(-1, (num_heads, x.shape[-1] // num_heads)).transpose(1, 2)
