"""A tensor is opened in a display as if it were a list."""

from pyrelay import Dim, Float, Tensor, relay
from pyrelay.prelude import List

N = Dim("N")


@relay
def rows(xs: Tensor[Float, (N,)]) -> List[Float]:
    return [1.0, *xs]
