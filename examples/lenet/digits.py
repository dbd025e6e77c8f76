"""Handwritten digits as tensors: scikit-learn's, or MNIST's own files.

scikit-learn ships 1,797 real digits of 8x8 pixels; LeNet takes 28x28, so they are enlarged
bilinearly. MNIST's files (IDX, plain or gzipped) are read where the user has them.
"""

from __future__ import annotations

import gzip
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from sklearn import datasets
from torch import Tensor

IMAGE = (1, 28, 28)


@dataclass(frozen=True)
class Digits:
    """Images of 28x28 between 0 and 1 and their labels, to train on and to test with."""

    name: str
    train_images: Tensor
    train_labels: Tensor
    test_images: Tensor
    test_labels: Tensor

    def to(self, device: str) -> Digits:
        """Return the same digits on a device."""
        tensors = (self.train_images, self.train_labels, self.test_images, self.test_labels)
        return Digits(self.name, *(t.to(device) for t in tensors))

    def batches(self, size: int, seed: int) -> Iterator[tuple[Tensor, Tensor]]:
        """Return the training digits in the order of a seed, `size` at a time."""
        order = _shuffled(len(self.train_labels), seed).to(self.train_labels.device)
        for rows in order.split(size):
            yield self.train_images[rows], self.train_labels[rows]

    def stacked(self, size: int, seed: int) -> tuple[Tensor, Tensor]:
        """Return the same batches, but only the full ones, as one tensor of each."""
        count = len(self.train_labels) // size
        rows = _shuffled(len(self.train_labels), seed)[: count * size]
        rows = rows.to(self.train_labels.device)
        images = self.train_images[rows].reshape(count, size, *IMAGE)
        return images, self.train_labels[rows].reshape(count, size)


def load(mnist: Path | None = None) -> Digits:
    """Return MNIST from a directory with its four files, else the digits of scikit-learn."""
    return _sklearn() if mnist is None else _mnist(mnist)


def _sklearn() -> Digits:
    pixels, target = datasets.load_digits(return_X_y=True)
    small = torch.as_tensor(pixels, dtype=torch.float32).reshape(-1, 1, 8, 8) / 16
    images = torch.nn.functional.interpolate(small, size=IMAGE[1:], mode="bilinear")
    labels = torch.as_tensor(target, dtype=torch.int64)
    order = _shuffled(len(labels), seed=0)  # the split is the same in every run
    train, test = order[:1437], order[1437:]
    name = "1,797 digits of scikit-learn, 8x8 enlarged to 28x28"
    return Digits(name, images[train], labels[train], images[test], labels[test])


def _mnist(directory: Path) -> Digits:
    parts = [
        _idx(directory, name)
        for name in (
            "train-images-idx3-ubyte",
            "train-labels-idx1-ubyte",
            "t10k-images-idx3-ubyte",
            "t10k-labels-idx1-ubyte",
        )
    ]
    train_images, test_images = ((p.float() / 255).reshape(-1, *IMAGE) for p in parts[::2])
    train_labels, test_labels = (p.long() for p in parts[1::2])
    return Digits("MNIST", train_images, train_labels, test_images, test_labels)


def _idx(directory: Path, name: str) -> Tensor:
    """Read one IDX file of bytes: two zeros, 8 (bytes), the rank, the sizes, the elements."""
    plain, zipped = directory / name, directory / f"{name}.gz"
    if not plain.exists() and not zipped.exists():
        raise SystemExit(f"{directory} has neither {plain.name} nor {zipped.name}")
    data = plain.read_bytes() if plain.exists() else gzip.decompress(zipped.read_bytes())
    rank = data[3]
    shape = [int.from_bytes(data[4 * i : 4 * i + 4], "big") for i in range(1, rank + 1)]
    body = data[4 + 4 * rank :]
    if data[:3] != b"\0\0\x08" or len(body) != math.prod(shape):
        raise SystemExit(f"{name} in {directory} is not an IDX file of bytes")
    return torch.from_numpy(np.frombuffer(body, np.uint8).reshape(shape).copy())


def _shuffled(count: int, seed: int) -> Tensor:
    return torch.randperm(count, generator=torch.Generator().manual_seed(seed))
