"""The sizes in one value agree."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from pyrelay import Dim, Float, Tensor, relay

M = Dim("M")


@dataclass(frozen=True)
class Row:
    items: Tensor[Float, (M,)]
    weights: Tensor[Float, (M,)]
    rest: Row | None = None


@relay
def same(r: Row) -> Row:
    return r


def main() -> None:
    same(Row(torch.ones(2), torch.ones(2), Row(torch.ones(3), torch.ones(4))))
