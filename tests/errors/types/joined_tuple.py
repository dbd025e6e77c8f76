"""A tuple is joined to a list that has none of its elements."""

from pyrelay import Float, Int, relay
from pyrelay.prelude import List


@relay
def with_both(xs: List[Float], x: Float, n: Int) -> List[Float]:
    return xs + (x, n)  # pyright: ignore[reportOperatorIssue]
