"""A loaded model gets a matrix of the wrong width."""

from pathlib import Path

import torch

from pyrelay import Dim, Float, Tensor, relay, relay_model

N = Dim("N")


@relay_model
def line(x: Tensor[Float, (N, 2)], scale: Float = 1.0) -> Tensor[Float, (N, 1)]:
    return relay.linear(x, out_features=1) * scale


def main(folder: Path) -> None:
    """Call it."""
    relay.export_model(relay.create_model(line)).save(folder / "line.safetensors")
    relay.load_model(folder / "line.safetensors")(torch.ones(3, 4))
