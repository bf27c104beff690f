def split_heads(x, num_heads):
    return split_heads(x, num_heads)
