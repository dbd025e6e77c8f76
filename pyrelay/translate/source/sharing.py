"""Which lists and tensors the value of an expression may share with names.

`ys = xs` and `ys = same(xs)` make one list of two names in Python; `ys = xs[1:]` does not. A value
shares with a name as one of four kinds (`Share`): it is the name's value, or a part of it, or it
holds one of these. The analysis reads the text alone, so an operand of unknown type counts as what
the question is about: a list, or a tensor.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from ...ir.intrinsics import Intrinsic
from ...ir.op import Op, View
from ...ir.traverse import Steps
from ...ir.types import AdtType
from ...operators.primitive.index import index
from ...prelude.library import library
from ...prelude.names import LibraryConstructor, LibraryFunction, library_value
from ..subset.tables import CASTS, COPIES, LIKE, LIST_METHODS, METHODS, SAME
from .definition import Definition, meaning
from .flow import CHANGES, names_of, reads
from .scope import MISSING
from .syntax import arguments_of
from .unions import is_data_class


class Share(NamedTuple):
    """How a value may share storage with the value of a name."""

    name: str
    inside: bool = False
    """Whether it holds what is shared, and is not itself shared."""
    part: bool = False
    """Whether a part of the name's value is shared, such as an element, and not all of it."""


Sharing: TypeAlias = frozenset[Share]

FRESH: Final[Sharing] = frozenset()


_SIZES: Final = frozenset({"shape", "ndim", "size", "dim"})
"""The attributes and methods of tensors that give sizes."""


class CallSharing(NamedTuple):
    """The aliases between a call and the parameters and captured names of a function: its result,
    and the values it stores in cells; and whether the parts of the result share nothing with each
    other."""

    result: Sharing = FRESH
    stored: Sharing = FRESH
    distinct: bool = True


class Unit(NamedTuple):
    """A function whose text is at hand: a definition, or a function nested in one; and whether it
    is about lists or about tensors."""

    definition: Definition
    node: ast.FunctionDef
    lists: bool


class Called(NamedTuple):
    """A function whose text is known and that a call is of, or may be of: its parameters, and what
    it shares. A method takes its receiver for the first."""

    params: Sequence[str]
    summary: CallSharing
    receives: bool = False


class Names(Protocol):
    """The meaning of names where an expression stands."""

    @property
    def lists(self) -> bool:
        """Whether the question is about lists; else it is about tensors."""
        ...

    def sharing(self, name: str) -> Sharing:
        """Return the aliases of the value of a name."""
        ...

    def known(self, node: ast.expr) -> Any:
        """Return the Python value of an expression, MISSING if it is not known."""
        ...

    def is_field(self, name: str) -> bool:
        """Return whether an attribute may be a field of data."""
        ...

    def called(self, node: ast.Call) -> Sequence[Called]:
        """Return the functions whose text is known that a call may be of: one, or the methods of
        a name; none for any other callee."""
        ...


def inside(sharing: Sharing) -> Sharing:
    """Return the sharing of a value that contains another."""
    return frozenset(s._replace(inside=True) for s in sharing)


def element(sharing: Sharing) -> Sharing:
    """Return the aliases of a part of a value."""
    parts = {s._replace(inside=False) if s.inside else s._replace(part=True) for s in sharing}
    return frozenset(parts.union(s for s in sharing if s.inside))


def copied(sharing: Sharing, *, lists: bool) -> Sharing:
    """Return the sharing of a copy of a list: its elements. A tensor that is computed shares
    nothing."""
    elements = (Share(s.name, inside=True, part=True) for s in sharing if not s.inside)
    return frozenset((*(s for s in sharing if s.inside), *(elements if lists else ())))


def anything(sharing: Sharing) -> Sharing:
    """Return the aliases of a value of unknown origin that was made of others."""
    return sharing | inside(sharing) | element(sharing)


def shares(names: Names, node: ast.expr) -> Steps[Sharing]:
    """Return the sharing of the value of an expression with names."""
    match node:
        case ast.Name(id=name):
            return names.sharing(name)
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            return inside((yield _all(names, parts)))
        case ast.IfExp(body=one, orelse=other):
            return (yield _all(names, (one, other)))
        case ast.BoolOp(values=values):
            return (yield _all(names, values))
        case ast.BinOp(left=left, right=right):
            return copied((yield _all(names, (left, right))), lists=names.lists)
        case ast.ListComp(elt=elt) | ast.GeneratorExp(elt=elt):
            return (yield _comprehension(names, elt, node.generators))
        case ast.Call():
            return (yield _call(names, node))
        case _:
            return (yield _part(names, node))


def _part(names: Names, node: ast.expr) -> Steps[Sharing]:
    """Return the aliases of parts of values, and of functions that capture names."""
    match node:
        case ast.Starred(value=value):
            return element((yield shares(names, value)))
        case ast.Subscript(value=value, slice=ast.Slice()) if names.lists:
            return copied((yield shares(names, value)), lists=True)
        case ast.Attribute(attr=name) if name in _SIZES and not names.is_field(name):
            return FRESH
        case ast.Subscript(value=value) | ast.Attribute(value=value):
            return element((yield shares(names, value)))
        case ast.Lambda():
            captured = (names.sharing(n) for n in sorted(reads(node)))
            return inside(FRESH.union(*captured))
        case _:
            return FRESH


def _all(names: Names, nodes: Iterable[ast.expr]) -> Steps[Sharing]:
    found: set[Share] = set()
    for node in nodes:
        found |= yield shares(names, node)
    return frozenset(found)


class _Comprehension:
    """Names inside of a comprehension, whose targets are elements of its iterables."""

    def __init__(self, around: Names) -> None:
        self._around: Final = around
        self.bound: Final[dict[str, Sharing]] = {}
        self.lists: Final = around.lists
        self.known: Final = around.known
        self.is_field: Final = around.is_field
        self.called: Final = around.called

    def sharing(self, name: str) -> Sharing:
        return self.bound[name] if name in self.bound else self._around.sharing(name)


def _comprehension(
    names: Names, elt: ast.expr, generators: Sequence[ast.comprehension]
) -> Steps[Sharing]:
    within = _Comprehension(names)
    for each in generators:
        found = element((yield shares(within, each.iter)))
        within.bound.update(dict.fromkeys(names_of(each.target), anything(found)))
    return inside((yield shares(within, elt)))


def _call(names: Names, node: ast.Call) -> Steps[Sharing]:
    functions = names.called(node)
    found = yield _applied(names, node, functions, stored=False)
    if functions and not _is_of_values(node):
        return found
    known = names.known(node.func)
    of_library = library_value(known)
    if isinstance(of_library, LibraryFunction):
        return (yield _library_call(names, node, of_library))
    if known is max or known is min:
        chosen = yield _all(names, node.args)
        return element(chosen) if len(node.args) == 1 else chosen
    if known is sum and len(node.args) == 1 and not node.keywords:
        return FRESH  # sums that begin with 0 are numbers or tensors of their own
    arguments = yield _all(names, arguments_of(node))
    if known is not MISSING:
        return _of_known(known, arguments, lists=names.lists)
    if isinstance(node.func, ast.Attribute):
        if node.func.attr in _SIZES and not names.is_field(node.func.attr):
            return found
        receiver = yield shares(names, node.func.value)
        return found | _of_method(node.func.attr, receiver, arguments, lists=names.lists)
    return anything(arguments | (yield shares(names, node.func)))


def _library_call(names: Names, node: ast.Call, found: LibraryFunction) -> Steps[Sharing]:
    """Return the sharing of a call of a function of the prelude. One that makes data copies the
    data it takes; any other may return an argument."""
    function = library().functions[found.name]
    if not isinstance(function.result, AdtType):
        return anything((yield _all(names, arguments_of(node))))
    shared: set[Share] = set()
    for param, argument in zip(function.params, node.args, strict=False):
        given = yield shares(names, argument)
        is_data = isinstance(param.ty, AdtType)
        shared |= copied(given, lists=names.lists) if is_data else inside(given)
    return frozenset(shared)


def stored_by_call(names: Names, node: ast.Call) -> Steps[Sharing]:
    """Return the values that a call stores in references that outlive it."""
    return (yield _applied(names, node, names.called(node), stored=True))


def _is_of_values(node: ast.Call) -> bool:
    """Return whether a call may be that of a method of tensors or lists."""
    name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    return any(
        name in known for known in (METHODS, LIST_METHODS, COPIES, SAME, CASTS, LIKE, CHANGES)
    )


def _applied(
    names: Names, node: ast.Call, functions: Iterable[Called], *, stored: bool
) -> Steps[Sharing]:
    """Return the sharing of functions, or what they store, with their arguments in the place of
    parameters."""
    found: set[Share] = set()
    for params, summary, receives in functions:
        own = [node.func.value] if receives and isinstance(node.func, ast.Attribute) else []
        written: dict[str, ast.expr] = dict(zip(params, [*own, *node.args], strict=False))
        written |= {k.arg: k.value for k in node.keywords if k.arg is not None}
        for share in summary.stored if stored else summary.result:
            if share.name in params:
                argument = written.get(share.name)
                given = FRESH if argument is None else (yield shares(names, argument))
            else:
                given = names.sharing(share.name)
            given = element(given) if share.part else given
            found |= inside(given) if share.inside else given
    return frozenset(found)


def _of_known(function: Any, arguments: Sharing, *, lists: bool) -> Sharing:
    """Return the aliases of the result of a known function whose text is not at hand."""
    found = meaning(function)
    if isinstance(found, Op):
        is_view = isinstance(found.lowering, View) or found is index
        return element(arguments) if is_view and not lists else FRESH
    if isinstance(found, Intrinsic):
        return _INTRINSICS.get(found, anything)(arguments)
    if is_data_class(function) or isinstance(library_value(function), LibraryConstructor):
        return inside(arguments)
    if any(function is f for f in _COPYING):
        return copied(arguments, lists=lists)
    return FRESH if found is None else anything(arguments)


_COPYING: Final = (
    builtins.enumerate,
    builtins.list,
    builtins.reversed,
    builtins.sorted,
    builtins.sum,
    builtins.tuple,
    builtins.zip,
)
_INTRINSICS: Final[Mapping[Intrinsic, Any]] = {
    Intrinsic.CREATE_MODEL: lambda _: FRESH,
    Intrinsic.PARAM: lambda _: FRESH,
    Intrinsic.REF: inside,
    Intrinsic.STOP_GRADIENT: lambda arguments: arguments,
    Intrinsic.TENSOR: lambda _: FRESH,
}


def _of_method(name: str, receiver: Sharing, arguments: Sharing, *, lists: bool) -> Sharing:
    """Return the sharing of the result of a method, or of a function in a field of that name."""
    if name == "copy":  # of a list: tensors have no such method
        return copied(receiver, lists=True)
    if name in LIST_METHODS and lists:
        return FRESH
    if name == "pop":
        return element(receiver)
    if name in COPIES:
        return FRESH
    if name in SAME or name in CASTS:
        return receiver
    op = METHODS.get(name)
    if op is not None or name in LIKE:
        is_view = op is None or isinstance(op.lowering, View)
        return element(receiver) if is_view and not lists else FRESH
    return anything(receiver | arguments)
