"""Bringing a script's arguments to host values, and checking them against the signature.

Tensors pass as they are, numpy arrays and anything with `__dlpack__` without a copy, numbers
become what the annotation says. Named sizes are bound from shapes and must agree. Nothing is
converted silently: a dtype or device that differs is an error that shows the cast.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import count
from typing import Any, Final, NoReturn, cast

import numpy as np
import torch

from ...diagnostics.catalogue.call import NoSizeFits, WrongArgument, WrongParameters, WrongSize
from ...diagnostics.diagnostic import RunError
from ...ir.dims import Dim
from ...ir.expr import Assumption
from ...ir.transforms import called
from ...ir.types import (
    AdtType,
    DType,
    DTypeKind,
    RefType,
    SizeType,
    StrType,
    TensorType,
    TupleType,
    Type,
    TypeVar,
    fits,
    show,
)
from ...lower_torch.constants import torch_dtype
from ...prelude.values import List, Present
from ...translate.source.scope import is_frozen
from ..values.text import describe
from ..values.values import Cell
from .argument_sizes import NoSize, ShownSizes
from .failure import check_assumption
from .places import Place
from .schema import NO_SCHEMA, Schema
from .value_types import Agreement, TypesOfValues

_FORMS: Final[dict[type, type]] = {StrType: str, AdtType: tuple}
"""The classes of leaves by their types; a data type that has no class, as in a program from text,
has tuples."""


class Entering(ABC):
    """A value of a script that has a way of its own into a program."""

    @abstractmethod
    def enter(self, place: Place, ty: RefType, binder: Binder) -> Cell:
        """Return the cell that the program gets. Raises RunError."""


class Binder:
    """Converts the arguments of one call, binding named sizes on the way."""

    def __init__(
        self,
        function: str,
        device: torch.device,
        schema: Schema = NO_SCHEMA,
        types: TypesOfValues | None = None,
    ) -> None:
        """`schema` has the plans of types; `types` reads types off values whose parameter takes
        any."""
        self.function: Final = called(function)
        self.device: Final = device
        self.schema: Final = schema
        self._agreement: Final = None if types is None else Agreement(self.function, types)
        self.leaves: Final[list[torch.Tensor]] = []
        """The tensors in arguments that are data."""
        self.numbers: Final = count(1)
        """Numbers for the sizes that belong to single values of data."""
        self.entered: Final[set[Cell]] = set()
        """The cells of references whose contents are arguments too."""
        self.sizes: Final[dict[str, int]] = {}
        self._bound_by: Final[dict[str, Place]] = {}
        self._derived: Final[list[tuple[Place, Dim, int, int]]] = []

    def finish(self, assumptions: Sequence[Assumption]) -> None:
        """Check sizes that are computed from others, and the assumptions. Raises RunError."""
        if self._derived:
            self._solve()
        for assumption in assumptions:
            self._check_assumption(assumption)

    def convert(self, parameter: Place, value: Any, ty: Type) -> Any:
        """Return the host value of a leaf. Raises RunError if it does not fit."""
        match ty:
            case TensorType():
                return self._tensor(parameter, value, ty)
            case SizeType(dim):
                return self._size(parameter, value, dim)
            case TypeVar(name):
                host = self._any(parameter, value)
                if self._agreement is not None:
                    self._agreement.add(name, parameter, host)
                return host
            case RefType():
                return self._cell(parameter, value, ty)
            case TupleType():  # unit, which alone of tuples is a leaf
                if value is not None and (not isinstance(value, tuple | list) or value):
                    self.wrong(parameter, value)
                return ()
            case _:
                form = _FORMS.get(type(ty))
                if not (callable(value) if form is None else isinstance(value, form)):
                    self.wrong(parameter, value)
                return value

    def _cell(self, parameter: Place, value: Any, ty: RefType) -> Any:
        if isinstance(value, Entering):
            return value.enter(parameter, ty, self)
        if not isinstance(value, Cell):  # a model's cells are the program's own
            self.wrong(parameter, value, "make a cell: `relay.ref(v)`")
        return value

    def _any(self, parameter: Place, value: Any) -> Any:
        """Return a value that the program takes whatever it is."""
        if isinstance(value, np.ndarray | np.generic):
            self._refuse_masks(parameter, value)
            return torch.from_numpy(np.array(value)).to(self.device)
        if value is None or isinstance(value, torch.Tensor | bool | int | float | str | tuple):
            return value
        if isinstance(value, Present):
            return value
        if isinstance(value, list | List):
            return List.of(cast("Iterable[Any]", value))
        if not is_frozen(value) and not callable(value):
            self.wrong(parameter, value)
        return value

    def _tensor(self, parameter: Place, value: Any, ty: TensorType) -> Any:
        tensor = self._as_tensor(parameter, value, ty)
        if not isinstance(tensor, torch.Tensor):
            return tensor
        assert isinstance(ty.dtype, DType)
        if tensor.layout is not torch.strided:
            self.wrong(parameter, tensor, f"make it dense: {parameter.name}.to_dense()")
        if tensor.dtype is not torch_dtype(ty.dtype):
            is_array = isinstance(value, np.ndarray)
            self.wrong(parameter, tensor, _cast_help(parameter.name, ty.dtype, is_array=is_array))
        if tensor.dim() != len(ty.shape):
            self.wrong(parameter, tensor, _rank_help(parameter.name, tensor, ty))
        for position, (dim, actual) in enumerate(zip(ty.shape, tensor.shape, strict=True)):
            self._bind_dim(parameter, dim, position, actual)
        return tensor

    def _as_tensor(self, parameter: Place, value: Any, ty: TensorType) -> Any:
        if isinstance(value, torch.Tensor):
            return value
        if isinstance(value, bool | int | float) and not ty.shape:
            return self._number(parameter, value, ty)
        if isinstance(value, np.generic) and not ty.shape:
            return self._as_tensor(parameter, value.item(), ty)
        if isinstance(value, np.ndarray):
            array = cast("np.ndarray[Any, Any]", value)
            self._refuse_masks(parameter, array)
            if array.dtype.kind not in "biufc":
                self.wrong(parameter, value)
            return torch.from_numpy(_shareable(array)).to(self.device)
        if not hasattr(value, "__dlpack__"):
            is_list = isinstance(value, list | tuple)
            way = _list_help(parameter.name, ty) if is_list else None
            if isinstance(value, bool | int | float):
                way = self._number_help(parameter, value, ty)
            if isinstance(value, str) and not ty.shape:
                way = f"make it a number: float({parameter.name})"
            self.wrong(parameter, value, way)
        return torch.from_dlpack(value)

    def _number_help(self, parameter: Place, value: float, ty: TensorType) -> str:
        """Return what to write where a number is passed for a tensor with dims."""
        if self._is_batch(ty.shape[0].name or ""):
            way = "pass one for each element, or `in_axes=` with None for what all have in common"
            return f"{way}, such as `in_axes=(0, None)`"
        numbers = "[" * len(ty.shape) + f"{value}" + "]" * len(ty.shape)
        return f"make it a tensor: torch.tensor({numbers}, dtype=torch.{ty.dtype})"

    def _is_batch(self, dim: str) -> bool:
        """Return whether a size is that of the batch of a mapped function."""
        return dim.startswith("batch") and "relay.vmap" in self.function

    def _refuse_masks(self, parameter: Place, array: Any) -> None:
        """Raise RunError for an array with a mask, which a tensor does not have."""
        if isinstance(array, np.ma.MaskedArray):
            name = parameter.name
            way = f"fill what is masked, {name}.filled(0), or pass np.ma.getmaskarray({name}) too"
            self.wrong(parameter, array, way)

    def _number(self, parameter: Place, value: bool | float, ty: TensorType) -> Any:
        assert isinstance(ty.dtype, DType)
        kind = ty.dtype.kind
        if isinstance(value, bool) is not (kind is DTypeKind.BOOL):
            self.wrong(parameter, value)
        if kind is DTypeKind.FLOAT:
            # Filled where it is: `torch.tensor` would copy it there and wait.
            with suppress(OverflowError, RuntimeError):
                dtype = torch_dtype(ty.dtype)
                return torch.scalar_tensor(float(value), dtype=dtype, device=self.device)
            self.wrong(parameter, value, f"it does not fit into {ty.dtype.bits} bits")
        if isinstance(value, float):
            way = f"pass an integer, or annotate `{parameter.name}: Float`"
            self.wrong(parameter, value, way)
        if not fits(int(value), ty.dtype):
            self.wrong(parameter, value, f"it does not fit into {ty.dtype.bits} bits")
        return value

    def _size(self, parameter: Place, value: Any, dim: Dim) -> int:
        if isinstance(value, torch.Tensor) and value.dim() == 0 and not value.is_floating_point():
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool):
            self.wrong(parameter, value)
        if value < 0:
            self.wrong(parameter, value, "sizes are 0 or more")
        self._bind_dim(parameter, dim, 0, value)
        return value

    def _bind_dim(self, parameter: Place, dim: Dim, position: int, actual: int) -> None:
        name = dim.name
        if name is None:
            wanted = dim.constant
            if wanted is None:
                self._derived.append((parameter, dim, position, actual))
            elif wanted != actual:
                way = "annotate a name in its place, such as `N`, if it may be any size"
                self._wrong_size(parameter, dim, wanted, ", as annotated", actual, position, way)
            return
        known = self.sizes.get(name)
        if known is None:
            self.sizes[name], self._bound_by[name] = actual, parameter
        elif known != actual:
            place, owner = self._bound_by[name], parameter.annotation
            because = f" because of {'the model' if place.is_hidden else f'`{place.name}`'}"
            way = (
                f"the model was created with {_plain(name)} = {known}: pass that size, or create "
                "another model"
                if place.is_hidden
                else "pass batches of one size, or `in_axes=` with None for what is no batch"
                if self._is_batch(name)
                else f"pass sizes that agree, or give the size of `{owner.name}` another name"
                if place.annotation is not None and owner is not None
                else None
            )
            self._wrong_size(parameter, dim, known, because, actual, position, way)

    def _solve(self) -> None:
        """Find the sizes that arguments show only inside larger dims, and check all of these."""
        shown: dict[Dim, int] = {}
        for parameter, dim, position, actual in self._derived:
            known = shown.setdefault(dim, actual)
            if known != actual:
                self._wrong_size(parameter, dim, known, "", actual, position)
        try:
            sizes = ShownSizes({**{Dim.of(n): v for n, v in self.sizes.items()}, **shown})
        except NoSize as none:
            place = next(d for d in self._derived if d[1] == none.dim)
            self._no_size(*place, none.name)
        self.sizes.update(sizes.names)
        for place in self._derived:
            if place[1].names() <= self.sizes.keys():
                self._check_derived(*place)

    def _check_derived(self, parameter: Place, dim: Dim, position: int, actual: int) -> None:
        try:
            wanted = dim.evaluate(self.sizes)
        except ZeroDivisionError:
            self._no_size(parameter, dim, position, actual, "")
        if wanted != actual:
            self._wrong_size(parameter, dim, wanted, self._why(dim), actual, position)

    def _no_size(
        self, parameter: Place, dim: Dim, position: int, actual: int, name: str
    ) -> NoReturn:
        known = {_plain(n): self.sizes[n] for n in sorted(dim.names()) if n in self.sizes}
        place = (self.function, parameter.name, parameter.span)
        raise RunError(NoSizeFits(*place, _plain(str(dim)), known, actual, position, _plain(name)))

    def _why(self, dim: Dim) -> str:
        known = ", ".join(f"{_plain(n)} is {self.sizes[n]}" for n in sorted(dim.names()))
        return f" because {known}"

    def _check_assumption(self, assumption: Assumption) -> None:
        names = assumption.left.names() | assumption.right.names()
        if assumption.is_inside or not names <= self.sizes.keys():
            return  # about a size of a model's parameters, which were checked on their own
        check_assumption(assumption, lambda dim: dim.evaluate(self.sizes))

    def _wrong_size(
        self,
        parameter: Place,
        dim: Dim,
        wanted: int,
        why: str,
        actual: int,
        position: int,
        way: str | None = None,
    ) -> NoReturn:
        raise RunError(
            WrongSize(
                self.function,
                parameter.name,
                parameter.span,
                _plain(str(dim)),
                wanted,
                why,
                actual,
                position,
                way,
            )
        )

    def wrong(self, parameter: Place, value: Any, way: str | None = None) -> NoReturn:
        """Raise RunError for a value that is not what it should be."""
        wanted = _plain(show(parameter.declared or parameter.type))
        place, name = parameter.span, parameter.name
        if parameter.is_hidden:
            way = "convert the model, `model.float()`, or annotate the dtype that it has"
            raise RunError(WrongParameters(self.function, place, describe(value), way))
        raise RunError(WrongArgument(self.function, name, place, wanted, describe(value), way))


def _plain(text: str) -> str:
    """Return a type as it is declared: sizes that belong to one value are numbered inside."""
    return re.sub(r"'*#\d+", "", text)


def _cast_help(name: str, dtype: DType, *, is_array: bool) -> str:
    if is_array and dtype.name != "bfloat16":
        return f"cast it: {name}.astype(np.{'bool_' if dtype.name == 'bool' else dtype.name})"
    if is_array:
        return f"make it a tensor: torch.from_numpy({name}).bfloat16()"
    methods = {"float32": "float()", "float64": "double()", "int64": "long()", "bool": "bool()"}
    return f"cast it: {name}.{methods.get(dtype.name, f'to(torch.{dtype.name})')}"


def _shareable(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return an array as one that torch takes: elements in the machine's byte order that do not run
    backwards, and that may be written, or torch warns; arguments never are."""
    native = array.astype(array.dtype.newbyteorder("="), copy=False)
    is_plain = native.flags.writeable and all(s >= 0 for s in native.strides)
    return native if is_plain else native.copy()


def _list_help(name: str, ty: TensorType) -> str:
    return f"make it a tensor: torch.tensor({name}, dtype=torch.{ty.dtype})"


def _rank_help(name: str, tensor: torch.Tensor, ty: TensorType) -> str | None:
    if tensor.dim() + 1 == len(ty.shape):
        return f"add the missing dimension: {name}.unsqueeze(0) makes a batch of one"
    return None
