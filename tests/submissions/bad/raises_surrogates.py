def split_heads(x, num_heads):
    raise ValueError("\ud800 \x1b[31m <b>")
