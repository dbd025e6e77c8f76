"""Kernel functions as Python callables: what a compiled program calls in the place of torch.

A call looks at its operands: their forms choose the text (`Layout`), their sizes and strides the
grid and the integers that are passed. Everything that follows from these is found once and kept,
so that a call with known sizes makes its results and starts its kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Final, TypeAlias, final

import torch

from ..config import current
from ..ir.dims import Dim
from ..ir.expr import Function, type_of
from ..ir.types import SizeType, TensorType, TupleType, Type
from .build import function_of, interprets, launch_options
from .kernel import (
    Argument,
    Config,
    Form,
    Kernel,
    Layout,
    Lowered,
    Number,
    Parts,
    Read,
    Scratch,
    Size,
    Stride,
    Tiles,
    Written,
)

MOST_SHAPES: Final = 256
"""A kernel function keeps what follows from so many combinations of sizes at most."""

_WIDE: Final = 2**31

Lower: TypeAlias = Callable[[Layout], Lowered]
Choose: TypeAlias = Callable[[Kernel, Sequence[Callable[[], None]]], int]
"""Gives the number of the configuration to use, given one call for each."""


def first_config(kernel: Kernel, attempts: Sequence[Callable[[], None]]) -> int:
    """Choose what the cost model expects to be best."""
    return 0


@final
@dataclass(frozen=True, slots=True)
class _Storage:
    """A tensor that a call makes, or the operand that it writes to."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    overwrites: int | None
    starts_zero: bool

    def make(self, operands: Sequence[Any], device: torch.device) -> torch.Tensor:
        """Give the tensor of one call."""
        if self.overwrites is not None:
            return operands[self.overwrites]
        make = torch.zeros if self.starts_zero else torch.empty
        return make(self.shape, dtype=self.dtype, device=device)


@final
@dataclass(frozen=True, slots=True)
class _Launch:
    """One kernel, ready for certain sizes. Each of `fill` is an integer, or where in the operands
    and the storage of the call a value is found."""

    function: Any
    grid: tuple[int, ...]
    fill: tuple[tuple[int, int] | int, ...]
    named: Mapping[str, int | bool]

    def run(self, found: tuple[Sequence[Any], Sequence[torch.Tensor]]) -> None:
        """Start the kernel."""
        args = [v if isinstance(v, int) else found[v[0]][v[1]] for v in self.fill]
        self.function[self.grid](*args, **self.named)


@final
@dataclass(frozen=True, slots=True)
class _Prepared:
    """A group ready for certain sizes; `results` says which storage each result is, and is one
    number where the group gives one value that is no tuple."""

    storage: tuple[_Storage, ...]
    launches: tuple[_Launch, ...]
    results: tuple[int, ...] | int


_OPERANDS: Final = 0
_STORAGE: Final = 1


@final
class KernelCall:
    """A kernel function of a program on one device.

    Called with its operands (tensors, and numbers of rank 0) it gives its result, or a tuple of
    its results, in fresh storage but for what it overwrites. Raises NoTriton.
    """

    def __init__(
        self,
        function: Function,
        lower: Lower,
        device: torch.device,
        choose: Choose = first_config,
    ) -> None:
        self._function: Final = function
        self._lower: Final = lower
        self._device: Final = device
        self._choose: Final = choose
        self._types: Final = [type_of(p) for p in function.params]
        self._gives: Final = function.body.ty
        self._lowered: Final[dict[Layout, Lowered]] = {}
        self._prepared: Final[dict[tuple[Any, ...], _Prepared]] = {}

    def __call__(self, *operands: Any) -> Any:
        """Run the kernels of the group."""
        key = tuple([_key(v, t) for v, t in zip(operands, self._types, strict=True)])
        prepared = self._prepared.get(key)
        if prepared is None:
            prepared = self._prepare(operands)
            if len(self._prepared) >= MOST_SHAPES:
                del self._prepared[next(iter(self._prepared))]
            self._prepared[key] = prepared
        storage = [s.make(operands, self._device) for s in prepared.storage]
        if self._device.type == "cuda" and self._device.index not in (None, _current_device()):
            with torch.cuda.device(self._device):
                _run(prepared, operands, storage)
        else:
            _run(prepared, operands, storage)
        if isinstance(prepared.results, int):
            return storage[prepared.results]
        return tuple([storage[i] for i in prepared.results])

    def lowered(self, layout: Layout) -> Lowered:
        """Give the kernels for a layout, as text."""
        if layout not in self._lowered:
            self._lowered[layout] = self._lower(layout)
        return self._lowered[layout]

    def _prepare(self, operands: Sequence[Any]) -> _Prepared:
        sizes = _Sizes(zip(self._types, operands, strict=True))
        lowered = _fitting(self.lowered(_layout(operands)), sizes)
        storage = _StoragePlan(sizes)
        started = [self._started(k, operands, sizes, storage) for k in lowered.kernels]
        launches = tuple(s for s in started if s is not None)
        return _Prepared(tuple(storage.made), launches, self._results(storage))

    def _results(self, storage: _StoragePlan) -> tuple[int, ...] | int:
        if isinstance(self._gives, TupleType):
            return tuple(storage.result(i) for i in range(len(self._gives.fields)))
        return storage.result(0)

    def _started(
        self, kernel: Kernel, operands: Sequence[Any], sizes: _Sizes, storage: _StoragePlan
    ) -> _Launch | None:
        fill = tuple(_place(a, operands, sizes, storage) for a in kernel.arguments)
        function = function_of(kernel)
        candidates = [
            _Launch(function, _grid(kernel, c, sizes), fill, _named(c)) for c in kernel.configs
        ]
        if 0 in candidates[0].grid:
            return None  # nothing to do, and an empty grid is refused
        if len(candidates) == 1:
            return candidates[0]
        return candidates[self._choose(kernel, self._attempts(candidates, operands, storage))]

    def _attempts(
        self, candidates: Sequence[_Launch], operands: Sequence[Any], storage: _StoragePlan
    ) -> list[Callable[[], None]]:
        """Give a trial of each candidate, on copies of what the kernel would overwrite."""

        def attempt(launch: _Launch) -> Callable[[], None]:
            copies = [o.clone() if isinstance(o, torch.Tensor) else o for o in operands]
            made = [s.make(copies, self._device) for s in storage.made]
            return lambda: launch.run((copies, made))

        return [attempt(c) for c in candidates]


def _fitting(lowered: Lowered, sizes: _Sizes) -> Lowered:
    """Give the first alternative whose limits hold."""
    while any(sizes.value(dim) > most for dim, most in lowered.limits):
        assert lowered.otherwise is not None
        lowered = lowered.otherwise
    return lowered


def _run(prepared: _Prepared, operands: Sequence[Any], storage: Sequence[torch.Tensor]) -> None:
    """Start the kernels, on the current stream of the current device."""
    for launch in prepared.launches:
        launch.run((operands, storage))


def _current_device() -> int:
    return torch.cuda.current_device()


def _key(value: Any, ty: Type) -> Any:
    """Give what a call's preparation depends on of an operand."""
    if isinstance(value, torch.Tensor):
        return value.shape, value.stride()
    return value if isinstance(ty, SizeType) else type(value)


def _layout(operands: Sequence[Any]) -> Layout:
    tensors = [o for o in operands if isinstance(o, torch.Tensor)]
    return Layout(
        tuple(map(_form, operands)),
        is_wide=any(_extent(t) >= _WIDE for t in tensors),
        is_tf32=current().tf32,
        is_interpreted=interprets(),
    )


def _form(value: Any) -> Form:
    if not isinstance(value, torch.Tensor):
        return Form.NUMBER
    return Form.CONTIGUOUS if value.is_contiguous() else Form.STRIDED


def _extent(tensor: torch.Tensor) -> int:
    """Give how many elements lie between the first and the last of a tensor."""
    reach = sum((s - 1) * abs(d) for s, d in zip(tensor.shape, tensor.stride(), strict=True))
    return max(reach + 1, tensor.numel())


@final
class _Sizes:
    """The integers that operands tell of the dims in their types."""

    def __init__(self, operands: Iterable[tuple[Any, Any]]) -> None:
        self._known: Final[dict[Dim, int]] = {}
        for ty, value in operands:
            match ty:
                case SizeType(dim):
                    self._known.setdefault(dim, int(value))
                case TensorType(shape) if shape:
                    for dim, size in zip(shape, value.shape, strict=True):
                        self._known.setdefault(dim, size)
                case _:
                    pass

    def value(self, dim: Dim) -> int:
        """Give the value of a dim: told by an operand, or computed from its parts."""
        return dim.value(self._known.get)


@final
class _StoragePlan:
    """The tensors that a call makes, while its kernels are prepared."""

    def __init__(self, sizes: _Sizes) -> None:
        self.made: Final[list[_Storage]] = []
        self._sizes: Final = sizes
        self._results: Final[dict[int, int]] = {}
        self._scratch: Final[dict[int, int]] = {}

    def place(self, argument: Written | Scratch) -> int:
        """Give the position of the tensor of a result, or of a scratch."""
        match argument:
            case Written(result=number, overwrites=overwrites):
                places = self._results
            case Scratch(number=number):
                places, overwrites = self._scratch, None
        if number not in places:
            shape = tuple(map(self._sizes.value, argument.shape))
            dtype = getattr(torch, argument.dtype.name)
            places[number] = len(self.made)
            self.made.append(_Storage(shape, dtype, overwrites, argument.starts_zero))
        return places[number]

    def result(self, number: int) -> int:
        """Give the position of the tensor of a result."""
        return self._results[number]


def _place(
    argument: Argument, operands: Sequence[Any], sizes: _Sizes, storage: _StoragePlan
) -> tuple[int, int] | int:
    match argument:
        case Read(operand=operand) | Number(operand=operand):
            return _OPERANDS, operand
        case Stride(operand, axis):
            return int(operands[operand].stride(axis))
        case Written() | Scratch():
            return _STORAGE, storage.place(argument)
        case Size(dim):
            return sizes.value(dim)


def _grid(kernel: Kernel, config: Config, sizes: _Sizes) -> tuple[int, ...]:
    blocks = dict(config.constants)

    def count(tiles: Tiles | Parts) -> int:
        if isinstance(tiles, Parts):
            return sum(map(count, tiles.tiles))
        whole = sizes.value(tiles.dim)
        return whole if tiles.block is None else -(-whole // blocks[tiles.block])

    return tuple(prod(map(count, axis)) for axis in kernel.grid)


def _named(config: Config) -> dict[str, int | bool]:
    return dict(config.constants) | launch_options(config)
