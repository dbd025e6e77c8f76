"""Underlines stand under their text, whatever its letters."""

from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@relay
def 損失(λ: Tensor[Float, (N, 3)], ω: Tensor[Float, (4,)]):
    return (
        λ  # 正則化
        + ω
    )
