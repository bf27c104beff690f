def split_heads(x):
    return x
