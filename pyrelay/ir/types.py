"""Types of expressions, compared by structure.

    type ::= Tensor[shape, dtype, layout] | Size[dim] | (type, ...)
           | fn [params] (type, ...) -> type | ref(type) | Name[type or dim, ...] | T | str | ?hole

`SizeType(d)` is the type of an integer whose value is the dim `d`: a shape read, a literal, or
integer arithmetic over them. It is a subtype of a rank-0 int64 tensor. Holes exist only while
inference runs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from enum import Enum
from typing import Final, TypeAlias, TypeGuard, final

from ..dataclass import dataclass
from .dims import Dim, DimHole, DimVar


class DTypeKind(Enum):
    """The families between which promotion moves, in order."""

    BOOL = 0
    INT = 1
    FLOAT = 2


@final
@dataclass(frozen=True, slots=True)
class DType:
    """The element type of a tensor; `name` is torch's name for it."""

    name: str
    kind: DTypeKind
    bits: int

    def __str__(self) -> str:
        return self.name


bool_: Final = DType("bool", DTypeKind.BOOL, 8)
uint8: Final = DType("uint8", DTypeKind.INT, 8)
int8: Final = DType("int8", DTypeKind.INT, 8)
int16: Final = DType("int16", DTypeKind.INT, 16)
int32: Final = DType("int32", DTypeKind.INT, 32)
int64: Final = DType("int64", DTypeKind.INT, 64)
float16: Final = DType("float16", DTypeKind.FLOAT, 16)
bfloat16: Final = DType("bfloat16", DTypeKind.FLOAT, 16)
float32: Final = DType("float32", DTypeKind.FLOAT, 32)
float64: Final = DType("float64", DTypeKind.FLOAT, 64)

DTYPES: Final = {
    d.name: d
    for d in (bool_, uint8, int8, int16, int32, int64, float16, bfloat16, float32, float64)
}
_UNSIGNED: Final = tuple(DType(f"uint{n}", DTypeKind.INT, n) for n in (16, 32, 64))
TEXT_DTYPES: Final = {**DTYPES, **{d.name: d for d in _UNSIGNED}}
"""The dtypes that a text may name: Relay's files mention some that no operator here takes."""
DEFAULT_DTYPE: Final = {DTypeKind.BOOL: bool_, DTypeKind.INT: int64, DTypeKind.FLOAT: float32}
"""The dtype a weak number takes when it meets no tensor."""


@final
@dataclass(frozen=True, slots=True)
class DTypeHole:
    """A dtype not known yet. `weak` gives the family of a number literal that may still widen."""

    number: int
    weak: DTypeKind | None

    def __str__(self) -> str:
        return f"?dtype{self.number}"


AnyDType: TypeAlias = DType | DTypeHole


class Kind(Enum):
    """The kind of a type parameter."""

    TYPE = "Type"
    DIM = "Dim"


@final
@dataclass(frozen=True, slots=True)
class TypeVar:
    """A type parameter of a function or of an algebraic data type."""

    name: str


class Layout(Enum):
    """The order in memory of the last three dims of images, which are channels, height, width."""

    NCHW = "NCHW"
    """That of the shape, as in every tensor that holds no images."""
    NHWC = "NHWC"
    """The channels of a pixel lie together. The shape stays (..., channels, height, width)."""


@final
@dataclass(frozen=True, slots=True)
class TensorType:
    """A tensor: shape, then dtype. Rank is always known once the type is known."""

    shape: tuple[Dim, ...]
    dtype: AnyDType
    layout: Layout = Layout.NCHW

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.shape)


@final
@dataclass(frozen=True, slots=True)
class SizeType:
    """An integer whose value is a dim."""

    dim: Dim


@final
@dataclass(frozen=True, slots=True)
class TupleType:
    """A tuple; the empty one is unit."""

    fields: tuple[Type, ...]


@final
@dataclass(frozen=True, slots=True)
class FnType:
    """A function, polymorphic in `type_params` (types and dims)."""

    params: tuple[Type, ...]
    result: Type
    type_params: tuple[TypeParam, ...] = ()


@final
@dataclass(frozen=True, slots=True)
class RefType:
    """A mutable cell."""

    value: Type


@final
@dataclass(frozen=True, slots=True)
class AdtType:
    """An algebraic data type applied to its arguments (Relay's type call)."""

    name: str
    args: tuple[Type | Dim, ...] = ()


@final
@dataclass(frozen=True, slots=True)
class StrType:
    """A string; strings live on the host only."""


@final
@dataclass(frozen=True, slots=True)
class TypeHole:
    """A type not known yet; never left in a checked program."""

    number: int


TypeParam: TypeAlias = TypeVar | DimVar
Type: TypeAlias = (
    TensorType | SizeType | TupleType | FnType | RefType | AdtType | TypeVar | StrType | TypeHole
)

UNKNOWN: Final = TypeHole(0)
"""In an annotation: a part that inference finds; each occurrence is a hole of its own."""

OWN_SIZES: Final = "Own."
"""In front of the names of data types of tensors that each have sizes of their own."""
PRELUDE: Final = "prelude."
"""How the names of the prelude's data types and functions begin in a program."""

UNKNOWN_DIM: Final = Dim.atom(DimHole(0))
"""In an annotation: a dim that inference finds; each occurrence is a hole of its own."""

ANY_DIMS: Final = Dim.atom(DimHole(-2))
"""In an annotation, in a shape: any number of dims, written `...`. Never in a typed program."""

ANY_DIM: Final = "any"
"""How the name of a size begins that an annotation leaves open, written `Any`."""

UNIT: Final = TupleType(())
STR: Final = StrType()
ITERABLE: Final = AdtType("Iterable")
"""Any Python object of the caller's that a `for` loop can run over; nothing can be seen inside."""
ITERATOR: Final = AdtType("Iterator")
"""Such an object while a loop runs over it."""
BOOL: Final = TensorType((), bool_)
INT: Final = TensorType((), int64)
FLOAT: Final = TensorType((), float32)


def tensor_type(dtype: DType, *shape: Dim | int | str) -> TensorType:
    """Return a tensor type from dims, integers and dim names."""
    return TensorType(tuple(Dim.of(d) for d in shape), dtype)


def as_arguments(params: Iterable[TypeParam]) -> tuple[Type | Dim, ...]:
    """Return type parameters as arguments that stand for themselves."""
    return tuple(Dim.atom(p) if isinstance(p, DimVar) else p for p in params)


def parts(ty: Type) -> tuple[Type, ...]:
    """Return the types directly inside a type."""
    match ty:
        case TensorType():  # by far the most
            return ()
        case TupleType(fields):
            return fields
        case FnType(params, result):
            return (*params, result)
        case RefType(value):
            return (value,)
        case AdtType(args=args):
            return tuple(a for a in args if not isinstance(a, Dim))
        case _:
            return ()


def dtype_of(ty: Type) -> DType | None:
    """Return the element type of a tensor or number."""
    if isinstance(ty, SizeType):
        return int64
    return ty.dtype if isinstance(ty, TensorType) and isinstance(ty.dtype, DType) else None


def is_open_shape(ty: Type) -> TypeGuard[TensorType]:
    """Return whether a type is a tensor of any rank, `Tensor[Float, (N, ...)]`."""
    return isinstance(ty, TensorType) and ANY_DIMS in ty.shape


def open_shapes(ty: Type) -> list[TensorType]:
    """Return the tensors of any rank in a type, in order."""
    return [part for part in subtypes(ty) if is_open_shape(part)]


def with_dims(ty: TensorType, found: tuple[Dim, ...]) -> TensorType:
    """Return the tensor of any rank with dims in the place of `...`."""
    place = ty.shape.index(ANY_DIMS)
    return replace(ty, shape=(*ty.shape[:place], *found, *ty.shape[place + 1 :]))


def subtypes(ty: Type) -> Iterator[Type]:
    """Return the type and every type inside it."""
    pending = [ty]
    while pending:
        current = pending.pop()
        yield current
        pending += reversed(parts(current))


def dims(ty: Type) -> Iterator[Dim]:
    """Return every dim that the type mentions, in order, repeats included."""
    for part in subtypes(ty):
        match part:
            case TensorType(shape):
                yield from shape
            case SizeType(dim):
                yield dim
            case AdtType(args=args):
                yield from (a for a in args if isinstance(a, Dim))
            case _:
                pass


def dim_names(ty: Type) -> frozenset[str]:
    """Return the names of all sizes in the type, those it quantifies itself excepted."""
    match ty:
        case TensorType(shape):
            return frozenset[str]().union(*(d.names() for d in shape))
        case SizeType(dim):
            return dim.names()
        case AdtType(args=args):
            own = (a.names() if isinstance(a, Dim) else dim_names(a) for a in args)
            return frozenset[str]().union(*own)
        case _:
            inner = frozenset[str]().union(*map(dim_names, parts(ty)))
            bound = ty.type_params if isinstance(ty, FnType) else ()
            return inner.difference(p.name for p in bound if isinstance(p, DimVar))


def map_type(
    ty: Type, on_type: Callable[[Type], Type | None], on_dim: Callable[[Dim], Dim]
) -> Type:
    """Return the type rebuilt: `on_type` may replace a part whole, `on_dim` replaces every dim.

    Type nesting is what a user writes, so this one walk may recurse.
    """
    replaced = on_type(ty)
    if replaced is not None:
        return replaced
    match ty:
        case TensorType(shape, dtype, layout):
            return TensorType(tuple(on_dim(d) for d in shape), dtype, layout)
        case SizeType(dim):
            return SizeType(on_dim(dim))
        case TupleType(fields):
            return TupleType(tuple(map_type(f, on_type, on_dim) for f in fields))
        case FnType(params, result, type_params):
            return FnType(
                tuple(map_type(p, on_type, on_dim) for p in params),
                map_type(result, on_type, on_dim),
                type_params,
            )
        case RefType(value):
            return RefType(map_type(value, on_type, on_dim))
        case AdtType(name, args):
            return AdtType(
                name,
                tuple(
                    on_dim(a) if isinstance(a, Dim) else map_type(a, on_type, on_dim) for a in args
                ),
            )
        case TypeVar() | StrType() | TypeHole():
            return ty


@dataclass(frozen=True, slots=True)
class Substitution:
    """A replacement of type parameters: dims by name, types by name."""

    dims: dict[str, Dim]
    types: dict[str, Type]

    @property
    def is_empty(self) -> bool:
        """Whether every type stays as it is."""
        return not self.dims and not self.types

    def __call__(self, ty: Type) -> Type:
        """Return the type with its parameters replaced."""
        return ty if self.is_empty else map_type(ty, self._type, self.dim)

    def dim(self, dim: Dim) -> Dim:
        """Return the dim with its names replaced."""
        return dim.rename(self.dims)

    def _type(self, ty: Type) -> Type | None:
        if isinstance(ty, TypeVar):
            return self.types.get(ty.name)
        if isinstance(ty, FnType) and ty.type_params:
            names = {p.name for p in ty.type_params}
            inner = Substitution(
                {k: v for k, v in self.dims.items() if k not in names},
                {k: v for k, v in self.types.items() if k not in names},
            )
            bare = FnType(ty.params, ty.result)
            body = inner(bare)
            assert isinstance(body, FnType)
            return FnType(body.params, body.result, ty.type_params)
        return None


def substitution(params: tuple[TypeParam, ...], args: tuple[Type | Dim, ...]) -> Substitution:
    """Return the replacement of `params` by `args`, which must agree in kind and number."""
    found = Substitution({}, {})
    for param, arg in zip(params, args, strict=True):
        if isinstance(param, DimVar):
            assert isinstance(arg, Dim)
            found.dims[param.name] = arg
        else:
            assert not isinstance(arg, Dim)
            found.types[param.name] = arg
    return found


def known_dtype(ty: Type) -> DType:
    """Return the dtype of the type of a tensor or number in a typed program."""
    assert isinstance(ty, TensorType)
    assert isinstance(ty.dtype, DType)
    return ty.dtype


def fits(value: int, dtype: DType) -> bool:
    """Return whether an integer is one of an integer dtype."""
    if dtype.name.startswith("u"):
        return 0 <= value < 1 << dtype.bits
    return -(1 << (dtype.bits - 1)) <= value < 1 << (dtype.bits - 1)


def is_float(dtype: AnyDType) -> bool:
    """Return whether elements of the dtype are real numbers."""
    return isinstance(dtype, DType) and dtype.kind is DTypeKind.FLOAT


def names_own_sizes(name: str) -> bool:
    """Return whether a data type, by its name, is one of tensors that each have sizes of their own
    (`own_sizes.py`)."""
    marks = name.rpartition(".")[2]
    return name.startswith(OWN_SIZES) and name.count(".") == 2 and not marks.strip("av")


def batch_name(name: str) -> str:
    """Return the name of the data type of many values of one side by side (`batch_dims.py`)."""
    return f"{name}{_BATCH}"


def element_name(name: str) -> str | None:
    """Return the name of the data type of which another one is a batch; None if it is none."""
    return name.removesuffix(_BATCH) if name.endswith(_BATCH) else None


_BATCH: Final = ".batch"  # a suffix, as in the other names that passes derive


def show(ty: Type) -> str:
    """Return the type in the user's own notation, as it would be annotated."""
    match ty:
        case TensorType(shape, dtype, layout):
            name = _SCALAR_NAMES.get(str(_likely(dtype)), str(_likely(dtype)))
            last = "" if layout is Layout.NCHW else f", {layout.value}"
            return f"Tensor[{name}, ({_list(shape)}){last}]" if shape else name
        case SizeType(dim):
            return f'Dim("{_size(dim)}")' if dim.constant is None else f"{dim}"
        case TupleType(fields):
            return f"tuple[{', '.join(map(_part, fields))}]" if fields else "None"
        case FnType(params, result):
            return f"Fn[[{', '.join(map(_part, params))}], {_part(result)}]"
        case RefType(value):
            return f"Ref[{_part(value)}]"
        case AdtType():
            return _data(ty)
        case TypeVar(name):
            return name
        case StrType():
            return "str"
        case TypeHole():
            return "an unknown type"


def _data(ty: AdtType) -> str:
    if names_own_sizes(ty.name):
        return _with_own_sizes(ty)
    element = element_name(ty.name)
    if element is not None and isinstance(ty.args[-1], Dim):
        return f"Batch[{_data(AdtType(element, ty.args[:-1]))}, {_size(ty.args[-1])}]"
    name = "list" if ty.name == f"{PRELUDE}List" else ty.name.removeprefix(PRELUDE)
    if name == "Option" and _is_never_none(ty.args[0]):
        return f"{_part(ty.args[0])} | None"
    inside = ", ".join(_size(a) if isinstance(a, Dim) else _part(a) for a in ty.args)
    return f"{name}[{inside}]" if ty.args else name


def _is_never_none(ty: Type | Dim) -> TypeGuard[Type]:
    """Return whether no value of a type is None."""
    is_optional = isinstance(ty, AdtType) and ty.name == f"{PRELUDE}Option"
    return not isinstance(ty, Dim) and ty != UNIT and not is_optional


def _with_own_sizes(ty: AdtType) -> str:
    _, dtype, marks = ty.name.split(".")
    sizes = iter(_size(a) for a in ty.args if isinstance(a, Dim))
    shape = ["Any" if mark == "a" else next(sizes) for mark in marks]
    listed = f"{shape[0]}," if len(shape) == 1 else ", ".join(shape)
    return f"Tensor[{_SCALAR_NAMES.get(dtype, dtype)}, ({listed})]"


def _part(ty: Type) -> str:
    """Return a type inside another; one that is not known yet is left out."""
    return "..." if isinstance(ty, TypeHole) else show(ty)


def _likely(dtype: AnyDType) -> DType | str:
    """Return the default of an element type that is not inferred yet."""
    if isinstance(dtype, DType):
        return dtype
    return "an unknown number" if dtype.weak is None else DEFAULT_DTYPE[dtype.weak]


_SCALAR_NAMES: Final = {"float32": "Float", "int64": "Int", "bool": "Bool"}


def _list(shape: tuple[Dim, ...]) -> str:
    if shape == (ANY_DIMS,):
        return "..."
    return f"{_size(shape[0])}," if len(shape) == 1 else ", ".join(_size(d) for d in shape)


def _size(dim: Dim) -> str:
    """Return the text of a dim; a size that is not known yet is `Any`, as in annotations."""
    if dim == ANY_DIMS:
        return "..."
    return re.sub(r"\?\d+", "Any", str(dim)) if dim.has_holes() else str(dim)
