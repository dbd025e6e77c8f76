from dataclasses import dataclass

from pyrelay import Float, Tensor, relay


@dataclass(frozen=True)
class Cell:
    weight: Tensor[Float, (4, 3)]
    bias: Tensor[Float, (4,)]


@relay
def step(cell: Cell, h: Tensor[Float, (4,)]) -> Tensor[Float, (4,)]:
    return cell.weight @ h + cell.bias
