"""Names from outside of a function: closure cells, globals, builtins, and what hangs on them.

Captured names are looked up when a program is translated, never when it is defined, so functions
may refer to later ones. Each look-up leaves a `Guard`: the compiled program is right only as long
as all its guards hold.
"""

from __future__ import annotations

import ast
import builtins
import enum
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import fields, is_dataclass
from types import CellType, FunctionType, MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeGuard, final

from ...dataclass import dataclass
from ...diagnostics import misspelt
from ...ir import dims, types
from ...operators.captured import CAPTURED, CapturedInteger, CapturedNumber

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


@final
class _Missing:
    """No value at all; None is one."""

    def __repr__(self) -> str:
        return "<missing>"


MISSING: Final = _Missing()


NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


Namespace: TypeAlias = Callable[[], Mapping[str, Any]]
"""Return the names in scope."""


CapturedName: TypeAlias = tuple[int, str]
"""Where a captured name has its value: the identity of the holder, which a guard keeps, and the
name."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Guard:
    """A captured name and the value with which a program was translated.

    A number that `varies` is read by each run; the program is right while it is one of its kind.
    """

    name: str
    holder: CellType | Mapping[str, Any]
    value: Any
    owner: object = None
    """The class whose attribute it is, if it is one: each access to `vars` of a class returns
    another view."""
    varies: bool = False

    @property
    def key(self) -> CapturedName:
        """Where the value is."""
        return _place(self.holder, self.owner, self.name)

    def holds(self) -> bool:
        """Return whether the name still has this value, or one that does as well."""
        current = _read(self.holder, self.name)
        if self.varies:
            return type(current) is type(self.value)
        if current is self.value:
            return True
        return type(current) is type(self.value) and is_data(current) and current == self.value

    def has_changed_number(self) -> bool:
        """Return whether the name is now another number of the same kind, and may go on so."""
        kind = type(self.value)
        return kind in (float, int) and type(_read(self.holder, self.name)) is kind


@final
class Scope:
    """Resolution of the names that a Python function does not bind itself."""

    def __init__(
        self,
        function: FunctionType,
        around: Mapping[str, Any] = NOTHING,
        varying: Collection[CapturedName] = (),
        fixed: Collection[str] = (),
        captured: dict[CapturedName, CapturedNumber | CapturedInteger] | None = None,
        method: Callable[[object, str, Namespace], Any] | None = None,
    ) -> None:
        """`method` gives what a method is that is named on its class, `Tree.depth`, else None.

        The numbers at the places in `varying` are no part of the program, but for integers under
        names in `fixed`, which annotations mention. `captured` are those that the program has
        mentioned so far: one operator reads each of them."""
        names = function.__code__.co_freevars
        self._around: Final = around
        own = getattr(function, "__type_params__", ())  # `def f[T](...)`, from Python 3.12 on
        self._params: Final = {p.__name__: p for p in own}
        self._cells: Final = dict(zip(names, function.__closure__ or (), strict=True))
        self._globals: Final = function.__globals__
        self._varying: Final = varying
        self._fixed: Final = fixed
        self._captured: Final = {} if captured is None else captured
        self._method: Final = method
        self._guards: Final[dict[CapturedName, Guard]] = {}

    @property
    def guards(self) -> tuple[Guard, ...]:
        """The names looked up so far, in order."""
        return tuple(self._guards.values())

    def find(self, name: str) -> Any:
        """Return the value of a name, MISSING if it has none, and guard it."""
        if name in self._cells:
            return self._guarded(self._cells[name], name)
        value = self._guarded(self._globals, name)
        return vars(builtins).get(name, MISSING) if value is MISSING else value

    def attribute(self, owner: Any, name: str) -> Any:
        """Return an attribute of a captured object, MISSING if it has none, and guard it."""
        is_class = isinstance(owner, type) and not issubclass(owner, enum.Enum)
        if (is_class or isinstance(owner, ModuleType)) and name in vars(owner):
            found = self._guarded(vars(owner), name, owner)
            if isinstance(found, CAPTURED):
                return found
        own = None if self._method is None else self._method(owner, name, self.namespace)
        return getattr(owner, name, MISSING) if own is None else own

    def value(self, node: ast.AST, own: Collection[str]) -> Any:
        """Return the captured value of a literal, or of a name that is not a function's own with
        what hangs on it; MISSING for any other expression."""
        path: list[ast.Attribute | ast.Subscript] = []
        while isinstance(node, ast.Attribute | ast.Subscript):
            path.append(node)
            node = node.value
        if isinstance(node, ast.Constant):
            value: Any = node.value
        elif isinstance(node, ast.Name) and node.id not in own:
            value = self.find(node.id)
        else:
            return MISSING
        for step in reversed(path):
            if value is MISSING:
                return MISSING
            value = self._step(value, step)
        return value

    def _step(self, value: Any, step: ast.Attribute | ast.Subscript) -> Any:
        if isinstance(step, ast.Attribute):
            return self.attribute(value, step.attr)
        place = step.slice.value if isinstance(step.slice, ast.Constant) else None
        if isinstance(value, tuple) and isinstance(place, int) and place < len(value):
            return value[place]
        return MISSING

    def names(self) -> tuple[str, ...]:
        """Return all names in scope, for suggestions."""
        return (*self._cells, *self._globals, *vars(builtins))

    def namespace(self) -> dict[str, Any]:
        """Return the names as a dictionary, for the evaluation of annotations."""
        cells = {n: _read(c, n) for n, c in self._cells.items()}
        found = {n: v for n, v in cells.items() if v is not MISSING}
        return {**self._globals, **self._around, **self._params, **found}

    def _guarded(
        self, holder: CellType | Mapping[str, Any], name: str, owner: object = None
    ) -> Any:
        value = _read(holder, name)
        key = _place(holder, owner, name)
        is_integer = type(value) is int and name not in self._fixed
        varies = key in self._varying and (is_integer or type(value) is float)
        self._guards.setdefault(key, Guard(name, holder, value, owner, varies))
        if not varies:
            return value
        if key not in self._captured:
            others = sum(other == name for _, other in self._captured)
            made = CapturedInteger if is_integer else CapturedNumber
            label = f"{name}_{others + 1}" if others else name
            self._captured[key] = made.of(label, lambda: _read(holder, name))
        return self._captured[key]


def _place(holder: CellType | Mapping[str, Any], owner: object, name: str) -> CapturedName:
    return (id(holder if owner is None else owner), name)


def _read(holder: CellType | Mapping[str, Any], name: str) -> Any:
    if not isinstance(holder, CellType):
        return holder.get(name, MISSING)
    try:
        return holder.cell_contents
    except ValueError:  # a name of the enclosing function that has no value yet
        return MISSING


def is_plain(value: object) -> bool:
    """Return whether a value is a number, bool, string, None, or a tuple of these."""
    pending = [value]
    while pending:
        current = pending.pop()
        if type(current) is tuple:
            pending += current
        elif type(current) not in (int, float, bool, str, type(None)):
            return False
    return True


def is_data(value: object) -> bool:
    """Return whether a value can never change and is compared by its content."""
    pending = [value]
    while pending:
        current = pending.pop()
        if type(current) is tuple:
            pending += current
        elif is_frozen(current):
            pending += (getattr(current, f.name) for f in fields(current))
        elif not (isinstance(current, enum.Enum | dims.Dim | types.DType) or is_plain(current)):
            return False
    return True


def is_known(value: object) -> bool:
    """Return whether a value is data without named sizes, which are another number in each call."""
    pending = [value]
    while pending:
        current = pending.pop()
        if isinstance(current, dims.Dim):
            return False
        if type(current) is tuple:
            pending += current
        elif is_frozen(current):
            pending += (getattr(current, f.name) for f in fields(current))
    return is_data(value)


def is_frozen(value: object) -> TypeGuard[DataclassInstance]:
    """Return whether a value is an instance of a frozen dataclass."""
    if not is_dataclass(value) or isinstance(value, type):
        return False
    return bool(getattr(type(value), "__dataclass_params__").frozen)  # noqa: B009  a private name


def is_frozen_field(owner: object, name: str) -> bool:
    """Return whether an attribute is a field of a frozen dataclass, which keeps its value."""
    return is_frozen(owner) and any(f.name == name for f in fields(owner))


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name nearest to a misspelt one."""
    return misspelt.nearest(name, [k for k in known if not k.startswith("_")], cutoff=0.7)
