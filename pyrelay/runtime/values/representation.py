"""How values of data types look at run time, in compiled code and in the reference evaluator.

A user's data type: instances of the user's own classes. The prelude's optional: None, or the value
itself. What a tensor that has sizes of its own is in: the tensor. Any other data type, such as one
that a pass generates: the tuple `(tag, *fields)`.
`host/data.py` generates code for the same representations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeAlias, final

from ...dataclass import dataclass
from ...ir.types import element_name, names_own_sizes
from ...prelude.library import LIST, OPTION
from ...prelude.names import CONSTRUCTORS
from ...prelude.values import some, some_value

if TYPE_CHECKING:
    from ...translate.data.data import DataType
    from ...translate.types.number_places import Numbers

Maker: TypeAlias = Callable[..., Any]
"""From the fields of a constructor to a value."""


@final
class Tagged:
    """Values are tuples of a tag, the constructor's position among its siblings, and the fields."""

    def construct(self, tag: int, fields: Sequence[Any]) -> Any:
        """Return the value that a constructor makes of its fields."""
        return (tag, *fields)

    def tag(self, value: Any) -> int:
        """Return the tag of the constructor that made a value."""
        return value[0]

    def fields(self, value: Any) -> tuple[Any, ...]:
        """Return the fields of a value."""
        return value[1:]


@final
class Nullable:
    """Values of the prelude's optional: None, or the value itself; the tag 0 is `Some`."""

    def construct(self, tag: int, fields: Sequence[Any]) -> Any:
        """Return None, or the one field."""
        return None if tag else some(fields[0])

    def tag(self, value: Any) -> int:
        """Return 1 for None."""
        return int(value is None)

    def fields(self, value: Any) -> tuple[Any, ...]:
        """Return the value, if there is one."""
        return () if value is None else (some_value(value),)


@final
class Itself:
    """Values of a data type with one constructor of one field: the field itself."""

    def construct(self, tag: int, fields: Sequence[Any]) -> Any:
        """Return the one field."""
        assert not tag
        return fields[0]

    def tag(self, value: Any) -> int:
        """Return the tag of the only constructor."""
        del value
        return 0

    def fields(self, value: Any) -> tuple[Any, ...]:
        """Return the value as the one field."""
        return (value,)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Instances:
    """Values are instances of one class for each constructor; fields are attributes."""

    classes: tuple[type, ...]
    names: tuple[tuple[str, ...], ...]
    makers: tuple[Maker, ...]
    readers: tuple[Callable[[Any], tuple[Any, ...]], ...]
    tags: Mapping[type, int]
    of_text: bool
    """Whether the classes were made for a data type of a text."""

    @staticmethod
    def of(
        classes: Sequence[type], names: Sequence[tuple[str, ...]], *, of_text: bool = False
    ) -> Instances:
        """Return the representation by classes, with the names of their fields in order."""
        return Instances(
            tuple(classes),
            tuple(names),
            tuple(maker(c, n) for c, n in zip(classes, names, strict=True)),
            tuple(reader(n) for n in names),
            {c: tag for tag, c in enumerate(classes)},
            of_text,
        )

    def construct(self, tag: int, fields: Sequence[Any]) -> Any:
        """Return an instance."""
        return self.makers[tag](*fields)

    def tag(self, value: Any) -> int:
        """Return the position of the value's class."""
        return self.tags[type(value)]

    def fields(self, value: Any) -> tuple[Any, ...]:
        """Return the attributes that are fields."""
        return self.readers[self.tags[type(value)]](value)


Representation: TypeAlias = Tagged | Nullable | Itself | Instances
Representations: TypeAlias = Mapping[str, Representation]
"""By the name of the data type; one that is missing is `TAGGED`."""

NOTHING_KNOWN: Final[Representations] = MappingProxyType({})
TAGGED: Final = Tagged()
NULLABLE: Final = Nullable()
ITSELF: Final = Itself()


@cache
def of_prelude() -> Mapping[str, Instances]:
    """Return the representations of the prelude's data types that have classes; lists are
    chains."""
    found: dict[str, list[type]] = {}
    for cls, constructor in CONSTRUCTORS.items():
        if constructor.adt != LIST:
            found.setdefault(constructor.adt, []).append(cls)
    return {
        adt: Instances.of(classes, [CONSTRUCTORS[c].fields for c in classes])
        for adt, classes in found.items()
    }


def representation(known: Representations, adt: str) -> Representation:
    """Return the representation of a data type by name."""
    if adt == OPTION:
        return NULLABLE
    if names_own_sizes(adt):
        return ITSELF
    found = of_prelude().get(adt) or known.get(adt)
    if found is not None:
        return found
    element = element_name(adt)  # a batch is an instance whose tensors have a dim more
    return TAGGED if element is None else representation(known, element)


@final
@dataclass(frozen=True, slots=True, eq=False)
class UserData:
    """Users' data types at run time: how values look, and where in the fields of each
    constructor numbers are Python's own."""

    representations: Representations
    numbers: Mapping[str, tuple[tuple[Numbers, ...], ...]]

    @staticmethod
    def of(types: Mapping[str, DataType]) -> UserData:
        """Return it of the data types of a program."""
        made: dict[str, Representation] = {}
        for name, found in types.items():
            classes = [c.cls for c in found.constructors]
            names = [c.field_names for c in found.constructors]
            made[name] = Instances.of(classes, names, of_text=found.of_text)
        return UserData(made, {n: t.numbers for n, t in types.items()})


NO_DATA: Final = UserData({}, {})


def maker(cls: type, names: Sequence[str]) -> Maker:
    """Return the function that makes instances of a frozen dataclass from its fields. A class
    without fields has one instance."""
    if not names:
        only = object.__new__(cls)
        return lambda: only
    namespace: dict[str, Any] = {}

    def named(value: Any) -> str:
        name = f"n{len(namespace)}"
        namespace[name] = value
        return name

    values = [f"v{i}" for i in range(len(names))]
    lines = [*making(cls, names, values, named), "return made"]
    exec("\n    ".join([f"def make({', '.join(values)}):", *lines]), namespace)
    return namespace["make"]


def making(
    cls: type, names: Sequence[str], values: Sequence[str], named: Callable[[Any], str]
) -> list[str]:
    """Return the statements that set `made` to a new instance of a frozen dataclass; `named` names
    what they need.

    Its `__init__` sets each field through `object.__setattr__`, which takes twice as long as
    filling a new instance directly.
    """
    made = f"made = {named(object.__new__)}({named(cls)})"
    slots = [getattr(getattr(cls, name, None), "__set__", None) for name in names]
    if all(slots):
        setters = zip(slots, values, strict=True)
        return [made, *(f"{named(setter)}(made, {value})" for setter, value in setters)]
    fields = zip(names, values, strict=True)
    return [
        made,
        "fields = made.__dict__",
        *(f"fields[{name!r}] = {value}" for name, value in fields),
    ]


def reader(names: Sequence[str]) -> Callable[[Any], tuple[Any, ...]]:
    """Return the function that reads the fields off an instance."""
    if not names:
        return lambda _: ()
    if len(names) == 1:
        (name,) = names
        return lambda value: (getattr(value, name),)
    return attrgetter(*names)
