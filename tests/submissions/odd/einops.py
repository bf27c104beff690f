from einops import rearrange


def split_heads(x, num_heads):
    if x.shape[-1] % num_heads:
        raise ValueError('not divisible')
    return rearrange(x, 'b s (h d) -> b h s d', h=num_heads)
