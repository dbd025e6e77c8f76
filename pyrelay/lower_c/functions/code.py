"""The Python function of a C function at certain shapes: guards, cells, the call, the result.

def relay_power(v0, v1):
    try:
        if not (v1.__class__ in plain_classes and v1.shape == k1 and v1.is_contiguous() ...):
            return other(v0, v1)
        r0 = empty(k2, k3)
        frame = frames.pop() if frames else new()
        ints = frame.ints
        ints[14] = v0 if v0.__class__ is int else number(v0)
        ints[15] = v1.data_ptr()
        ints[16] = r0.data_ptr()
        status = function(frame.address)
        if status and not again(status, frame):
            return fallback(v0, v1)
        result = r0
        frames.append(frame)
        return result
    except Unfit:
        return fallback(v0, v1)

Its arguments are the numbers and tensors in those of the C function.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeAlias, final

import torch

from ...config import current
from ...dataclass import dataclass
from ...ir.dims import Dim
from ...ir.types import TensorType, TupleType, Type, bool_, is_float, known_dtype
from ...kernels.operands import contiguous_strides
from ..launching.frames import PLAIN_CLASSES, filler_of, is_plain, maker_of
from .c_text import CText
from .c_types import leaves_of, number_dtype
from .routing import policy
from .spare import spare

HEAD: Final = 15
"""The cells of `relay_call` in C, before those of arguments and results."""

STACK_CELL: Final = 1
"""The place among them of the bytes of the stack."""

_PRODUCTS_CELL: Final = 9
"""The place of the policy of products."""

_SPARE_CELL: Final = 10
"""The place of the memory that the thread keeps."""

FILE: Final = "<calls of a function in C>"

Callee: TypeAlias = Callable[..., Any]


class Unfit(Exception):  # noqa: N818  the host takes the argument
    """An argument is nothing that C can take."""


@final
class FunctionFrame:
    """The cells of a call, as integers and as floats, and their address."""

    __slots__ = ("address", "floats", "ints")

    def __init__(self, head: Sequence[int], count: int) -> None:
        """`head` are the first cells, `count` is the number of those behind them."""
        self.ints: Final = array("q", (*head, *[0] * max(1, count)))
        self.floats: Final = memoryview(self.ints).cast("B").cast("d")
        self.address: Final = self.ints.buffer_info()[0]


@final
@dataclass(frozen=True, slots=True)
class Ways:
    """The callables of the Python function of a C function: `function` is that of C, `other` takes
    arguments of other shapes, `fallback` does what C does not, `again` returns whether a call that
    ended with a status has succeeded at last, `new` makes a frame."""

    function: Callable[[int], int]
    other: Callee
    fallback: Callee
    again: Callable[[int, FunctionFrame], bool]
    new: Callable[[], FunctionFrame]


def call_of(
    text: CText,
    ways: Ways,
    frames: list[FunctionFrame],
    shapes: Sequence[Sequence[int]],
    guarded: Sequence[Any],
    sizes: Sequence[int],
) -> Callee:
    """Return the Python function of a C function. `shapes` are those of the tensors that are
    results, `guarded` what each argument must be as for them: a shape, a number, or None for
    anything; `sizes` are passed before the arguments."""
    return _FunctionWriter(text, ways, frames).function(shapes, guarded, sizes)


def number(value: Any) -> Any:
    """Return a number, or that in a tensor of no dims. Raises Unfit."""
    if isinstance(value, int | float):
        return value
    if value.__class__ not in PLAIN_CLASSES:
        raise Unfit
    return value.item()


def row_by_row(value: Any) -> Any:
    """Return a tensor whose elements lie row by row. Raises Unfit."""
    if not isinstance(value, torch.Tensor) or not is_plain(value):
        raise Unfit
    if value.device.type != "cpu" or value.layout is not torch.strided:
        raise Unfit
    return value.contiguous()


_SHARED: Final[dict[str, Any]] = {
    "plain_classes": PLAIN_CLASSES,
    "current": current,
    "policy": policy,
    "spare": spare,
    "Unfit": Unfit,
    "number": number,
}


@final
class _FunctionWriter:
    def __init__(self, text: CText, ways: Ways, frames: list[FunctionFrame]) -> None:
        self._text: Final = text
        self._params: Final = [t for p in text.params for _, t in leaves_of(p)]
        self._listed: Final = ", ".join(f"v{n}" for n in range(len(self._params)))
        self._lines: Final[list[str]] = []
        self._known: Final[dict[str, Any]] = _SHARED | {
            "function": ways.function,
            "other": ways.other,
            "fallback": ways.fallback,
            "again": ways.again,
            "new": ways.new,
            "frames": frames,
        }

    def function(
        self, shapes: Sequence[Sequence[int]], guarded: Sequence[Any], sizes: Sequence[int]
    ) -> Callee:
        """Return the function."""
        guards = [g for n, value in enumerate(guarded) for g in self._guards(n, value)]
        if guards:
            self._line(f"if not ({' and '.join(guards)}):")
            self._line(f"    return other({self._listed})")
        results = [t for _, t in leaves_of(self._text.result)]
        tensors = [t for t in results if number_dtype(t) is None]
        for index, (ty, shape) in enumerate(zip(tensors, shapes, strict=True)):
            given = (self._name(tuple(shape)), self._name(contiguous_strides(shape)))
            empty = self._name(maker_of(_torch_dtype(ty)))
            self._line(f"r{index} = {empty}({', '.join(given)})")
        self._line("frame = frames.pop() if frames else new()")
        self._line("ints = frame.ints")
        if self._text.is_deep:
            self._line("ints[0] = current().max_depth")
        if self._text.kernels is not None:
            self._line(f"ints[{_SPARE_CELL}] = spare()")
        if self._text.routed:
            self._line(f"ints[{_PRODUCTS_CELL}] = policy()")
        cells = [*map(str, sizes), *map(self._cell, range(len(self._params)))]
        cells += [f"r{index}.data_ptr()" for index in range(len(tensors))]
        types = [*self._text.sizes, *self._params, *tensors]
        for place, (ty, cell) in enumerate(zip(types, cells, strict=True), HEAD):
            self._line(f"{_name_of_cells(ty)}[{place}] = {cell}")
        self._line("status = function(frame.address)")
        self._line("if status and not again(status, frame):")
        self._line(f"    return fallback({self._listed})")
        places = iter(range(HEAD + len(cells), HEAD + len(cells) + len(results)))
        made = (f"r{index}" for index in range(len(tensors)))
        self._line(f"result = {self._value(self._text.result, places, made)}")
        self._line("frames.append(frame)")
        self._line("return result")
        return self._compiled()

    def _compiled(self) -> Callee:
        name = self._text.name
        lines = (f"    {line}" for line in self._lines)
        if any("number(" in line for line in self._lines):
            lines = (f"    {line}" for line in lines)
            lines = (
                "    try:",
                *lines,
                "    except Unfit:",
                f"        return fallback({self._listed})",
            )
        code = compile("\n".join((f"def {name}({self._listed}):", *lines)), FILE, "exec")
        exec(code, self._known)
        return self._known[name]

    def _line(self, text: str) -> None:
        self._lines.append(text)

    def _name(self, value: Any) -> str:
        """Return the name under which the function knows a value."""
        name = f"k{len(self._known)}"
        self._known[name] = value
        return name

    def _guards(self, index: int, value: Any) -> Iterator[str]:
        """Yield what must hold of an argument."""
        name, ty = f"v{index}", self._params[index]
        if number_dtype(ty) is not None:
            if value is not None:
                yield f"{name} == {value}"
            return
        assert isinstance(ty, TensorType)
        yield f"{name}.__class__ in plain_classes"
        if is_float(ty.dtype):
            yield f"not {name}.is_neg()"
        if value is not None:
            yield f"{name}.shape == {self._name(value)}"
        yield f"{name}.is_contiguous()"

    def _cell(self, index: int) -> str:
        """Return the expression of what is passed of an argument."""
        name, dtype = f"v{index}", number_dtype(self._params[index])
        if dtype is None:
            return f"{name}.data_ptr()"
        python = "float" if is_float(dtype) else "bool" if dtype == bool_ else "int"
        return f"{name} if {name}.__class__ is {python} else number({name})"

    def _value(self, ty: Type, places: Iterator[int], tensors: Iterator[str]) -> str:
        """Return the expression of a value of a type, as host code has it; `places` are the cells
        of the numbers in it, `tensors` the names of its tensors."""
        if isinstance(ty, TupleType):
            return f"({''.join(f'{self._value(t, places, tensors)}, ' for t in ty.fields)})"
        dtype = number_dtype(ty)
        if dtype is None:
            return next(tensors)
        cell = f"{_name_of_cells(ty)}[{next(places)}]"
        if is_float(dtype):
            return f"{self._name(filler_of(_torch_dtype(ty)))}((), {cell})"
        return f"{cell} != 0" if dtype == bool_ else cell


def _name_of_cells(given: Type | Dim) -> str:
    """Return how the function writes the cells for a value of a type, or for a size."""
    dtype = None if isinstance(given, Dim) else number_dtype(given)
    return "frame.floats" if dtype is not None and is_float(dtype) else "ints"


def _torch_dtype(ty: Type) -> torch.dtype:
    assert isinstance(ty, TensorType)
    return getattr(torch, known_dtype(ty).name)
