def split_heads(x, num_heads):
    x.unflatten(-1, (num_heads, -1)).transpose(1, 2)
