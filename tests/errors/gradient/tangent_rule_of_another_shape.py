"""The rule of `custom_jvp` returns a tangent of another shape than the result."""

from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@relay
def rule(
    primals: tuple[Tensor[Float, (N, 3)]], tangents: tuple[Tensor[Float, (N, 3)]]
) -> tuple[Float, Tensor[Float, (N, 3)]]:
    return primals[0].sum(), tangents[0]


@relay.custom_jvp(rule)
@relay
def total(x: Tensor[Float, (N, 3)]) -> Float:
    return x.sum()
