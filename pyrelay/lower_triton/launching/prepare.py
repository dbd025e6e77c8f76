"""Kernels of a group made ready for certain sizes: grids, integers, and what is to be allocated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, Final, TypeAlias, final

import torch

from ...dataclass import dataclass
from ...ir.dims import Dim
from ...kernels.calling import Argument, Number, Read, Scratch, Size, Sizes, Stride, Written
from ..kernel import Config, Kernel, Lowered, Parts, Tiles
from .start import Launch, Started


@final
@dataclass(frozen=True, slots=True)
class Storage:
    """A tensor that a call makes; `result` is the number of the result that it is, None where it
    is for the kernels alone."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    starts_zero: bool
    result: int | None

    @property
    def bytes(self) -> int:
        """How much room it takes."""
        return prod(self.shape) * self.dtype.itemsize

    def make(self, device: torch.device) -> torch.Tensor:
        """Return the tensor of one call."""
        make = torch.zeros if self.starts_zero else torch.empty
        return make(self.shape, dtype=self.dtype, device=device)


@final
@dataclass(frozen=True, slots=True)
class Prepared:
    """A group ready for certain sizes.

    Its kernels run on the operands of a call followed by its storage. `results` says which storage
    each result is, and is one number where the group gives one value that is no tuple.
    `in_torch` says that calls of torch do it faster.
    """

    storage: tuple[Storage, ...]
    launches: tuple[Launch, ...]
    results: tuple[int, ...] | int
    in_torch: bool = False


@final
@dataclass(frozen=True, slots=True)
class Question:
    """One of several implementations of a task: kernels, and the integers that they are passed."""

    kernels: tuple[Kernel, ...]
    integers: tuple[int, ...]


Choose: TypeAlias = Callable[[Question, Sequence[Callable[[], object]]], int]
"""Return the number of the implementation to use, given one call for each; the first is what is
expected to be best."""


def expected(question: Question, attempts: Sequence[Callable[[], object]]) -> int:
    """Choose what the cost model expects to be best."""
    return 0


def fitting(lowered: Lowered, sizes: Sizes) -> Lowered:
    """Return the first alternative whose limits hold."""
    while any(sizes.value(dim) > most for dim, most in lowered.limits):
        assert lowered.otherwise is not None
        lowered = lowered.otherwise
    return lowered


@final
class Preparing:
    """One group while it is made ready for the sizes of its operands."""

    def __init__(self, operands: Sequence[Any], sizes: Sizes, device: torch.device) -> None:
        self.storage: Final[list[Storage]] = []
        self._operands: Final = operands
        self._sizes: Final = sizes
        self._device: Final = device
        self._placed: Final[dict[tuple[type, int], int]] = {}

    def result(self, number: int) -> int:
        """Return the position of the storage of a result."""
        return self._placed[Written, number]

    def candidates(self, kernel: Kernel) -> list[Launch]:
        """Return a kernel in each of its configurations; none where it has nothing to do. Raises
        NoTriton."""
        started = self._started(kernel)
        grids = [_grid(kernel, config, self._sizes) for config in kernel.configs]
        if 0 in grids[0]:
            return []  # an empty grid is refused
        pairs = zip(kernel.configs, grids, strict=True)
        return [Launch(kernel, config, grid, started) for config, grid in pairs]

    def question(self, kernels: Sequence[Kernel]) -> Question:
        """Return the key of the choice of how to run kernels."""
        found: list[int] = []
        for kernel in kernels:
            for argument in kernel.arguments:
                match argument:
                    case Size(dim):
                        found.append(self._sizes.value(dim))
                    case Stride(operand, axis):
                        found.append(int(self._operands[operand].stride(axis)))
                    case _:
                        pass
        return Question(tuple(kernels), tuple(found))

    def _started(self, kernel: Kernel) -> Started:
        fixed: list[int | None] = []
        holes: list[tuple[int, int, Any]] = []
        for place, argument in enumerate(kernel.arguments):
            value = self._argument(argument)
            if isinstance(value, tuple):
                holes.append((place, *value))
            fixed.append(value if isinstance(value, int) else None)
        return Started(tuple(fixed), tuple(holes))

    def _argument(self, argument: Argument) -> tuple[int, Any] | int:
        match argument:
            case Read(operand, dtype):
                return operand, _torch_dtype(dtype)
            case Number(operand):
                return operand, None
            case Stride(operand, axis):
                return int(self._operands[operand].stride(axis))
            case Size(dim):
                return self._sizes.value(dim)
            case Written(dtype=dtype, overwrites=operand) if operand is not None:
                return operand, _torch_dtype(dtype)
            case Written(number, dtype, shape):
                return self._place(argument, number, number, shape), _torch_dtype(dtype)
            case Scratch(number, dtype, shape):
                return self._place(argument, number, None, shape), _torch_dtype(dtype)

    def _place(
        self, argument: Written | Scratch, number: int, result: int | None, shape: tuple[Dim, ...]
    ) -> int:
        """Return the position of storage among the values of a call."""
        key = (type(argument), number)
        if key not in self._placed:
            sizes = tuple(map(self._sizes.value, shape))
            dtype = _torch_dtype(argument.dtype)
            self._placed[key] = len(self.storage)
            self.storage.append(Storage(sizes, dtype, argument.starts_zero, result))
        return len(self._operands) + self._placed[key]


def _torch_dtype(dtype: Any) -> torch.dtype:
    return getattr(torch, dtype.name)


def _grid(kernel: Kernel, config: Config, sizes: Sizes) -> tuple[int, ...]:
    """Return the number of programs along each of three axes."""
    blocks = dict(config.constants)

    def count(tiles: Tiles | Parts) -> int:
        if isinstance(tiles, Parts):
            return sum(map(count, tiles.tiles))
        whole = sizes.value(tiles.dim)
        return whole if tiles.block is None else -(-whole // blocks[tiles.block])

    found = tuple(prod(map(count, axis)) for axis in kernel.grid)
    return (*found, *(1 for _ in range(3 - len(found))))
