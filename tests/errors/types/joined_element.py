"""An element is joined to a list as if it were one."""

from pyrelay import Float, relay
from pyrelay.prelude import List


@relay
def with_last(xs: List[Float], x: Float) -> List[Float]:
    return xs + x
