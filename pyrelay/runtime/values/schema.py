"""What values of types look like at the border: where in them the leaves are, and how to rebuild.

A plan follows a type. The plan of a data type opens its fields only when it is asked, so recursive
types have plans; walks over values keep a stack of their own and take values of any depth.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import TYPE_CHECKING, Any, Final, TypeAlias, final

from ...ir.dims import Dim
from ...ir.module import AdtDef
from ...ir.own_sizes import has_own_sizes, tensor_in
from ...ir.types import (
    STR,
    UNIT,
    AdtType,
    DType,
    Substitution,
    TensorType,
    TupleType,
    Type,
    dim_names,
    substitution,
)
from ...lower_torch.constants import torch_dtype
from ...prelude.library import LIST, OPTION
from ...prelude.values import Present, some, some_value
from ...translate.data.unions import is_data_class
from ...translate.types.number_places import Numbers, arguments, filled, parts_of, places_of
from ..calls.remembered import SETTLED, Remembered
from ..models.pytrees import register_data
from .elements import chained, elements, listed
from .representation import (
    Instances,
    Maker,
    Representation,
    UserData,
    representation,
)

if TYPE_CHECKING:
    import torch

INT_RANGE: Final = range(-(2**63), 2**63)
"""The integers that an argument may be."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Leaf:
    """A value without parts: where in it numbers are Python's own, and the dtype of a tensor of
    rank 0."""

    type: Type
    numbers: Numbers
    scalar: torch.dtype | None
    own: tuple[str, ...] = ()
    """The sizes in the type that belong to each value."""

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
        """The instances that a caller gets as they are, and gives back as they are."""

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
        self._representations: Final = data.representations
        self._numbers: Final = data.numbers
        self._data: Final[dict[tuple[Type, Numbers], Data]] = {}
        self._lists: Final[dict[tuple[Type, Numbers], Elements]] = {}

    def plan(self, ty: Type, numbers: Numbers = None) -> Plan:
        """Return the plan of a type, in whose values numbers are Python's own where it is said."""
        match ty:
            case TupleType(()):
                return Leaf(ty, numbers, None)
            case TupleType(fields):
                inside = zip(fields, parts_of(numbers, len(fields)), strict=True)
                return Items(ty, tuple(self.plan(f, n) for f, n in inside))
            case AdtType(name, (inner,)) if name == OPTION and not isinstance(inner, Dim):
                return Maybe(ty, self.plan(inner, parts_of(numbers, 1)[0]))
            case AdtType(name, (inner,)) if name == LIST and not isinstance(inner, Dim):
                if (ty, numbers) not in self._lists:
                    each = self.plan(inner, parts_of(numbers, 1)[0])
                    self._lists[ty, numbers] = Elements(ty, each)
                return self._lists[ty, numbers]
            case AdtType(name) if isinstance(self._form(name), Instances):
                if (ty, numbers) not in self._data:
                    self._data[ty, numbers] = Data(ty, numbers, self)
                return self._data[ty, numbers]
            case _:
                return _leaf(ty, numbers)

    def _form(self, adt: str) -> Representation:
        return representation(self._representations, adt)

    def cases(self, ty: AdtType, numbers: Numbers) -> dict[type, Case]:
        """Return the fields of the classes of a data type, at its arguments."""
        definition, form = self._adts[ty.name], self._form(ty.name)
        assert isinstance(form, Instances)
        known = self._numbers.get(ty.name)
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
            lasts = not names and not taken and _lasts(cls)
            if is_data_class(cls):
                texts = zip(form.names[tag], constructor.fields, strict=True)
                register_data(cls, form.names[tag], [n for n, ty in texts if ty == STR])
            found[cls] = Case(form.names[tag], plans, made, read, names, lasts)
        return found


def _leaf(ty: Type, numbers: Numbers) -> Leaf:
    if isinstance(ty, TensorType) and not ty.shape and isinstance(ty.dtype, DType):
        return Leaf(ty, numbers, torch_dtype(ty.dtype))
    if not has_own_sizes(ty):
        return Leaf(ty, numbers, None)
    # Errors show the sizes under these names.
    names = (n for n in map(_any_size, count()) if n not in dim_names(ty))
    own: list[str] = []

    def size() -> Dim:
        own.append(next(names))
        return Dim.of(own[-1])

    return Leaf(tensor_in(ty, size), numbers, None, tuple(own))


def _any_size(number: int) -> str:
    return "Any" + "'" * number


def _lasts(cls: type) -> bool:
    """Return whether instances of a class stay as they are made, and allow weak references."""
    params = getattr(cls, "__dataclass_params__", None)
    return params is not None and params.frozen and cls.__weakrefoffset__ != 0


def has_data(plan: Plan) -> bool:
    """Return whether a value of the plan may be a list, an instance of a user's class, or None."""
    pending = [plan]
    while pending:
        current = pending.pop()
        match current:
            case Data() | Maybe() | Elements():
                return True
            case Items(fields=fields):
                pending += fields
            case Leaf():
                pass
    return False


def transform(value: Any, plan: Plan, change: Callable[[Any, Leaf], Any]) -> Any:
    """Return a value with its leaves changed; parts in which nothing changed stay the same objects,
    and what is shared stays shared."""
    return _transformed(_Transform(change), value, plan)


def finished(value: Any, plan: Plan, change: Callable[[Any, Leaf], Any]) -> Any:
    """Return a result with its leaves changed. Where `change` leaves all as they are, and none is a
    tensor, its instances are remembered, and no later walk looks into them."""
    if not isinstance(plan, Data):
        return transform(value, plan, change)
    lasting = True

    def watched(leaf_value: Any, leaf: Leaf) -> Any:
        nonlocal lasting
        made = change(leaf_value, leaf)
        lasting = lasting and made is leaf_value and type(made) in _LASTING
        return made

    walk = _Transform(watched, finishes=True)
    result = _transformed(walk, value, plan)
    if lasting and result is value and not any(isinstance(p, Elements) for p in walk.done):
        walk.remember()
    return result


_LASTING: Final = frozenset({bool, int, str})
"""The classes of leaves that are the same inside and outside."""


def _transformed(walk: _Transform, value: Any, plan: Plan) -> Any:
    result = walk.enter(value, plan)
    while walk.frames:
        frame = walk.frames[-1]
        frame.made.append(result)
        count = len(frame.made)
        if count < len(frame.parts):
            result = walk.enter(frame.parts[count], frame.plans[count])
        else:
            walk.frames.pop()
            result = frame.finished()
            walk.done[frame.plan][id(frame.value)] = result
    return result


@final
class _Frame:
    """A value whose parts are being transformed."""

    __slots__ = ("made", "make", "parts", "plan", "plans", "value")

    def __init__(
        self,
        value: Any,
        plan: Plan,
        parts: Sequence[Any],
        plans: Sequence[Plan],
        make: Callable[..., Any],
    ) -> None:
        self.value: Final = value
        self.plan: Final = plan
        self.parts: Final = parts
        self.plans: Final = plans
        self.make: Final = make
        self.made: Final[list[Any]] = []

    def finished(self) -> Any:
        """Return the value of the transformed parts."""
        is_fixed = not isinstance(self.plan, Elements) and not isinstance(self.value, list)
        same = is_fixed and all(map(_is_same, self.made, self.parts))
        return self.value if same else self.make(*self.made)


@final
class _Transform:
    """One walk over a value; its frames are the values that have been entered and not left."""

    def __init__(self, change: Callable[[Any, Leaf], Any], *, finishes: bool = False) -> None:
        self.frames: Final[list[_Frame]] = []
        self.done: Final[defaultdict[Plan, dict[int, Any]]] = defaultdict(dict)
        self._change: Final = change
        self._finishes: Final = finishes

    def remember(self) -> None:
        """Remember the instances that were walked over, and stayed what they are."""
        for plan, values in self.done.items():
            if not isinstance(plan, Data):
                continue
            for value in values.values():
                if plan.cases[type(value)].lasts:
                    plan.finished.add(value, SETTLED)
                    plan.remembered.add(value, SETTLED)

    def _is_finished(self, value: Any, plan: Data) -> bool:
        return self._finishes and plan.finished.get(value) is not None

    def enter(self, value: Any, plan: Plan) -> Any:
        """Go down to the first leaf or to a value without parts, and give what becomes of it."""
        make: Callable[..., Any]
        while True:
            match plan:
                case Leaf():
                    return self._change(value, plan)
                case Maybe(inner=inner):
                    if value is None:
                        return None
                    if type(value) is not Present and not _may_be_none(inner):
                        plan = inner
                        continue
                    parts, plans, make = (some_value(value),), (inner,), some
                case Data():
                    done = self.done[plan]
                    if id(value) in done or self._is_finished(value, plan):
                        return done.get(id(value), value)
                    case = plan.cases[type(value)]
                    parts, plans, make = case.read(value), case.plans, case.make
                case Items() | Elements():
                    parts, plans, make = _entered(value, plan)
            if not parts:
                return make() if isinstance(plan, Elements) else value
            self.frames.append(_Frame(value, plan, parts, plans, make))
            value, plan = parts[0], plans[0]


def _may_be_none(plan: Plan) -> bool:
    """Return whether None stands for some value of a type."""
    return isinstance(plan, Maybe) or plan.type == UNIT


def _entered(
    value: Any, plan: Items | Elements
) -> tuple[Sequence[Any], Sequence[Plan], Callable[..., Any]]:
    """Return the parts of a tuple or a list, and what makes it of them. A list has another form
    outside than inside, so it is always made anew."""
    if isinstance(plan, Items):
        return value, plan.fields, _tuple
    inside = elements(value)
    return inside, (plan.inner,) * len(inside), listed if isinstance(value, tuple) else chained


def _is_same(left: Any, right: Any) -> bool:
    return left is right


def _tuple(*fields: Any) -> tuple[Any, ...]:
    return fields
