def split_heads(x, num_heads):
    batch, seq, d_model = x.shape
    if d_model % num_heads:
        raise ValueError("not divisible")
    d = d_model // num_heads
    s0, s1, s2 = x.stride()
    return x.as_strided((batch, num_heads, seq, d), (s0, d * s2, s1, s2))
