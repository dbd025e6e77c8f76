"""Case patterns of Python as patterns of the IR.

A pattern of the IR has no alternatives: an or-pattern becomes several patterns, each with variables
of its own for the names it binds.
"""

from __future__ import annotations

import ast
import enum
from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from itertools import islice, product
from typing import Any, Final, final

from ...dataclass import dataclass
from ...diagnostics.catalogue.language import ClassPattern, Unsupported
from ...diagnostics.source import Span
from ...ir.expr import (
    BindPattern,
    ConstructorPattern,
    LiteralPattern,
    Pattern,
    TuplePattern,
    Var,
    Wildcard,
)
from ...ir.traverse import Steps, map_pattern, pattern_vars
from ...prelude.library import LIST, OPTION
from ...prelude.names import NONE, SOME, library_value
from ..data.data import DataConstructor
from ..names.narrowing import none, of_class
from ..names.static import static_value
from ..program.context import Context, in_turn
from ..source.flow import captures
from ..source.scope import nearest
from ..source.unions import is_data_class

MOST: Final = 64
"""How many patterns the or-patterns of one case may stand for."""


@final
@dataclass(frozen=True, slots=True)
class Alternative:
    """One pattern of the IR, the variables of the names it binds, and the class it is for.

    `refused` are names of a pattern that was refused, which have no value.

    `classes` maps a name bound to the value of a class pattern to its class and the patterns of its
    fields.
    """

    pattern: Pattern
    names: dict[str, Var]
    constructor: DataConstructor | None = None
    classes: dict[str, tuple[DataConstructor, tuple[Pattern, ...]]] = field(
        default_factory=dict[str, tuple[DataConstructor, tuple[Pattern, ...]]]
    )
    refused: tuple[str, ...] = ()


def alternatives(cx: Context, node: ast.pattern) -> Steps[list[Alternative]]:
    """Return the patterns that one pattern of Python stands for, in order; at least one."""
    match node:
        case ast.MatchAs(pattern=None, name=None):
            return [_anything(cx.span(node))]
        case ast.MatchAs(pattern=inner, name=str(name)):
            return (yield _named(cx, node, inner, name))
        case ast.MatchValue(value=value):
            return [_value(cx, node, value)]
        case ast.MatchSingleton(value=value):
            return [Alternative(_literal(value, cx.span(node)), {})]
        case ast.MatchOr(patterns=patterns):
            found: list[Alternative] = []
            for part in patterns:
                found += yield alternatives(cx, part)
            return _bounded(cx, node, iter(found))
        case ast.MatchClass():
            return (yield _class(cx, node))
        case ast.MatchSequence(patterns=patterns):
            return (yield _sequence(cx, node, patterns))
        case _:
            return _refused(cx, node, "this pattern", "write it out as several cases")


def _anything(span: Span) -> Alternative:
    return Alternative(Wildcard(span=span), {})


def _refused(
    cx: Context, node: ast.pattern, what: str, instead: str, place: ast.pattern | None = None
) -> list[Alternative]:
    cx.program.report(Unsupported(cx.span(place or node), what, instead))
    return [_unknown(cx, node)]


def _unknown(cx: Context, node: ast.pattern) -> Alternative:
    """Return the placeholder for a pattern that was refused."""
    return Alternative(Wildcard(span=cx.span(node)), {}, refused=tuple(captures(node)))


def apart(found: Alternative) -> Alternative:
    """Return an alternative with new variables: several may have been made of the same parts."""
    renamed = {v: replace(v) for v in pattern_vars(found.pattern)}
    pattern = map_pattern(found.pattern, renamed.__getitem__)
    names = {n: renamed[v] for n, v in found.names.items()}
    return Alternative(pattern, names, refused=found.refused)


def _named(
    cx: Context, node: ast.pattern, inner: ast.pattern | None, name: str
) -> Steps[list[Alternative]]:
    span = cx.span(node)
    found = [None] if inner is None else (yield alternatives(cx, inner))
    whole: list[Alternative] = []
    for each in found:
        var = Var(name, span=span)
        if each is None:
            whole.append(Alternative(BindPattern(var, span=span), {name: var}))
        else:
            whole.append(named(each, name, var))
    return whole


def named(found: Alternative, name: str, var: Var) -> Alternative:
    """Return an alternative whose value has a name."""
    pattern, classes = found.pattern, found.classes
    if found.constructor is not None:
        pattern = opened(pattern, found.constructor)
        classes = {**classes, name: (found.constructor, class_pattern(pattern).fields)}
    whole = BindPattern(var, pattern, span=var.span)
    names = {**found.names, name: var}
    return Alternative(whole, names, found.constructor, classes, found.refused)


def class_pattern(pattern: Pattern) -> ConstructorPattern:
    """Return the pattern of a class under the names that it is given as a whole."""
    while isinstance(pattern, BindPattern):
        assert pattern.inner is not None
        pattern = pattern.inner
    assert isinstance(pattern, ConstructorPattern)
    return pattern


def opened(pattern: Pattern, found: DataConstructor) -> Pattern:
    """Return the pattern of a class with a variable for each field, so that `x.left` is known."""
    wrappers: list[BindPattern] = []
    inside = class_pattern(pattern)
    while isinstance(pattern, BindPattern):
        wrappers.append(pattern)
        assert pattern.inner is not None
        pattern = pattern.inner
    fields = tuple(map(_bound, found.field_names, inside.fields))
    whole: Pattern = replace(inside, fields=fields)
    for wrapper in reversed(wrappers):
        whole = replace(wrapper, inner=whole)
    return whole


def _bound(name: str, pattern: Pattern) -> Pattern:
    if isinstance(pattern, BindPattern):
        return pattern
    inner = None if isinstance(pattern, Wildcard) else pattern
    return BindPattern(Var(name, span=pattern.span), inner, span=pattern.span)


def _value(cx: Context, node: ast.MatchValue, value: ast.expr) -> Alternative:
    """Return the pattern of a literal, or of a dotted name of a captured constant."""
    span = cx.span(node)
    known = static_value(cx, value)
    found = known.value.value if known and isinstance(known.value, enum.Enum) else known
    plain: Any = known.value if known is not None and found is known else found
    if known is None or not known.exact or not isinstance(plain, bool | int | float | str):
        what = f"`{ast.unparse(value)}` in a pattern"
        instead = "compare in a guard: `case x if x == ...`"
        return _refused(cx, node, what, instead)[0]
    return Alternative(_literal(plain, span), {})


def _literal(value: bool | float | str | None, span: Span) -> Pattern:
    if value is None:
        return none(span)
    return LiteralPattern(value, span=span)


def _bounded(cx: Context, node: ast.pattern, found: Iterator[Alternative]) -> list[Alternative]:
    """Return the alternatives, if there are not too many."""
    several = list(islice(found, MOST + 1))
    if len(several) > MOST:
        what = f"a pattern with more than {MOST} combinations of `|`"
        return _refused(cx, node, what, "match the parts one after the other")
    return several


def _parts(
    cx: Context, nodes: Sequence[ast.pattern | None], span: Span
) -> Steps[list[list[Alternative]]]:
    anything = [_anything(span)]
    return (yield in_turn(_or(cx, node, anything) for node in nodes))


def _or(
    cx: Context, node: ast.pattern | None, otherwise: list[Alternative]
) -> Steps[list[Alternative]]:
    return otherwise if node is None else (yield alternatives(cx, node))


def _of_parts(
    pattern: Pattern, parts: Sequence[Alternative], found: DataConstructor | None = None
) -> Alternative:
    """Return a pattern with the bindings and facts of the patterns inside it."""
    names = {name: var for part in parts for name, var in part.names.items()}
    classes = {name: known for part in parts for name, known in part.classes.items()}
    refused = tuple(name for part in parts for name in part.refused)
    return Alternative(pattern, names, found, classes, refused)


# Classes.


def _class(cx: Context, node: ast.MatchClass) -> Steps[list[Alternative]]:
    span = cx.span(node)
    known = static_value(cx, node.cls)
    optional = None if known is None else library_value(known.value)
    if optional in (SOME, NONE):
        return (yield _optional(cx, node, optional.name, optional.fields))
    found = _constructor(cx, node)
    if found is None:
        return [_unknown(cx, node)]
    fields = _fields(cx, node, found)
    each = yield _parts(cx, [fields.get(name) for name in found.field_names], span)
    placed = [p for n, p in fields.items() if n in found.field_names]
    surplus = [p for p in (*node.patterns, *node.kwd_patterns) if p not in placed]
    each += [[_unknown(cx, p)] for p in surplus]
    return _bounded(
        cx, node, (_of_parts(_made(found, parts, span), parts, found) for parts in product(*each))
    )


def _optional(
    cx: Context, node: ast.MatchClass, name: str, fields: tuple[str, ...]
) -> Steps[list[Alternative]]:
    """Return the patterns of `Some(x)`, which is what `x` matches except None, or `Nothing()`."""
    nodes = [*node.patterns, *node.kwd_patterns]
    if len(nodes) != len(fields) or not set(node.kwd_attrs) <= set(fields):
        shown = f"{ast.unparse(node.cls)}({', '.join(fields)})"
        why = f"it has {_count(len(fields))}"
        written = ast.unparse(node.cls)
        cx.program.report(ClassPattern(cx.span(node), written, why, f"write `{shown}`"))
        return [_unknown(cx, node)]
    span = cx.span(node)
    each = yield _parts(cx, nodes, span)

    def made(parts: Sequence[Alternative]) -> Alternative:
        inside = tuple(p.pattern for p in parts)
        return _of_parts(ConstructorPattern(OPTION, name, inside, span=span), parts)

    return _bounded(cx, node, (made(parts) for parts in product(*each)))


def _made(found: DataConstructor, parts: Sequence[Alternative], span: Span) -> Pattern:
    fields = parts[: len(found.field_names)]
    return of_class(found, span, tuple(p.pattern for p in fields))


def _constructor(cx: Context, node: ast.MatchClass) -> DataConstructor | None:
    """Return the constructor that a class pattern names; None for another class, which is reported.

    A literal type such as `int` narrows nothing: the type of a value is known statically.
    """
    span, name = cx.span(node.cls), ast.unparse(node.cls)
    known = static_value(cx, node.cls)
    if known is None:
        if isinstance(node.cls, ast.Name) and cx.env.find(node.cls.id) is None:
            cx.captured_value(node.cls.id, span)
        else:
            cx.program.report(ClassPattern(span, name, "it is no class", _FROZEN))
        return None
    cls = known.value
    if not isinstance(cls, type):
        cx.program.report(ClassPattern(span, name, "it is no class", _FROZEN))
        return None
    if not is_data_class(cls) and cls in (bool, int, float, str, tuple, list):
        why = "values have one type, which is known before the program runs"
        cx.program.report(ClassPattern(span, name, why, "leave the test out, or bind a name"))
        return None
    return cx.constructor(cls, span)


_FROZEN: Final = "name a frozen dataclass that is a member of the union"


def _fields(cx: Context, node: ast.MatchClass, found: DataConstructor) -> dict[str, ast.pattern]:
    """Return the patterns by the field they are for; wrong ones are reported."""
    name, span = found.cls.__name__, cx.span(node)
    positions: tuple[str, ...] = getattr(found.cls, "__match_args__", ())
    fields = dict(zip(positions, node.patterns, strict=False))
    if len(node.patterns) > len(positions):
        why = f"it has {_count(len(positions))} by position, {len(node.patterns)} are written"
        cx.program.report(ClassPattern(span, name, why, f"write `{_text(found, positions)}`"))
    for attribute, pattern in zip(node.kwd_attrs, node.kwd_patterns, strict=True):
        if attribute in fields:
            why = f"`{attribute}` is matched twice"
            cx.program.report(ClassPattern(cx.span(pattern), name, why, "match it once"))
        elif attribute not in found.field_names:
            near = nearest(attribute, found.field_names)
            known = ", ".join(f"`{n}`" for n in found.field_names) or "none"
            instead = f"write `{near}`" if near else f"its fields are {known}"
            why = f"it has no field `{attribute}`"
            cx.program.report(ClassPattern(cx.span(pattern), name, why, instead))
        fields[attribute] = pattern
    return fields


def _count(number: int) -> str:
    return "1 field" if number == 1 else f"{number} fields"


def _text(found: DataConstructor, positions: Sequence[str]) -> str:
    return f"{found.cls.__name__}({', '.join(positions)})"


# Sequences: tuples in parentheses, lists in brackets.


def _sequence(
    cx: Context, node: ast.MatchSequence, nodes: Sequence[ast.pattern]
) -> Steps[list[Alternative]]:
    span = cx.span(node)
    is_list = _is_list(cx, node, nodes)
    stars = [n for n in nodes if isinstance(n, ast.MatchStar)]
    rest = nodes[-1] if stars and nodes[-1] is stars[-1] else None
    if stars and (rest is None or len(stars) > 1):
        return _refused(cx, node, "`*` that is not the last", "write `[first, *rest]`", stars[0])
    if stars and not is_list:
        instead = "write it in brackets for a list: `[first, *rest]`"
        return _refused(cx, node, "`*` in a tuple pattern", instead, stars[0])
    each = yield _parts(cx, nodes[:-1] if rest is not None else nodes, span)
    name = rest.name if isinstance(rest, ast.MatchStar) else None

    def made(parts: Sequence[Alternative]) -> Alternative:
        if not is_list:
            return _of_parts(TuplePattern(tuple(p.pattern for p in parts), span=span), parts)
        ends: dict[str, Var] = {}
        end: Pattern = ConstructorPattern(LIST, "Nil", (), span=span)
        if rest is not None:
            end = Wildcard(span=cx.span(rest))
        if rest is not None and name is not None:
            ends[name] = Var(name, span=cx.span(rest))
            end = BindPattern(ends[name], span=cx.span(rest))
        for part in reversed(parts):
            end = ConstructorPattern(LIST, "Cons", (part.pattern, end), span=span)
        whole = _of_parts(end, parts)
        return replace(whole, names={**whole.names, **ends})

    return _bounded(cx, node, (made(parts) for parts in product(*each)))


def _is_list(cx: Context, node: ast.MatchSequence, nodes: Sequence[ast.pattern]) -> bool:
    """Return whether a sequence is written in brackets of its own. To Python they mean the same;
    here a value is a tuple or a list, and the brackets say which."""
    if not cx.span(node).text.startswith("["):
        return False
    first = nodes[0] if nodes else None
    return first is None or (first.lineno, first.col_offset) != (node.lineno, node.col_offset)
