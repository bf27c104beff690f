def split_heads(x, num_heads, mask):
    return x
