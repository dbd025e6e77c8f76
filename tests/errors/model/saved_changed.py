"""The file of a saved model was changed."""

from pathlib import Path

from pyrelay import Dim, Float, Tensor, relay, relay_model

N = Dim("N")


@relay_model
def line(x: Tensor[Float, (N, 2)]) -> Tensor[Float, (N, 1)]:
    return relay.linear(x, out_features=1)


def main(folder: Path) -> None:
    """Change a weight in the file."""
    relay.export_model(relay.create_model(line)).save(folder / "line.safetensors")
    whole = (folder / "line.safetensors").read_bytes()
    (folder / "line.safetensors").write_bytes(whole[:-1] + b"?")
    relay.load_model(folder / "line.safetensors")
