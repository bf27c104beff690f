class Text(str):
    def __getitem__(self, key):
        return object()

    def encode(self, *args):
        return self


class Odd(Exception):
    def __str__(self):
        return Text("odd")


def split_heads(x, num_heads):
    raise Odd
