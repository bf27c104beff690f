split_heads = [1, 2, 3]
