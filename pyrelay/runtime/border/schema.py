"""The schema of a type: where in its values the leaves are, and how to rebuild a value of them.

A plan follows a type. That of a data type opens its fields only when it is asked, so recursive
types have plans; walks over values keep a stack of their own and take values of any depth. Whoever
checks, converts or reads values of a type walks over its plan (`opened`), and sees leaves alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from itertools import count, repeat
from typing import Any, Final, TypeAlias, final

import torch

from ...dataclass import dataclass
from ...ir.dims import Dim
from ...ir.module import AdtDef
from ...ir.own_sizes import has_own_sizes, tensor_in
from ...ir.types import (
    STR,
    AdtType,
    DType,
    FnType,
    RefType,
    Substitution,
    TensorType,
    TupleType,
    Type,
    dim_names,
    substitution,
)
from ...lower_torch.constants import torch_dtype
from ...prelude.library import LIST, OPTION
from ...prelude.values import some, some_value
from ...translate.source.unions import is_data_class
from ...translate.types.number_places import (
    Numbers,
    Repeated,
    arguments,
    filled,
    parts_of,
    places_of,
)
from ..values.pytrees import register_data
from ..values.representation import (
    NO_DATA,
    TAGGED,
    Instances,
    Maker,
    UserData,
    reader,
    representation,
)
from ..values.structure import chained, elements, listed
from .remembered import LastList, Remembered

INT_RANGE: Final = range(-(2**63), 2**63)
"""The integers that an argument may be."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Leaf:
    """A value without parts: where in it numbers are Python's own, the dtype of a tensor of rank 0,
    and the dtype and shape of a tensor whose sizes are all numbers."""

    type: Type
    numbers: Numbers
    scalar: torch.dtype | None
    fixed: tuple[torch.dtype, tuple[int | None, ...]] | None
    own: tuple[str, ...] = ()
    """The sizes in the type that belong to each value."""
    most: float = -1.0
    """The largest number that a tensor of floats of rank 0 can be; negative for other leaves."""

    @property
    def python(self) -> type | None:
        """float, int or bool where it is annotated so."""
        return self.numbers if isinstance(self.numbers, type) else None


@final
@dataclass(frozen=True, slots=True, eq=False)
class Items:
    """A tuple."""

    type: Type
    fields: tuple[Plan, ...]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Maybe:
    """None, or a value of a type."""

    type: Type
    inner: Plan


@final
@dataclass(frozen=True, slots=True, eq=False)
class Elements:
    """A list of the prelude."""

    type: Type
    inner: Plan
    is_tuple: bool
    """Whether scripts have it as a tuple."""
    last: LastList = field(default_factory=LastList)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """The fields of one class. `own` are the sizes in their types that belong to each value;
    `lasts` says that an instance stays as it is, and can be remembered."""

    names: tuple[str, ...]
    plans: tuple[Plan, ...]
    make: Maker
    read: Callable[[Any], tuple[Any, ...]]
    own: tuple[str, ...]
    lasts: bool


@final
@dataclass(frozen=True)
class Whole:
    """An argument that is no instance, as the part of one: what takes instances takes it."""

    value: Any


@final
class Data:
    """A value of a user's data type. `outer` are the sizes in its type arguments."""

    def __init__(self, ty: AdtType, numbers: Numbers, schema: Schema) -> None:
        self._numbers: Final = numbers
        self.type: Final = ty
        self.outer: Final = tuple(sorted(dim_names(ty)))
        self._schema: Final = schema
        self.remembered: Final = Remembered()
        """The instances that were found to fit as arguments."""
        self.finished: Final = Remembered()
        """The instances that a caller gets as they are, and passes again as they are."""
        self.take: Any = None
        """The function of `plain.py`, once it has been generated."""

    @cached_property
    def cases(self) -> dict[type, Case]:
        """The fields by class."""
        return self._schema.cases(self.type, self._numbers)


Plan: TypeAlias = Leaf | Items | Maybe | Elements | Data


@final
class Schema:
    """The plans for the types of one program."""

    def __init__(self, adts: Mapping[str, AdtDef], data: UserData) -> None:
        self._adts: Final = adts
        self._data: Final = data
        self._plans: Final[dict[tuple[Type, Numbers], Plan]] = {}
        self._whole: Final[dict[Plan, Data | None]] = {}

    def plan(self, ty: Type, numbers: Numbers = None) -> Plan:
        """Return the plan of a type, with Python's own numbers at the places of `numbers`."""
        known = self._plans.get((ty, numbers))
        if known is None:
            known = self._plans[ty, numbers] = self._made(ty, numbers)
        return known

    def whole(self, plan: Elements) -> Data | None:
        """Return the plan of instances of `Whole` with such a list in them, which are made into
        that list alone; None where a size of the call is in its type."""
        if plan in self._whole:
            return self._whole[plan]
        assert isinstance(plan.type, AdtType)
        data = None
        if not any(dim_names(plan.type)):
            data = Data(plan.type, None, self)
            read = reader(("value",))
            data.cases = {Whole: Case(("value",), (plan,), lambda v: v, read, (), lasts=True)}
        self._whole[plan] = data
        return data

    def has_only_data(self, ty: Type) -> bool:
        """Return whether all in a value of a type is data, tensors, sizes and texts: no function
        and no reference."""
        seen: set[str] = set()
        pending = [ty]
        while pending:
            current = pending.pop()
            if isinstance(current, FnType | RefType):
                return False
            if isinstance(current, TupleType):
                pending += current.fields
            if not isinstance(current, AdtType):
                continue
            pending += (arg for arg in current.args if not isinstance(arg, Dim))
            if current.name in seen:
                continue
            seen.add(current.name)
            if self._form(current.name) is TAGGED and current.name != LIST:
                return False
            pending += self._adts[current.name].fields
        return True

    def _made(self, ty: Type, numbers: Numbers) -> Plan:
        match ty:
            case TupleType(fields) if fields:
                inside = zip(fields, parts_of(numbers, len(fields)), strict=True)
                return Items(ty, tuple(self.plan(f, n) for f, n in inside))
            case AdtType(name, (inner,)) if name == OPTION and not isinstance(inner, Dim):
                return Maybe(ty, self.plan(inner, parts_of(numbers, 1)[0]))
            case AdtType(name, (inner,)) if name == LIST and not isinstance(inner, Dim):
                if isinstance(numbers, Repeated):
                    return Elements(ty, self.plan(inner, numbers.element), is_tuple=True)
                return Elements(ty, self.plan(inner, parts_of(numbers, 1)[0]), is_tuple=False)
            case AdtType(name) if isinstance(self._form(name), Instances):
                return Data(ty, numbers, self)
            case _:
                return _leaf(ty, numbers)

    def _form(self, adt: str) -> Any:
        return representation(self._data.representations, adt)

    def cases(self, ty: AdtType, numbers: Numbers) -> dict[type, Case]:
        """Return the fields of the classes of a data type, at its arguments."""
        definition, form = self._adts[ty.name], self._form(ty.name)
        assert isinstance(form, Instances)
        known = self._data.numbers.get(ty.name)
        if known is None:  # nobody wrote its fields in Python: only type arguments are annotated
            known = tuple(tuple(map(places_of, c.fields)) for c in definition.constructors)
        given = arguments(definition.type_params, numbers)
        replace = substitution(definition.type_params, ty.args)
        taken = dim_names(ty)
        found: dict[type, Case] = {}
        for tag, constructor in enumerate(definition.constructors):
            own = frozenset[str]().union(*map(dim_names, constructor.fields)) - replace.dims.keys()
            apart = {n: Dim.of(f"{n}'") for n in sorted(own & taken)}
            rename = Substitution({**replace.dims, **apart}, replace.types)
            plans = tuple(
                self.plan(rename(f), filled(n, given))
                for f, n in zip(constructor.fields, known[tag], strict=True)
            )
            names = tuple(f"{n}'" if n in apart else n for n in sorted(own))
            made, read = form.makers[tag], form.readers[tag]
            cls = form.classes[tag]
            lasts = not taken and _lasts(cls)
            if is_data_class(cls):
                texts = zip(form.names[tag], constructor.fields, strict=True)
                register_data(cls, form.names[tag], [n for n, ty in texts if ty == STR])
            found[cls] = Case(form.names[tag], plans, made, read, names, lasts)
        return found


NO_SCHEMA: Final = Schema({}, NO_DATA)
"""The plans of types without users' data."""


def _leaf(ty: Type, numbers: Numbers) -> Leaf:
    if isinstance(ty, TensorType) and not ty.shape and isinstance(ty.dtype, DType):
        dtype = torch_dtype(ty.dtype)
        most = torch.finfo(dtype).max if dtype.is_floating_point else -1.0
        return Leaf(ty, numbers, dtype, None, most=most)
    if not has_own_sizes(ty):
        return Leaf(ty, numbers, None, _fixed(ty))
    # Errors show the sizes under these names.
    names = (n for i in count() if (n := "Any" + "'" * i) not in dim_names(ty))
    own: list[str] = []

    def size() -> Dim:
        own.append(next(names))
        return Dim.of(own[-1])

    return Leaf(tensor_in(ty, size), numbers, None, None, tuple(own))


def _fixed(ty: Type) -> tuple[torch.dtype, tuple[int | None, ...]] | None:
    if not isinstance(ty, TensorType) or not isinstance(ty.dtype, DType) or dim_names(ty):
        return None
    return torch_dtype(ty.dtype), tuple(dim.constant for dim in ty.shape)


def _lasts(cls: type) -> bool:
    """Return whether instances of a class stay as they are made, and allow weak references."""
    params = getattr(cls, "__dataclass_params__", None)
    return params is not None and params.frozen and cls.__weakrefoffset__ != 0


def has_data(plan: Plan) -> bool:
    """Return whether a value of the plan may be a list, an instance of a user's class, or None."""
    pending = [plan]
    while pending:
        match pending.pop():
            case Data() | Maybe() | Elements():
                return True
            case Items(fields=fields):
                pending += fields
            case Leaf():
                pass
    return False


def has_instances(plan: Plan) -> bool:
    """Return whether a value of the plan may have an instance of a user's class in it."""
    pending = [plan]
    while pending:
        match pending.pop():
            case Data():
                return True
            case Maybe(inner=inner) | Elements(inner=inner):
                pending.append(inner)
            case Items(fields=fields):
                pending += fields
            case Leaf():
                pass
    return False


Opened: TypeAlias = tuple[Sequence[Any], Iterable["Plan"], Callable[..., Any]]
"""The parts of a value, their plans, and the function that makes such a value of parts. The form of
a list changes at the border: one from outside is made as compiled code has it, and the other way
round."""


def opened(value: Any, plan: Items | Maybe | Elements | Data, *, is_given: bool) -> Opened:
    """Return the parts of a value that fits its plan, and is given by a script or made by compiled
    code."""
    match plan:
        case Data():
            case = plan.cases[type(value)]
            return case.read(value), case.plans, case.make
        case Items(fields=fields):
            return value, fields, _tuple
        case Maybe(inner=inner):
            return () if value is None else (some_value(value),), (inner,), some
        case Elements(inner=inner) if is_given:
            return value if isinstance(value, tuple) else elements(value), repeat(inner), chained
        case Elements(inner=inner):
            return elements(value), repeat(inner), _tuple if plan.is_tuple else listed


def _tuple(*fields: Any) -> tuple[Any, ...]:
    return fields
