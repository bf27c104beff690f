def split_heads(hidden, h, verbose=False):
    batch, seq, d_model = hidden.shape
    if d_model % h:
        raise ValueError(f"{d_model} is not divisible by {h}")
    return hidden.unflatten(-1, (h, d_model // h)).transpose(1, 2)
