"""The file of a saved model is of a version that does not exist yet."""

import json
from pathlib import Path

import torch
from safetensors.torch import save_file

from pyrelay import relay


def main(folder: Path) -> None:
    """Load it."""
    tensors = {".program": torch.zeros(1, dtype=torch.uint8)}
    save_file(tensors, folder / "new.safetensors", {"pyrelay": json.dumps({"version": 7})})
    relay.load_model(folder / "new.safetensors")
