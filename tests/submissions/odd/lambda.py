split_heads = lambda x, h: x.unflatten(-1, (h, x.shape[-1] // h)).transpose(1, 2) if x.shape[-1] % h == 0 else [].index(0)
