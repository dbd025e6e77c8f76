"""Function values while a program is made first-order.

A function value whose code is known is a `Closure`: a target, the sizes its code refers to, and
the data it captured. It exists only in the converter; where the code can no longer be followed
(in a tuple, behind an `if`, as a result) it is turned into data.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Final, TypeAlias, final

from ...analysis.free_names import names_in
from ...dataclass import dataclass
from ...ir.dims import Dim
from ...ir.expr import Assumption, Expr, Function, Transform, Var
from ...ir.module import AdtDef, ConstructorDef
from ...ir.types import FnType, Substitution, Type, TypeParam

if TYPE_CHECKING:
    from ...diagnostics.source import Span


class NotFirstOrder(Exception):  # noqa: N818  says what is so, as `Clash` and `Stuck` do
    """The program cannot be made first-order: a function comes from outside."""

    def __init__(self, why: str, span: Span | None = None) -> None:
        super().__init__(why)
        self.why: Final = why
        self.span: Final = span


@final
class EverNewTypes(NotFirstOrder):
    """A function calls itself at ever new types, so it has no bounded number of instances."""

    def __init__(self, name: str, span: Span) -> None:
        super().__init__(f"`{name}` is used at ever new types", span)
        self.name: Final = name
        self.place: Final = span


@final
@dataclass(frozen=True, slots=True, eq=False)
class Closure:
    """A function value whose code is known.

    `dims` are the values of `target.sizes` and `leaves` the captured atoms, both in terms of the
    function that holds the closure.
    """

    target: Target
    dims: tuple[Dim, ...] = ()
    leaves: tuple[Expr, ...] = ()


Value: TypeAlias = Expr | Closure
"""The value of a variable: an atom of the first-order program, or a known function."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class LocalTarget:
    """A local function, in one instance of the function around it; `type` is that of the source in
    terms of `sizes`.

    `group` are the functions of its recursive block with their variables, itself included, and
    `captures` what the group uses from outside, in terms of `sizes`: a variable is a placeholder
    for the next leaf. Leaves that follow are the values of sizes. `code` are the local functions
    it consists of; it `grows` if it captured one made by the same code, as a loop does that wraps
    a function once more in each round.
    """

    number: int
    name: str
    function: Function
    owner: Instance
    sizes: tuple[str, ...]
    leaf_types: tuple[Type, ...]
    leaf_names: tuple[str, ...]
    type: FnType
    captures: tuple[tuple[Var, Value], ...]
    code: frozenset[Function]
    grows: bool
    group: dict[Var, LocalTarget] = field(default_factory=dict["Var", "LocalTarget"])


@final
@dataclass(frozen=True, slots=True, eq=False)
class GlobalTarget:
    """A global function used as a value, at type arguments in terms of `sizes`."""

    number: int
    name: str
    type_args: tuple[Type | Dim, ...]
    sizes: tuple[str, ...]
    type: FnType
    leaf_types: tuple[Type, ...] = ()
    code: frozenset[Function] = frozenset()
    grows: bool = False


@final
@dataclass(frozen=True, slots=True, eq=False)
class ConstructorTarget:
    """A constructor used as a value."""

    number: int
    name: str
    sizes: tuple[str, ...]
    type: FnType
    leaf_types: tuple[Type, ...] = ()
    code: frozenset[Function] = frozenset()
    grows: bool = False


@final
@dataclass(frozen=True, slots=True, eq=False)
class TransformTarget:
    """A transform of a known function; captures and sizes are those of the function."""

    number: int
    name: str
    transform: Transform
    inner: Target
    sizes: tuple[str, ...]
    type: FnType
    leaf_types: tuple[Type, ...]
    code: frozenset[Function]
    grows: bool


@final
@dataclass(frozen=True, slots=True, eq=False)
class DataTarget:
    """Whatever function a piece of function data stands for; the data is the one leaf."""

    number: int
    name: str
    data: FunctionData
    sizes: tuple[str, ...]
    type: FnType
    leaf_types: tuple[Type, ...]
    code: frozenset[Function] = frozenset()
    grows: bool = False


Target: TypeAlias = LocalTarget | GlobalTarget | ConstructorTarget | TransformTarget | DataTarget


@final
@dataclass(slots=True, eq=False)
class FunctionData:
    """The data type that replaces a function type.

    `type` is the function type with a name of its own for every size in it. Constructors are
    added while the program is converted.
    """

    name: str
    type: FnType
    span: Span
    constructors: dict[Target, ConstructorDef] = field(
        default_factory=dict["Target", ConstructorDef]
    )

    def definition(self) -> AdtDef:
        """Return the definition of the data type with the constructors found so far."""
        return AdtDef(self.name, (), tuple(self.constructors.values()), self.span)


@final
class Instance:
    """A function of the first-order program to be made."""

    def __init__(
        self,
        name: str,
        source: str,
        change: Substitution,
        type_params: tuple[TypeParam, ...],
        span: Span,
    ) -> None:
        self.name: Final = name
        self.source: Final = source
        """The name of the unit that it is an instance of."""
        self.span: Final = span
        self.change: Final = change
        """Brings types of the source into the terms of the instance."""
        self.type_params: Final = type_params
        self.params: Final[list[Var]] = []
        self.values: Final[dict[Var, Value]] = {}
        """The values of the variables of the source."""
        self.sizes: Final[dict[str, None]] = dict.fromkeys(p.name for p in type_params)
        """The sizes that are in scope so far."""
        self.assumptions: tuple[Assumption, ...] = ()
        """The equations that hold in it: its source's, and those of the function around that."""

    def add_param(self, name: str, ty: Type, span: Span) -> Var:
        """Add a parameter of a first-order type."""
        var = Var(name, ty, span=span)
        self.params.append(var)
        self.sizes.update(dict.fromkeys(names_in((ty,))))
        return var
