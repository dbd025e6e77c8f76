"""The subset: which Python is the language, construct by construct, and what to write instead.

Applied to the syntax tree of a function before names and types are looked at, so its mistakes are
found where a function is decorated. What the tables do not refuse, `statements` and `expressions`
translate.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from ...diagnostics.source import SourceFile, Span
from .migration_hints import CONTEXTS

if TYPE_CHECKING:
    from ...diagnostics.catalogue.language import Unsupported


class Refusal(NamedTuple):
    """Why a construct stays outside: its name in a sentence, and what to write instead."""

    what: str
    instead: str


REFUSED: Final[dict[type[ast.AST], Refusal]] = {
    ast.AsyncFor: Refusal("`async for`", "write a plain `for`"),
    ast.AsyncFunctionDef: Refusal("an `async def`", "write a plain `def`"),
    ast.AsyncWith: Refusal("`async with`", "do this outside of the compiled function"),
    ast.Await: Refusal("`await`", "do this outside of the compiled function"),
    ast.ClassDef: Refusal("a class inside a function", "define the class at module level"),
    ast.Delete: Refusal("`del`", "leave the name alone: values are freed after their last use"),
    ast.Dict: Refusal("a dictionary", "use a tuple, or a frozen dataclass"),
    ast.DictComp: Refusal("a dictionary comprehension", "use a tuple, or a frozen dataclass"),
    ast.GeneratorExp: Refusal("a generator expression here", "write a list comprehension: `[...]`"),
    ast.Global: Refusal("`global`", "return the new value and let the caller keep it"),
    ast.Import: Refusal("an import inside a function", "import at the top of the file"),
    ast.ImportFrom: Refusal("an import inside a function", "import at the top of the file"),
    ast.MatchMapping: Refusal("a mapping pattern", "match a frozen dataclass by its fields"),
    ast.NamedExpr: Refusal("`:=`", "write an assignment on a line of its own"),
    ast.Nonlocal: Refusal("`nonlocal`", "return the new value, or keep it in `relay.ref(v)`"),
    ast.Set: Refusal("a set", "use a tuple"),
    ast.SetComp: Refusal("a set comprehension", "use a tuple"),
    ast.Starred: Refusal("`*`", "write the arguments or names out"),
    ast.Try: Refusal("`try`", "test for the condition before, with `if`"),
    ast.TryStar: Refusal("`try`", "test for the condition before, with `if`"),
    ast.With: Refusal("`with`", "do this outside of the compiled function"),
    ast.Yield: Refusal("`yield`", "return a tuple or a tensor"),
    ast.YieldFrom: Refusal("`yield from`", "return a tuple or a tensor"),
}
"""Refused wherever they stand."""

ITERATING: Final = frozenset(
    {"all", "any", "extend", "list", "max", "min", "sorted", "sum", "tuple"}
)
"""The functions of Python whose argument may be a generator expression."""

REFUSED_OPERATORS: Final[dict[type[ast.AST], Refusal]] = {
    ast.LShift: Refusal("`<<`", "multiply by a power of 2"),
    ast.RShift: Refusal("`>>`", "write `a // 2 ** n`"),
    ast.Is: Refusal("`is`", "compare with `==`; only with None it is a test"),
    ast.IsNot: Refusal("`is not`", "compare with `!=`; only with None it is a test"),
}
"""Operators refused; the span is that of the expression around."""

_LITERALS: Final[dict[type, Refusal]] = {
    bytes: Refusal("a bytes literal", "keep bytes outside of the compiled function"),
    complex: Refusal("a complex number", "compute with real and imaginary parts"),
}
_ARGUMENTS: Final = "write each parameter out, with its annotation"
_DECORATOR: Final = Refusal("a decorator on a nested function", "call it: `g = decorator(f)`")
_ITEM: Final = Refusal(
    "an assignment to a part of an expression",
    "give the value a name, assign to the item of the name, and go on with the name",
)
_TYPE_PARAMS: Final = Refusal(
    "a type parameter of a local function", "leave it out: a copy is made for every type"
)


def mistakes(file: SourceFile, function: ast.FunctionDef) -> list[Unsupported]:
    """Return the mistakes in a function, in the order of the text; annotations are not read."""
    found: list[tuple[Span, Refusal]] = []
    pending: list[ast.AST] = [function]
    while pending:
        node = pending.pop()
        for at, refusal in _refusals(node, outermost=node is function):
            found.append((_span(file, at), refusal))
        pending += _inside(node)
    if not found:
        return []
    from ...diagnostics.catalogue.language import Unsupported  # only a mistake pays for it

    found.sort(key=lambda f: (f[0].start, f[0].end))
    return [Unsupported(span, refusal.what, refusal.instead) for span, refusal in found]


def _inside(node: ast.AST) -> Iterator[ast.AST]:
    """Return the parts of a node that are program text: no annotation, no outer decorator."""
    match node:
        case ast.FunctionDef(args=args, body=body):
            yield from (d for d in (*args.defaults, *args.kw_defaults) if d is not None)
            yield from body
        case ast.Lambda(args=args, body=body):
            yield from (d for d in (*args.defaults, *args.kw_defaults) if d is not None)
            yield body
        case ast.AnnAssign(target=target, value=value):
            yield target
            yield from () if value is None else (value,)
        case ast.keyword(arg="dims", value=ast.Dict(keys=keys, values=values)):
            yield from (k for k in keys if k is not None)  # only `create_model` takes it
            yield from values
        case ast.Call(
            func=ast.Name(id=name) | ast.Attribute(attr=name),
            args=[ast.GeneratorExp() as each, *others],
        ) if name in ITERATING:
            yield from (each.elt, *each.generators, *others, *node.keywords)
        case ast.Call(func=ast.Name(id="zip"), args=[ast.Starred(value=rows)]):
            yield rows  # the call is the mistake
        case ast.List(elts=elts, ctx=ast.Load()) | ast.Tuple(elts=elts, ctx=ast.Load()):
            yield from (e.value if isinstance(e, ast.Starred) else e for e in elts)
        case _ if type(node) in REFUSED and not isinstance(node, ast.Starred):
            return  # one mistake is enough for all that is inside
        case _:
            yield from ast.iter_child_nodes(node)


def _refusals(node: ast.AST, *, outermost: bool) -> Iterator[tuple[ast.AST, Refusal]]:
    """Return the refusals of one node alone."""
    refusal = _context(node) or REFUSED.get(type(node))
    if refusal is not None:
        yield node, refusal
    match node:
        case ast.FunctionDef() | ast.Lambda():
            yield from _function(node, outermost=outermost)
        case ast.BinOp(op=op) | ast.UnaryOp(op=op) | ast.AugAssign(op=op):
            yield from _operators(node, [op])
        case ast.Compare(ops=[ast.Is() | ast.IsNot()], comparators=[ast.Constant(value=None)]):
            pass
        case ast.Compare(ops=ops):
            yield from _operators(node, ops)
        case ast.Constant(value=value) if type(value) in _LITERALS:
            yield node, _LITERALS[type(value)]
        case ast.Subscript(ctx=ast.Store()) if not _is_item_of_name(node):
            yield node, _ITEM
        case ast.keyword(arg=None, value=value):
            yield value, Refusal("`**`", "write the arguments out")
        case _:
            pass


def _is_item_of_name(node: ast.expr) -> bool:
    """Return whether a target is `x[i]` or `x[i][j]`, of a name, with slices in the last brackets
    alone."""
    while isinstance(node, ast.Subscript):
        node = node.value
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice | ast.Tuple):
            return False
    return isinstance(node, ast.Name)


def _context(node: ast.AST) -> Refusal | None:
    """Return the help for a node that is refused for its surroundings or its parts."""
    match node:
        case ast.Delete(targets=[ast.Subscript(slice=ast.Slice()), *_]):
            return Refusal("`del` of a slice", "write `xs = xs[:i] + xs[j:]`")
        case ast.Delete(targets=[ast.Subscript(), *_]):
            return Refusal("`del` here", "give the list a name first: `del xs[i]`")
        case ast.With(items=[ast.withitem(context_expr=ast.Call(func=ast.Attribute(attr=name)))]):
            return Refusal("`with`", CONTEXTS[name]) if name in CONTEXTS else None
        case ast.Call(func=ast.Name(id="zip"), args=[ast.Starred(value=rows)]):
            text = ast.unparse(rows)
            columns = f"[[row[i] for row in {text}] for i in range(len({text}[0]))]"
            return Refusal(f"`zip(*{text})`", f"the columns are `{columns}`")
        case ast.Starred(ctx=ast.Store()):
            return Refusal("`*` in an assignment", "write `first, rest = xs[0], xs[1:]`")
        case _:
            return None


def _operators(node: ast.AST, operators: Sequence[ast.AST]) -> Iterator[tuple[ast.AST, Refusal]]:
    for operator in operators:
        refusal = REFUSED_OPERATORS.get(type(operator))
        if refusal is not None:
            yield node, refusal


def _function(
    node: ast.FunctionDef | ast.Lambda, *, outermost: bool
) -> Iterator[tuple[ast.AST, Refusal]]:
    for arg, star in ((node.args.vararg, "*"), (node.args.kwarg, "**")):
        if arg is not None:
            yield arg, Refusal(f"`{star}{arg.arg}`", _ARGUMENTS)
    if isinstance(node, ast.Lambda):
        return
    if outermost:
        return
    if node.decorator_list:
        yield node.decorator_list[0], _DECORATOR
    for parameter in getattr(node, "type_params", ()):  # there are some from Python 3.12 on
        yield parameter, _TYPE_PARAMS


def _span(file: SourceFile, node: ast.AST) -> Span:
    span = file.span_of_ast(node)  # pyright: ignore[reportArgumentType]  all of these have a place
    if isinstance(node, ast.stmt) and "\n" in span.text:
        return Span(file, span.start, span.start + span.text.index("\n"))
    return span
