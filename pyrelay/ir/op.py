"""The shape of an operator: one declaration that every part of the compiler reads.

An `Op` states its signature, type rule, effect, shape behaviour, derivative, lowering and samples.
What decides its meaning is required, so nothing can be forgotten. A user's own operator is the same
value.

The type rule is a relation: it may read what is known of the operand types, equate dims (so shapes
flow backwards too), and then gives the result type; raises `Stuck` while it knows too little, and
`Clash` when no types could satisfy it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import Enum, Flag, auto
from typing import TYPE_CHECKING, Any, Final, NoReturn, Protocol, TypeAlias, final

from ..dataclass import dataclass
from .declaration.derivatives import Expansion as Expansion
from .declaration.derivatives import Gradient as Gradient
from .declaration.derivatives import Linear as Linear
from .declaration.derivatives import NoGradient as NoGradient
from .declaration.derivatives import Pullback as Pullback
from .declaration.derivatives import Push as Push
from .declaration.derivatives import Pushforward as Pushforward
from .declaration.layouts import Layouts as Layouts
from .declaration.lowering import Contraction as Contraction
from .declaration.lowering import Elementwise as Elementwise
from .declaration.lowering import Host as Host
from .declaration.lowering import Library as Library
from .declaration.lowering import Lowering as Lowering
from .declaration.lowering import MadeOf as MadeOf
from .declaration.lowering import Method as Method
from .declaration.lowering import Pointwise as Pointwise
from .declaration.lowering import Reduction as Reduction
from .declaration.lowering import Scatter as Scatter
from .declaration.lowering import View as View
from .declaration.operand_mistakes import instead_of_tensor, no_tensor
from .declaration.precision import Precision as Precision
from .declaration.precision import precision_of
from .declaration.samples import Sample as Sample
from .declaration.samples import SampleArg as SampleArg
from .declaration.samples import TensorSpec as TensorSpec
from .dims import Dim
from .types import (
    PRELUDE,
    AdtType,
    AnyDType,
    DType,
    DTypeHole,
    SizeType,
    TensorType,
    TupleType,
    Type,
    TypeHole,
    int64,
    show,
)

if TYPE_CHECKING:
    from ..operators.builder import Value


class Role(Enum):
    """How an argument is passed: as a value, or as a static attribute."""

    OPERAND = "operand"
    ATTRIBUTE = "attribute"


class Missing(Enum):
    """Defaults that are not values."""

    REQUIRED = "required"
    MODE = "mode"
    """The train or eval mode of the model around the call; False outside of one."""


REQUIRED: Final = Missing.REQUIRED
MODE: Final = Missing.MODE


@final
@dataclass(frozen=True, slots=True)
class Param:
    """A parameter of an operator, named as in torch.

    An operand with default None may be omitted; it is then the empty tuple. `promote` marks the
    operands that are brought to one common dtype. `convert` puts an attribute into its one
    normal form (a pair for `stride=2`) when the call is made.
    """

    name: str
    role: Role
    default: Any
    promote: bool = False
    convert: Callable[[Any], Any] | None = None
    infer: Callable[[RuleCall], Any] | None = None
    """The value of an attribute that is None, by the types of the operands."""


def operand(name: str, *, promote: bool = False) -> Param:
    """Return a required operand."""
    return Param(name, Role.OPERAND, REQUIRED, promote)


def optional(name: str) -> Param:
    """Return an operand that may be omitted."""
    return Param(name, Role.OPERAND, None)


def attribute(
    name: str,
    default: Any = REQUIRED,
    convert: Callable[[Any], Any] | None = None,
    infer: Callable[[RuleCall], Any] | None = None,
) -> Param:
    """Return a static attribute, required without a default; `infer` finds it where it is None."""
    return Param(name, Role.ATTRIBUTE, default, convert=convert, infer=infer)


class Promotion(Enum):
    """The promotion of the dtypes of the operands marked `promote`."""

    NONE = "none"
    COMMON = "common"
    """All take the common dtype."""
    FLOAT = "float"
    """All take the common dtype, and integers and bools become float32."""


class Effect(Flag):
    """The effects of a computation besides its value."""

    NONE = 0
    STATE = auto()
    """Reads or writes a cell."""
    RANDOM = auto()
    """Draws from a stream that is not an argument."""
    IO = auto()
    """Prints, or calls host code."""
    FAIL = auto()
    """May stop the program."""


class ShapeBehaviour(Enum):
    """How the result's shape comes about (the taxonomy of torch's operators in seed 004)."""

    POINTWISE = "pointwise"
    FIXED = "fixed"
    N_DIMENSIONAL = "n-dimensional"
    IDENTITY = "identity"
    COMPOSITE = "composite"
    BATCHED = "batched"
    FEATURE_BATCHED = "feature-batched"
    FACTORY = "factory"
    TRIVIAL = "trivial"
    DYNAMIC = "dynamic"
    VARIADIC = "variadic"
    OF_LOWERING = "of its lowering"
    """Stands in a declaration for what the kind of lowering implies."""


class Stuck(Exception):  # noqa: N818  control flow of the solver, not an error
    """The rule must wait until one of `on` is known."""

    def __init__(self, *on: Type | Dim | AnyDType) -> None:
        super().__init__(*on)
        self.on = on


class Clash(Exception):  # noqa: N818  becomes a diagnostic once the solver adds the places
    """No types satisfy the rule.

    `labels` says something about operands, by index; `help` what to write instead, `cast` which
    operand to cast to which dtype.
    """

    def __init__(
        self,
        message: str,
        *,
        labels: Mapping[int, str] | None = None,
        help: str | None = None,  # noqa: A002  the diagnostic's own word
        cast: tuple[int, DType] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.labels = dict(labels or {})
        self.help = help
        self.cast = cast


class Solver(Protocol):
    """The interface of inference to a type rule."""

    def resolve(self, ty: Type) -> Type:
        """Return the type with everything known so far filled in."""
        ...

    def resolve_dim(self, dim: Dim) -> Dim:
        """Return the dim with everything known so far filled in."""
        ...

    def unify(self, left: Type, right: Type) -> None:
        """Make two types equal. Raises Clash."""
        ...

    def unify_dims(self, left: Dim, right: Dim) -> None:
        """Make two dims equal, now or as an assumption checked at entry. Raises Clash."""
        ...

    def fresh_dim(self, hint: str) -> Dim:
        """Return a size that only the running program knows."""
        ...

    def is_found_running(self, dim: Dim) -> bool:
        """Return whether a dim depends on a size that was made by `fresh_dim`; a solver that only
        checks what inference found says no."""
        ...

    @property
    def stretches(self) -> bool:
        """Whether sizes that may differ broadcast where one is 1 when the program runs."""
        ...

    @property
    def guessing(self) -> bool:
        """Whether defaults must be chosen now for all that is still open; comes after settling."""
        ...

    @property
    def settling(self) -> bool:
        """True when nothing more will become known, so a rule that can choose must choose."""
        ...


@final
@dataclass(frozen=True, slots=True)
class RuleCall:
    """One use of an operator, as its type rule sees it: promoted operand types and attributes."""

    op: Op
    types: tuple[Type, ...]
    attrs: Mapping[str, Any]
    solver: Solver

    def given(self, index: int) -> bool:
        """Return whether an optional operand is present."""
        return self.types[index] != TupleType(())

    def type(self, index: int) -> Type:
        """Return the type of an operand as far as known. Raises Stuck on a hole."""
        ty = self.solver.resolve(self.types[index])
        if isinstance(ty, TypeHole):
            raise Stuck(ty)
        return ty

    def tensor(self, index: int) -> TensorType:
        """Return the type of an operand that must be a tensor. Raises Stuck or Clash."""
        ty = self.type(index)
        if isinstance(ty, SizeType):
            return TensorType((), int64)
        if isinstance(ty, TensorType):
            return ty
        name = self.operand_name(index)
        raise Clash(
            no_tensor(self.op.name, self.name, name, ty),
            labels={index: f"this is {show(ty)}"},
            help=instead_of_tensor(self.op.name, name, ty),
        )

    def tensors(self, index: int) -> tuple[TensorType, ...]:
        """Return the types of an operand that must be a tuple of tensors. Raises Stuck or Clash."""
        ty = self.type(index)
        if not isinstance(ty, TupleType):
            is_list = isinstance(ty, AdtType) and ty.name == f"{PRELUDE}List"
            self.clash(
                f"`{self.name}` takes a tuple of tensors, not {show(ty)}",
                index,
                help=_JOINED if is_list else None,
            )
        found: list[TensorType] = []
        for part in ty.fields:
            part = self.solver.resolve(part)
            match part:
                case TypeHole():
                    raise Stuck(part)
                case TensorType():
                    found.append(part)
                case SizeType():
                    found.append(TensorType((), int64))
                case _:
                    self.clash(f"`{self.name}` takes tensors, not {show(part)}", index)
        return tuple(found)

    def known_dtype(self, dtype: AnyDType) -> AnyDType:
        """Return a dtype that is known. Raises Stuck on a hole, unless inference is settling."""
        if isinstance(dtype, DTypeHole) and not self.solver.settling:
            raise Stuck(dtype)
        return dtype

    def unify_dims(self, left: Dim, right: Dim, index: int, message: str) -> None:
        """Make two dims equal; a clash says `message` at operand `index`."""
        try:
            self.solver.unify_dims(left, right)
        except Clash:
            self.clash(message, index)

    @property
    def name(self) -> str:
        """The name of the operator as its users write it."""
        return _WRITTEN.get(self.op.name, self.op.name)

    def operand_name(self, index: int) -> str:
        """Return the parameter name of an operand."""
        names = [p.name for p in self.op.params if p.role is Role.OPERAND]
        return names[index] if index < len(names) else str(index)

    def clash(
        self,
        message: str,
        *indices: int,
        help: str | None = None,  # noqa: A002
        cast: tuple[int, DType] | None = None,
    ) -> NoReturn:
        """Stop with a mistake; the operands named are shown with their types."""
        labels = {i: f"this is {show(self.solver.resolve(self.types[i]))}" for i in indices}
        raise Clash(message, labels=labels, help=help, cast=cast)


_JOINED: Final = "`relay.stack(xs)` makes a tensor of a list; `.flatten(0, 1)` joins its rows"
_WRITTEN: Final = {
    "check": "assert",
    "dim_size": "len",
    "to_bool": "bool",
    "to_float": "float",
    "to_int": "int",
}
"""The Python that stands for operators with names of their own."""

TypeRule: TypeAlias = Callable[[RuleCall], Type]


class HiddenKind(Enum):
    """Where a hidden value of a model lives."""

    PARAMETER = "parameter"
    """A trained tensor."""
    BUFFER = "buffer"
    """State that a training call updates: the operator's result is (value, *new buffers)."""
    KEY = "key"
    """A random key, from the model's own, for this site and step."""


class Init(Enum):
    """How a hidden parameter starts."""

    FAN_IN = "normal, standard deviation 1/sqrt(fan in)"
    NORMAL = "normal, standard deviation 1"
    ZEROS = "zeros"
    ONES = "ones"


@final
@dataclass(frozen=True, slots=True)
class Hidden:
    """An operand that a model supplies when the call leaves it out.

    `type_rule` gives its type from the other operands and the hyper-parameters; `only_if` names a
    bool hyper-parameter that, when False, leaves the operand out after all.
    """

    name: str
    holder: HiddenKind
    init: Init
    type_rule: Callable[[RuleCall], TensorType]
    only_if: str | None = None


OWN_NAME: Final = ""
"""Stands in a declaration for the operator's own name."""

_SHAPES: Final[Mapping[type[Lowering], ShapeBehaviour]] = {
    Pointwise: ShapeBehaviour.POINTWISE,
    Reduction: ShapeBehaviour.N_DIMENSIONAL,
    MadeOf: ShapeBehaviour.COMPOSITE,
    Host: ShapeBehaviour.TRIVIAL,
}


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Op:
    """An operator: signature, meaning, type, derivative and kernel. Only fields whose default is
    neutral have one.

    `torch_name` is the dotted name in torch whose value the operator gives, which tests compare:
    its own by default, where torch has it, or None where the function of that name is another.
    `hyper` are the further static arguments a call takes when a model supplies the operands in
    `hidden` (`out_channels`, ...).
    `body` is the whole meaning of a composite, whatever computes it. `push` is the derivative in
    forward mode; where it is None, it follows from `grad`.
    `shape` follows from a lowering that is pointwise, a reduction, a composite or on the host,
    `precision` from one that is a product or a view, `layouts` from a pointwise shape.
    """

    name: str
    doc: str
    params: tuple[Param, ...]
    promotion: Promotion = Promotion.NONE
    type_rule: TypeRule
    effect: Effect = Effect.NONE
    shape: ShapeBehaviour = ShapeBehaviour.OF_LOWERING
    precision: Precision = Precision.OF_LOWERING
    layouts: Layouts = Layouts.OF_SHAPE
    lowering: Lowering
    body: MadeOf | None = None
    grad: Gradient | Expansion | NoGradient
    push: Push | Linear | None = None
    hidden: tuple[Hidden, ...] = ()
    hyper: tuple[Param, ...] = ()
    torch_name: str | None = OWN_NAME
    samples: Callable[[], Iterable[Sample]]

    def __post_init__(self) -> None:
        if self.torch_name is OWN_NAME:
            object.__setattr__(self, "torch_name", self.name)
        if self.shape is ShapeBehaviour.OF_LOWERING:
            object.__setattr__(self, "shape", _SHAPES[type(self.lowering)])
        if self.precision is Precision.OF_LOWERING:
            object.__setattr__(self, "precision", precision_of(self.lowering))
        if self.layouts is Layouts.OF_SHAPE:
            is_pointwise = self.shape is ShapeBehaviour.POINTWISE
            object.__setattr__(self, "layouts", Layouts.ALIKE if is_pointwise else Layouts.PLAIN)

    def __repr__(self) -> str:
        return f"<operator {self.name}>"

    @property
    def operands(self) -> tuple[Param, ...]:
        """The parameters passed as values."""
        return tuple(p for p in self.params if p.role is Role.OPERAND)

    @property
    def attributes(self) -> tuple[Param, ...]:
        """The parameters passed as static attributes."""
        return tuple(p for p in self.params if p.role is Role.ATTRIBUTE)

    def __call__(self, *operands: Value | float | None, **attrs: Any) -> Value:
        """Emit a call on values under construction; for gradient rules and passes."""
        for item in operands:
            if item is not None and not isinstance(item, int | float):
                return item.builder.call(self, operands, attrs)
        raise TypeError(f"{self.name} needs at least one value; use Builder.call")
