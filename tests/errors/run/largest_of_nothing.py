"""The largest element of a list that is empty."""

from pyrelay import Float, relay
from pyrelay.prelude import List


@relay
def worst(losses: List[Float]) -> Float:
    return 2.0 * max(losses)


def main() -> None:
    """Call it with nothing."""
    worst([])
