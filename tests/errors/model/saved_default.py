"""The default of an argument is something that no file can hold."""

from enum import Enum
from pathlib import Path

from pyrelay import Dim, Float, Int, Tensor, relay, relay_model

N = Dim("N")


class Level(Enum):
    LOW = 1


@relay_model
def line(x: Tensor[Float, (N, 2)], level: Int = Level.LOW) -> Tensor[Float, (N, 1)]:
    return relay.linear(x, out_features=1) * level


def main(folder: Path) -> None:
    """Save it."""
    relay.export_model(relay.create_model(line)).save(folder / "line.safetensors")
