"""Reading off the arguments of a call what the type parameters of the function stand for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final, cast, final

import torch

from ...diagnostics.diagnostic import Problem
from ...diagnostics.source import NOWHERE
from ...ir.module import AdtDef
from ...ir.transforms import Axes
from ...prelude.names import CONSTRUCTORS
from ...prelude.values import List
from ...translate.data.data import DataTypes
from ...translate.program.described import (
    DataOf,
    Described,
    ListOf,
    Plain,
    TensorOf,
    TupleOf,
    element_of,
    is_whole,
)
from ...translate.program.signature import Parameter, Signature
from ...translate.source.scope import is_frozen
from ...translate.types.annotation import NotData
from ..border.value_types import (
    Typed,
    is_array,
    of_prelude,
    shape_and_dtype,
    solve,
    type_vars_of,
    typed_fields,
)
from ..entries.open_program import RankReader
from ..models.model import Model
from ..models.model_io import Models
from ..models.records import Params
from ..values.structure import distinct_tensors, parts

_PLAIN: Final = (bool, int, float, str, type(None))


def may_join(values: Sequence[Any]) -> bool:
    """Return whether a call with these values may join torch's graph: whether one is a model, or
    contains a tensor that requires grad."""
    if not torch.is_grad_enabled():
        return False
    if any(isinstance(v, Model | Models | Params) for v in values):
        return True
    return any(t.requires_grad for t in distinct_tensors(values))


@final
class Describer:
    """Describes values; it reads the fields of their classes once."""

    def __init__(self, signature: Signature, seen: Mapping[str, Any]) -> None:
        """`seen` are the names that the function with the signature sees."""
        self.type_vars: Final = type_vars_of(p.ty for p in signature.values)
        """The names of the type parameters of the function."""
        self._seen: Final = seen
        self._data: Final = DataTypes(_ignore)
        self._fields: Final = partial(typed_fields, self.definition)
        self.ranks: Final = RankReader(signature.values, self._fields)
        self._inside: Final[set[int]] = set()
        """The lists that are being described."""

    def types(
        self,
        values: Sequence[Any],
        taken: Sequence[Parameter],
        batches: Mapping[str, Sequence[Axes]],
    ) -> tuple[tuple[str, Described], ...]:
        """Return the type arguments of the function in a call, by the values of the parameters that
        its program takes; of values side by side those of one of them. `batches` has the axes of
        such parameters, outermost first."""
        found: dict[str, Described] = {}
        for parameter, value in zip(taken, values, strict=True):
            for name, described in self._solve([(parameter.ty, value)]).items():
                one: Described | None = described
                for axes in batches.get(parameter.name, ()):
                    one = element_of(one, axes)
                if one is not None and not is_whole(found.get(name)):
                    found[name] = one
        return tuple(found.items())

    def _solve(self, given: Typed) -> dict[str, Described]:
        """Return the types of type variables, read off values with types."""
        wanted = type_vars_of(ty for ty, _ in given)
        return solve(given, wanted, self._fields, self._describe, is_whole)

    def _describe(self, value: Any) -> Described | None:
        """Return the description of a value; None for one that no program takes."""
        if is_array(value):
            shape, dtype = shape_and_dtype(value)
            return None if dtype is None else TensorOf(len(shape), dtype)
        if type(value) in _PLAIN:
            return Plain(type(value))
        if isinstance(value, tuple):
            return self._tuple(cast("tuple[Any, ...]", value))
        if isinstance(value, list | List):
            return self._list(cast("Sequence[Any]", value))
        return self._instance(value) if is_frozen(value) else None

    def _tuple(self, value: tuple[Any, ...]) -> Described | None:
        fields = [self._describe(v) for v in value]
        known = tuple(f for f in fields if f is not None)
        return TupleOf(known) if len(known) == len(fields) else None

    def _list(self, value: Sequence[Any]) -> Described:
        element: Described | None = None
        if id(value) in self._inside:
            return ListOf(None)  # a list that contains itself, which its check refuses
        self._inside.add(id(value))
        for each in value:
            element = self._describe(each)
            if is_whole(element):
                break
        self._inside.remove(id(value))
        return ListOf(element)

    def _instance(self, value: Any) -> Described | None:
        known = self.definition(type(value))
        if known is None:
            return None
        definition, place = known
        types = definition.constructors[place].fields
        found = self._solve(list(zip(types, parts(value), strict=False)))
        return DataOf(type(value), tuple(found.get(p.name) for p in definition.type_params))

    def definition(self, cls: type) -> tuple[AdtDef, int] | None:
        """Return the data type of a class, and which of its constructors it is."""
        if cls in CONSTRUCTORS:
            return of_prelude(cls)
        try:
            found = self._data.of_class(cls, self._seen, NOWHERE)
        except NotData:
            return None
        definition = self._data.adts[found.name]
        return definition, [c.cls for c in found.constructors].index(cls)


def _ignore(_: Problem) -> None:
    """A mistake that the program will find."""
