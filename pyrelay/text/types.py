"""Types and dims as text, with the type parameters in scope that their names refer to.

    term  ::= sum | fn [params] (term, ...) -> term
    sum   ::= integers, names, + - * // %, max(a, b), min(a, b), ?hole
    types ::= Tensor[(N, 10), float32] | Tensor[(N, 3, 8, 8), float32, NHWC] | float32
            | Size[n] | (A, B) | ref(A) | Tree[A, N] | T | str

In the place of a type argument a name alone is what is in scope under it: a type parameter, a data
type, else a dim. What would read as something else is written so that it cannot: `'T` is a type
variable that nothing in scope binds, `1*N` a dim, `Tree[]` a data type.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable, Mapping
from contextlib import contextmanager
from typing import Final, final

from ..ir.dims import Dim, DimAtom, DimHole, DimOp, DimVar, Extreme
from ..ir.types import (
    ANY_DIMS,
    DTYPES,
    UNKNOWN,
    AdtType,
    AnyDType,
    DType,
    FnType,
    Kind,
    Layout,
    RefType,
    SizeType,
    StrType,
    TensorType,
    TupleType,
    Type,
    TypeHole,
    TypeParam,
    TypeVar,
)
from .lexis import TYPE_RESERVED, TYPE_WORDS, name_text


@final
class TypeScope:
    """The type parameters in scope, innermost last, and the data types of the module."""

    def __init__(self, adts: Collection[str], arities: Mapping[str, int] | None = None) -> None:
        """`arities` is the number of type arguments of each data type, where it is known."""
        self.adts: Final = adts
        self.arities: Final = {} if arities is None else arities
        self._kinds: Final[dict[str, list[Kind]]] = {}

    @contextmanager
    def inside(self, params: Iterable[TypeParam]) -> Generator[None]:
        """Bring type parameters into scope."""
        kinds = [(p.name, Kind.DIM if isinstance(p, DimVar) else Kind.TYPE) for p in params]
        for name, kind in kinds:
            self._kinds.setdefault(name, []).append(kind)
        try:
            yield
        finally:
            for name, _ in kinds:
                self._kinds[name].pop()

    def kind(self, name: str) -> Kind | None:
        """Return the kind of the type parameter in scope under a name, if there is one."""
        found = self._kinds.get(name)
        return found[-1] if found else None

    def type_names(self) -> list[str]:
        """Return the names of data types and of the type variables in scope."""
        inner = [n for n, kinds in self._kinds.items() if kinds and kinds[-1] is Kind.TYPE]
        return [*self.adts, *inner]

    def names_dim(self, name: str) -> bool:
        """Return whether a name alone, as a type argument, is a dim."""
        kind = self.kind(name)
        return kind is Kind.DIM or (kind is None and name not in self.adts and name not in DTYPES)


def dim_text(dim: Dim) -> str:
    """Return a dim."""
    if not dim.terms:
        return "0"
    text = ""
    for monomial, coefficient in dim.presented():
        alone = len(monomial) == coefficient == 1
        factors = [_atom(atom) if alone else _factor(atom) for atom in monomial]
        if abs(coefficient) != 1 or not factors:
            factors.insert(0, str(abs(coefficient)))
        sign = ("-" if coefficient < 0 else "") if not text else " - " if coefficient < 0 else " + "
        text += sign + "*".join(factors)
    return text


def _atom(atom: DimAtom | Extreme) -> str:
    match atom:
        case DimVar(name):
            return name_text(name)
        case DimHole(number):
            return "..." if ANY_DIMS.single == atom else f"?{number}"
        case Extreme(kind, left, right) | DimOp("max" as kind, left, right):
            return f"{kind}({dim_text(left)}, {dim_text(right)})"
        case DimOp(kind, left, right):
            return f"{_bracket(left)} {'//' if kind == 'floordiv' else '%'} {_bracket(right)}"


def _factor(atom: DimAtom | Extreme) -> str:
    plain = not isinstance(atom, DimOp) or atom.kind == "max"
    return _atom(atom) if plain else f"({_atom(atom)})"


def _bracket(dim: Dim) -> str:
    if dim.single is not None:
        return _factor(dim.single)
    return dim_text(dim) if (dim.constant or 0) > 0 else f"({dim_text(dim)})"


def dtype_text(dtype: AnyDType) -> str:
    """Return a dtype."""
    if isinstance(dtype, DType):
        return dtype.name
    return f"?{dtype.number}" + ("" if dtype.weak is None else dtype.weak.name.lower())


def shape_text(shape: tuple[Dim, ...]) -> str:
    """Return a shape."""
    return items_text([dim_text(d) for d in shape])


def items_text(items: list[str]) -> str:
    """Return a tuple of texts."""
    return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"


def type_text(ty: Type, scope: TypeScope) -> str:  # noqa: C901  one case a type
    """Return a type. Types nest only as deep as a user writes them."""
    match ty:
        case TensorType((), DType(name)):
            return name
        case TensorType(shape, dtype, layout):
            last = "" if layout is Layout.NCHW else f", {layout.value}"
            return f"Tensor[{shape_text(shape)}, {dtype_text(dtype)}{last}]"
        case SizeType(dim):
            return f"Size[{dim_text(dim)}]"
        case TupleType(fields):
            return items_text([type_text(f, scope) for f in fields])
        case FnType(params, result, type_params):
            with scope.inside(type_params):
                inside = ", ".join(type_text(p, scope) for p in params)
                text = f"({inside}) -> {type_text(result, scope)}"
            return f"fn {type_params_text(type_params)}{text}"
        case RefType(value):
            return f"ref({type_text(value, scope)})"
        case AdtType(name, args):
            return _adt_text(name, args, scope)
        case TypeVar(name):
            known = scope.kind(name) is Kind.TYPE
            return name_text(name, TYPE_RESERVED) if known else f"'{name_text(name)}"
        case StrType():
            return "str"
        case TypeHole(number):
            return "_" if ty == UNKNOWN else f"?{number}"


def _adt_text(name: str, args: tuple[Type | Dim, ...], scope: TypeScope) -> str:
    written = name_text(name, TYPE_RESERVED)
    if args:
        return f"{written}[{', '.join(type_arg_text(a, scope) for a in args)}]"
    return written if name in scope.adts and scope.kind(name) is None else f"{written}[]"


def type_arg_text(arg: Type | Dim, scope: TypeScope) -> str:
    """Return a type or a dim, in a place where either may stand."""
    if not isinstance(arg, Dim):
        return type_text(arg, scope)
    clear = arg.name is None or (scope.names_dim(arg.name) and arg.name not in TYPE_WORDS)
    return dim_text(arg) if clear else f"1*{dim_text(arg)}"


def type_params_text(params: tuple[TypeParam, ...]) -> str:
    """Return the brackets of type parameters; nothing for none."""
    if not params:
        return ""
    inside = ", ".join(
        f"{name_text(p.name)}: Dim" if isinstance(p, DimVar) else name_text(p.name, TYPE_RESERVED)
        for p in params
    )
    return f"[{inside}]"
