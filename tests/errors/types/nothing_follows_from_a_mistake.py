"""What is computed from something undefined is not blamed for it."""

from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@relay
def inner(x: Tensor[Float, (N, 3)]):
    return undefined_function(x)


@relay
def outer(x: Tensor[Float, (4, 3)]) -> Float:
    first = inner(x)
    state = first @ x

    def step(s):
        return s @ x.T

    for i in range(3):
        state = step(state) if i > 1 else state + undefined_value
        state = state.sumof()
    pair = (state, first)
    a, b = pair
    print(f"{a:.3f}", b)
    return a.sum() + b[0] + len(first) + pair[5]


def main() -> None:
    outer.check()
