"""Terms of the text form read as types, dims, type arguments and dtypes.

The grammar has one `term` for all of them, since `(N, 2)` is a shape, a tuple type or an attribute
only by its place. Terms nest as deep as a user writes them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final, NoReturn, final

from lark import Token

from ...dataclass import dataclass
from ...diagnostics.catalogue.text import BadLiteral, MalformedType, UnknownType
from ...diagnostics.diagnostic import CheckError
from ...diagnostics.misspelt import nearest
from ...ir.bounds import maximum, minimum
from ...ir.dims import ZERO, Dim, DimHole, DimVar
from ...ir.expr import Assumption, Var
from ...ir.types import (
    ANY_DIMS,
    DTYPES,
    STR,
    UNKNOWN,
    UNKNOWN_DIM,
    AdtType,
    AnyDType,
    DTypeHole,
    DTypeKind,
    FnType,
    Kind,
    Layout,
    RefType,
    SizeType,
    TensorType,
    TupleType,
    Type,
    TypeHole,
    TypeParam,
    TypeVar,
)
from ..implied import function_type
from ..lexis import read_number
from ..types import TypeScope
from .context import Syntax, TextContext, tree_of, trees_of, word_of
from .metadata import Metadata
from .precedence import fold_chain


@final
@dataclass(frozen=True, slots=True)
class FunctionHead:
    """The head of a function, before its body."""

    type_params: tuple[TypeParam, ...]
    params: tuple[Var, ...]
    result: Type | None
    assumptions: tuple[Assumption, ...]

    @property
    def type(self) -> Type | None:
        """The type of the function, if all of it is written."""
        return function_type(self.params, self.result, self.type_params)


@final
class TypeReader:
    """Reads terms in a scope of type parameters."""

    def __init__(self, place: TextContext, scope: TypeScope, *, closed: bool) -> None:
        self.scope: Final = scope
        self._place: Final = place
        self._closed: Final = closed

    def type(self, tree: Syntax) -> Type:
        """Return the type that a term is."""
        match tree.data:
            case "term_name":
                return self._named(tree)
            case "of":
                return self._of(tree)
            case "ref_type":
                return RefType(self.type(tree_of(tree.children[0])))
            case "term_group":
                return self.type(tree_of(tree.children[0]))
            case "term_tuple":
                return TupleType(tuple(self.type(t) for t in trees_of(tree)))
            case "fn_type":
                return self._fn(tree)
            case "hole":
                return self._hole(tree)
            case "type_variable":
                return TypeVar(self._place.name(word_of(tree)))
            case _:
                return self.fail(tree, "a type")

    def dim(self, tree: Syntax) -> Dim:
        """Return the dim that a term is."""
        match tree.data:
            case "term_name":
                return Dim.of(self._place.name(word_of(tree)))
            case "term_number":
                return Dim.of(self.whole(tree))
            case "term_group":
                return self.dim(tree_of(tree.children[0]))
            case "arithmetic":
                chain = [c if isinstance(c, Token) else self.dim(c) for c in tree.children]
                try:
                    return fold_chain(chain, _arithmetic, lambda _, d: -d)
                except ZeroDivisionError:
                    return self.fail(tree, "a size with a divisor other than 0")
            case "called" if word_of(tree) in _EXTREMES:
                return _EXTREMES[word_of(tree)](*self._pair(tree, "two dims"))
            case "hole":
                digits = word_of(tree)[1:]
                return Dim.atom(DimHole(int(digits))) if digits.isdigit() else UNKNOWN_DIM
            case "ellipsis":
                return ANY_DIMS
            case "meta":
                return self._dim_of_metadata(tree)
            case _:
                return self.fail(tree, "a dim")

    def argument(self, tree: Syntax) -> Type | Dim:
        """Return the type or dim that a type argument is."""
        match tree.data:
            case "term_name":
                return self._argument_name(tree)
            case "term_group":
                return self.argument(tree_of(tree.children[0]))
            case "term_number" | "arithmetic":
                return self.dim(tree)
            case "called" if word_of(tree) in _EXTREMES:
                return self.dim(tree)
            case _:
                return self.type(tree)

    def shape(self, tree: Syntax) -> tuple[Dim, ...]:
        """Return the shape that a term is."""
        if tree.data not in {"term_tuple", "term_group"}:
            self.fail(tree, "a shape such as `(N, 10)`")
        return tuple(self.dim(t) for t in trees_of(tree))

    def dtype(self, tree: Syntax) -> AnyDType:
        """Return the dtype that a term is."""
        word = word_of(tree) if tree.data in {"term_name", "hole"} else ""
        known = self._place.dialect.dtypes
        if word in known:
            return known[word]
        if word.startswith("?") and len(word) > 1:
            digits = word[1:].rstrip("abcdefghijklmnopqrstuvwxyz")
            family = word[1 + len(digits) :].upper()
            return DTypeHole(int(digits), DTypeKind[family] if family else None)
        near = nearest(word, known)
        return self.fail(tree, "a dtype" if near is None else f"a dtype; did you mean `{near}`?")

    def _layout(self, tree: Syntax, rank: int) -> Layout:
        """Return the layout that a term is, of a tensor of a rank."""
        word = word_of(tree) if tree.data == "term_name" else ""
        if word not in Layout.__members__:
            self.fail(tree, f"a layout: `{'` or `'.join(Layout.__members__)}`")
        if rank < 3:
            self.fail(tree, "a layout that it can have, for it has no channels, height and width")
        return Layout(word)

    def params(self, tree: Syntax | None) -> tuple[TypeParam, ...]:
        """Return the type parameters in brackets."""
        found: list[TypeParam] = []
        for generic in () if tree is None else trees_of(tree):
            name, kind = generic.children
            assert isinstance(name, Token)
            if kind not in {None, "Dim", "Type"}:
                self.fail(generic, "the kind `Dim` or `Type`")
            text = self._place.name(name)
            found.append(DimVar(text) if kind == "Dim" else TypeVar(text))
        return tuple(found)

    def _dim_of_metadata(self, tree: Syntax) -> Dim:
        name = self._place.from_metadata(tree, Metadata.name)
        return Dim.of(name or self._place.from_metadata(tree, Metadata.integer))

    def whole(self, tree: Syntax) -> int:
        """Return the integer that a number without suffix is."""
        word = word_of(tree)
        number, suffix = read_number(word)
        if suffix or isinstance(number, float):
            raise CheckError(BadLiteral(self._place.of(word), str(word), "expected an integer"))
        return number

    def fail(self, tree: Syntax, wanted: str) -> NoReturn:
        """Stop: the term is not what its place needs."""
        span = self._place.of(tree)
        raise CheckError(MalformedType(span, f"`{span.text}` is not {wanted}", wanted))

    def _named(self, tree: Syntax) -> Type:
        word = word_of(tree)
        name = self._place.name(word)
        if word in self._place.dialect.dtypes and not self._is_defined(name):
            return TensorType((), self._place.dialect.dtypes[word])
        if word == "str":
            return STR
        if self.scope.kind(name) is Kind.TYPE:
            return TypeVar(name)
        return self._adt(word, ())

    def _is_defined(self, name: str) -> bool:
        """Return whether a text uses the name of a dtype, such as Relay's `float`, for a type."""
        defined = self.scope.kind(name) is not None or name in self.scope.adts
        return defined and name not in DTYPES

    def _adt(self, word: Token, args: tuple[Type | Dim, ...]) -> Type:
        name = self._place.name(word)
        if self._closed and name not in self.scope.adts:
            raise CheckError(
                UnknownType(self._place.of(word), name, nearest(name, self.scope.type_names()))
            )
        takes = self.scope.arities.get(name, len(args))
        if takes != len(args):
            parameters = ", ".join(f"A{i}" for i in range(1, takes + 1))
            raise CheckError(
                MalformedType(
                    self._place.of(word),
                    f"`{name}` takes {takes} type argument{'s' * (takes != 1)}, not {len(args)}",
                    f"`{name}[{parameters}]`" if takes else f"`{name}`",
                )
            )
        return AdtType(name, args)

    def _of(self, tree: Syntax) -> Type:
        word, (_, terms) = word_of(tree), tree.children
        assert not isinstance(terms, Token)
        if word == "Tensor":
            if len(terms.children) not in {2, 3}:
                self.fail(tree, "a tensor type: `Tensor[(N, 10), float32]`")
            shape, dtype, *layout = trees_of(terms)
            found = TensorType(self.shape(shape), self.dtype(dtype))
            return replace(found, layout=self._layout(layout[0], found.rank)) if layout else found
        if word == "Size":
            if len(terms.children) != 1:
                self.fail(tree, "a size: `Size[N]`")
            return SizeType(self.dim(tree_of(terms.children[0])))
        return self._adt(word, tuple(self.argument(t) for t in trees_of(terms)))

    def _fn(self, tree: Syntax) -> Type:
        generics, params, result = tree.children
        assert not isinstance(generics, Token)
        assert not isinstance(params, Token)
        assert not isinstance(result, Token)
        type_params = self.params(generics)
        with self.scope.inside(type_params):
            inside = tuple(self.type(t) for t in trees_of(params))
            return FnType(inside, self.type(result), type_params)

    def _hole(self, tree: Syntax) -> Type:
        digits = word_of(tree)[1:]
        return TypeHole(int(digits)) if digits.isdigit() else UNKNOWN

    def _argument_name(self, tree: Syntax) -> Type | Dim:
        word = word_of(tree)
        if word in self._place.dialect.dtypes or word == "str":
            return self._named(tree)
        name = self._place.name(word)
        return Dim.of(name) if self.scope.names_dim(name) else self._named(tree)

    def _pair(self, tree: Syntax, wanted: str) -> tuple[Dim, Dim]:
        terms = tree.children[1]
        assert not isinstance(terms, Token)
        if len(terms.children) != 2:
            self.fail(tree, wanted)
        left, right = trees_of(terms)
        return self.dim(left), self.dim(right)


_EXTREMES: Final = {"max": maximum, "min": minimum}


def _arithmetic(sign: Token, left: Dim, right: Dim) -> Dim:
    if sign in {"//", "%"} and right == ZERO:
        raise ZeroDivisionError
    match sign:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
        case "//":
            return left // right
        case _:
            return left % right
