def split_heads(x, num_heads):
    größe, 长度, размер = x.shape
    if размер % num_heads:
        raise ValueError(f"{размер} is not divisible by {num_heads}")
    return x.unflatten(-1, (num_heads, размер // num_heads)).transpose(1, 2)
