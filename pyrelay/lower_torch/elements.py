"""Bodies of fused operators over torch tensors: what `Elements` means, all places at once.

A coordinate is a tensor of integers over the places of the result, and an element of an operand is
read by indexing with such tensors. It is slow and obviously right: the tests compare every
operator's body with the operator, and kernels with the bodies. Where a body reads outside of an
operand it is stopped, so nothing here hides what a kernel would do there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias, assert_never, final

import torch

from ..ir.declaration.elements import Place
from ..ir.declaration.lowering import (
    Contraction,
    Elementwise,
    MadeOf,
    Pointwise,
    Reduction,
    Scatter,
    inside,
)
from ..ir.dims import Dim, DimAtom, DimHole, DimOp, DimVar
from ..ir.expr import Call, type_of
from ..ir.op import Op, Solver
from ..ir.types import DType, SizeType, TensorType, TupleType, Type, int64, known_dtype
from ..operators.shared.moving import broadcast_index
from .apply import apply_op, as_tensors, compute_dtype, is_omitted, value_of_body
from .constants import torch_dtype
from .scalars import TorchScalars, TorchValue, tensor_of

Size: TypeAlias = Callable[[Dim], int]
Coordinate: TypeAlias = "torch.Tensor | int"


class UndefinedElementsError(Exception):
    """The body of an operator does not define the elements of a call."""


def fused_value(
    op: Op,
    call: Call,
    operands: Sequence[Any],
    size: Size,
    device: torch.device,
    solver: Solver | None,
) -> Any:
    """Return the value of an operator call from what the operator is inside a kernel.

    `size` evaluates the dims in types and attributes; `solver` answers the type rules of the
    operators that a composite is made of. Raises KeyError for an operator that is nothing there,
    UndefinedElementsError for a call that its declaration does not cover.
    """
    types = [type_of(a) for a in call.args]
    given = [
        None if is_omitted(op, i, v) else as_tensors(v, t, device)
        for i, (v, t) in enumerate(zip(operands, types, strict=True))
    ]
    site = _Call(call, types, given, size, device, solver)
    match inside(op.lowering):
        case None:
            raise KeyError(op.name)
        case Pointwise(body):
            return site.pointwise(body)
        case Elementwise(body):
            return site.elementwise(body)
        case Reduction(combine):
            return site.reduction(combine)
        case Contraction(fused=fused):
            assert callable(fused)
            return site.contraction(fused)
        case Scatter() as scatter:
            return site.scatter(scatter)
        case MadeOf(body):
            return site.made_of(body)
        case other:
            assert_never(other)


@final
class TorchElements(TorchScalars):
    """The arithmetic of one body over all places of its result.

    Numbers take the dtype of the tensors they meet, and among themselves that of the result.
    """

    def __init__(self, dtype: torch.dtype, device: torch.device, size: Size) -> None:
        super().__init__(dtype, device)
        self._size: Final = size
        self._known: Final[dict[str, Coordinate]] = {}

    def places(self, shape: Sequence[Dim]) -> Place:
        """Return all places of a shape: a coordinate for each dim."""
        sizes = [self._size(d) for d in shape]
        index: list[Dim] = []
        for dim, extent in enumerate(sizes):
            spread = [-1 if d == dim else 1 for d in range(len(sizes))]
            along = torch.arange(extent, device=self._device).reshape(spread)
            index.append(self._named(along))
        return Place(tuple(index), tuple(shape))

    def _named(self, value: Coordinate) -> Dim:
        name = f"%{len(self._known)}"
        self._known[name] = value
        return Dim.of(name)

    def value(self, coordinate: Dim) -> Coordinate:
        """Return the values of a coordinate at all places."""
        total: Coordinate = 0
        for monomial, factor in coordinate.terms:
            term: Coordinate = factor
            for atom in monomial:
                term = term * self._atom(atom)
            total = total + term
        return total

    def _atom(self, atom: DimAtom) -> Coordinate:
        match atom:
            case DimVar(name):
                return self._known[name] if name in self._known else self._size(Dim.of(name))
            case DimHole():
                raise KeyError(atom.key)
            case DimOp(kind, left, right):
                a, b = self.value(left), self.value(right)
                if kind == "max":
                    return self.maximum(a, b)  # pyright: ignore[reportReturnType]  integers
                return a // b if kind == "floordiv" else a % b

    def number(self, coordinate: Dim, /) -> TorchValue:
        """Return the value of a coordinate, as integers."""
        return self.value(coordinate)

    def constant(self, value: float, dtype: DType, /) -> TorchValue:
        """Return a number in a dtype."""
        return self.cast(value, dtype)

    def coordinate(self, value: TorchValue, size: Dim, /, *, from_end: bool = True) -> Dim:
        """Return integers as a coordinate, those below 0 counted from the end, if they may be."""
        if not isinstance(value, torch.Tensor):
            return size + int(value) if value < 0 and from_end else Dim.of(int(value))
        whole = value.to(torch.int64)
        if from_end:
            whole = torch.where(whole < 0, whole + self.value(size), whole)
        return self._named(whole)

    # Values of several dtypes meet in one body, so a number follows its neighbours.

    def _torch(self, function: Callable[..., torch.Tensor], *values: TorchValue) -> torch.Tensor:
        dtype = next((v.dtype for v in values if isinstance(v, torch.Tensor)), self._dtype)
        return function(*(tensor_of(v, dtype, self._device) for v in values))

    def where(self, condition: TorchValue, a: TorchValue, b: TorchValue, /) -> TorchValue:
        """Return `a` where the condition holds and `b` elsewhere."""
        chosen = tensor_of(condition, torch.bool, self._device)
        return self._torch(lambda x, y: torch.where(chosen, x, y), a, b)


@final
class TorchSource:
    """An operand that is a tensor."""

    def __init__(self, elements: TorchElements, tensor: torch.Tensor, ty: TensorType) -> None:
        self._elements: Final = elements
        self._tensor: Final = tensor
        self._type: Final = ty

    @property
    def shape(self) -> tuple[Dim, ...]:
        """The sizes of the operand."""
        return self._type.shape

    @property
    def dtype(self) -> DType:
        """The dtype of its elements."""
        return known_dtype(self._type)

    def __call__(self, *index: Dim) -> torch.Tensor:
        """Return the elements at coordinates. Raises IndexError for one that lies outside."""
        return self.within(index, True, None)

    def within(self, index: Sequence[Dim], inside: TorchValue, otherwise: Any) -> torch.Tensor:
        """Return the element where `inside` holds. Raises IndexError if it does not lie inside."""
        if len(index) != self._tensor.dim():
            raise IndexError(f"{len(index)} coordinates for a tensor of {self._tensor.dim()} dims")
        holds = tensor_of(inside, torch.bool, self._tensor.device)
        places = [torch.as_tensor(self._elements.value(i)) for i in index]
        places = [p.to(torch.int64) for p in places]
        for place, extent in zip(places, self._tensor.shape, strict=True):
            if (((place < 0) | (place >= extent)) & holds).any():
                raise IndexError(f"coordinate outside of a dim of size {extent}")
        if not self._tensor.numel():
            return tensor_of(otherwise, self._tensor.dtype, self._tensor.device)
        clamped = (p.clamp(0, n - 1) for p, n in zip(places, self._tensor.shape, strict=True))
        found = self._tensor[tuple(clamped)]
        if inside is True:
            return found
        return torch.where(holds, found, tensor_of(otherwise, found.dtype, found.device))


@final
class _Call:
    """One operator call: its operands as tensors, omitted ones None."""

    def __init__(
        self,
        call: Call,
        types: Sequence[Type],
        values: Sequence[Any],
        size: Size,
        device: torch.device,
        solver: Solver | None,
    ) -> None:
        self._call: Final = call
        self._types: Final = types
        self._values: Final = values
        self._size: Final = size
        self._device: Final = device
        self._solver: Final = solver
        self._result: Final = type_of(call)

    def _elements(self, dtype: torch.dtype) -> TorchElements:
        return TorchElements(dtype, self._device, self._size)

    def _sources(self, elements: TorchElements) -> list[Any]:
        pairs = zip(self._values, self._types, strict=True)
        return [
            None if v is None or (isinstance(v, tuple) and not v) else _source(elements, v, t)
            for v, t in pairs
        ]

    def pointwise(self, body: Callable[..., Any]) -> Any:
        result = _tensor_type(self._result)
        if not all(self._size(d) for d in result.shape):
            return self._empty(result)
        elements = self._elements(torch_dtype(compute_dtype(self._types)))
        place = elements.places(result.shape)
        loads = [
            None if source is None else source(*broadcast_index(place.index, source.shape))
            for source in self._sources(elements)
        ]
        return self._stored(body(elements, *loads, *self._call.attrs.values()), result)

    def elementwise(self, body: Callable[..., Any]) -> Any:
        first = self._result.fields[0] if isinstance(self._result, TupleType) else self._result
        result = _tensor_type(first)
        try:
            sizes = [self._size(d) for d in result.shape]
        except KeyError:
            raise UndefinedElementsError from None  # the elements say themselves how many they are
        if not all(sizes):
            return self._empty(self._result)  # there is no place to ask for
        elements = self._elements(torch_dtype(known_dtype(result)))
        place = elements.places(result.shape)
        found = body(elements, place, *self._sources(elements), *self._call.attrs.values())
        if found is None:
            raise UndefinedElementsError
        if not isinstance(self._result, TupleType):
            return self._stored(found, result)
        fields = zip(found, self._result.fields, strict=True)
        return tuple(self._stored(v, _tensor_type(t)) for v, t in fields)

    def _empty(self, ty: Type) -> Any:
        if isinstance(ty, TupleType):
            return tuple(map(self._empty, ty.fields))
        tensor = _tensor_type(ty)
        shape = [self._size(d) for d in tensor.shape]
        return torch.zeros(shape, dtype=torch_dtype(known_dtype(tensor)), device=self._device)

    def _stored(self, value: TorchValue, ty: TensorType) -> torch.Tensor:
        """Return values at all places as the tensor they make. Raises TypeError for another
        dtype."""
        dtype = torch_dtype(known_dtype(ty))
        if isinstance(value, torch.Tensor) and value.dtype != dtype:
            raise TypeError(f"the body gives {value.dtype}, the operator {dtype}")
        whole = tensor_of(value, dtype, self._device)
        return whole.expand([self._size(d) for d in ty.shape]).clone()

    def reduction(self, combine: str) -> Any:
        x: torch.Tensor = self._values[0]
        dims, keepdim = self._call.attrs["dim"], self._call.attrs["keepdim"]
        named = range(x.dim()) if dims is None else dims if isinstance(dims, tuple) else (dims,)
        gone = sorted(d % x.dim() for d in named) if x.dim() else []
        kept = [d for d in range(x.dim()) if d not in gone]
        count = math.prod(x.shape[d] for d in gone)
        lines = x.permute((*kept, *gone)).reshape(*(x.shape[d] for d in kept), count)
        ty = self._result
        pair = isinstance(ty, TupleType)
        value = _tensor_type(ty.fields[0] if isinstance(ty, TupleType) else ty)
        if combine not in ("argmax", "argmin"):
            lines = lines.to(torch_dtype(known_dtype(value)))
        found = _combined(combine, lines, pair)
        for dim in gone if keepdim else ():
            found = tuple(f.unsqueeze(dim) for f in found)
        return found if pair else found[0]

    def contraction(self, fused: Callable[..., str | None]) -> Any:
        subscripts = fused(tuple(v.dim() for v in _opened(self._values)), self._call.attrs)
        if subscripts is None:
            raise UndefinedElementsError
        return torch.einsum(subscripts, *_opened(self._values))

    def scatter(self, scatter: Scatter) -> Any:
        result = _tensor_type(self._result)
        total = self._empty(result)
        if scatter.base is not None:
            total = self._values[scatter.base].clone()
        over = _tensor_type(self._types[scatter.over])
        if not all(self._size(d) for d in over.shape):
            return total
        elements = self._elements(total.dtype)
        place = elements.places(over.shape)
        sources = self._sources(elements)
        found = scatter.body(elements, place, *sources, *self._call.attrs.values())
        if found is None:
            raise UndefinedElementsError
        at, value = found
        shape = [self._size(d) for d in over.shape]
        whole = tensor_of(value, total.dtype, self._device).expand(shape)
        index = tuple(torch.as_tensor(elements.value(c)).expand(shape) for c in at)
        return total.index_put(index, whole, accumulate=True)

    def made_of(self, body: Callable[[tuple[Any, ...], Any], Any]) -> Any:
        found = value_of_body(
            body,
            self._call,
            self._values,
            self._size,
            self._device,
            solver=self._solver,
            apply=self._step,
        )
        if found is NotImplemented:
            raise UndefinedElementsError
        return found

    def _step(
        self, op: Op, call: Call, operands: Sequence[Any], size: Size, device: torch.device
    ) -> Any:
        if inside(op.lowering) is None:
            return apply_op(op, call, operands, size, device)
        return fused_value(op, call, operands, size, device, self._solver)


def _source(elements: TorchElements, value: Any, ty: Type) -> Any:
    match ty:
        case TupleType(fields):
            return tuple(_source(elements, v, t) for v, t in zip(value, fields, strict=True))
        case SizeType():
            return TorchSource(elements, value, TensorType((), int64))
        case _:
            return TorchSource(elements, value, _tensor_type(ty))


def _combined(combine: str, lines: torch.Tensor, pair: bool) -> tuple[torch.Tensor, ...]:
    """Return the last dim combined, and if asked the positions of what was chosen."""
    match combine:
        case "max" | "min" if pair:
            return tuple(getattr(torch, combine)(lines, -1))
        case "max" | "min" if not lines.shape[-1] and lines.is_floating_point():
            return (lines.sum(-1) + (-math.inf if combine == "max" else math.inf),)
        case "max" | "min":
            return (getattr(torch, f"a{combine}")(lines, -1),)
        case "argmax" | "argmin":
            return (getattr(torch, combine)(lines, -1),)
        case "and" | "or":
            return (getattr(torch, {"and": "all", "or": "any"}[combine])(lines, -1),)
        case "mean":
            return (lines.sum(-1, dtype=lines.dtype) / lines.shape[-1],)
        case _:
            total = getattr(torch, {"add": "sum", "mul": "prod"}[combine])
            return (total(lines, -1, dtype=lines.dtype),)


def _opened(values: Sequence[Any]) -> list[Any]:
    """Return the tensors of operands, tuples opened."""
    return [v for value in values for v in (value if isinstance(value, tuple) else (value,))]


def _tensor_type(ty: Type) -> TensorType:
    if isinstance(ty, SizeType):
        return TensorType((), int64)
    assert isinstance(ty, TensorType)
    return ty
