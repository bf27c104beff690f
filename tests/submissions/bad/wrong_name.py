def splitheads(x, num_heads):
    return x
