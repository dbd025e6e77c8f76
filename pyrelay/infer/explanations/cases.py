"""Errors and warnings about cases: those that are missing, and those that nothing reaches.

A case that is missing is shown as the user would write it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from keyword import iskeyword
from typing import TYPE_CHECKING, Final, assert_never

from ...analysis.coverage import LISTED, Coverage, coverage
from ...diagnostics.catalogue.patterns import (
    CasesNotChecked,
    MissingCases,
    TangledCases,
    UnreachableCase,
)
from ...diagnostics.diagnostic import Problem
from ...diagnostics.source import Construct, Span
from ...ir.expr import (
    BindPattern,
    ConstructorPattern,
    Function,
    LiteralPattern,
    Match,
    Pattern,
    TuplePattern,
    Var,
    Wildcard,
)
from ...ir.module import AdtDef
from ...ir.traverse import Steps, post_order, run, takes_all
from ...prelude.library import LIST, OPTION

if TYPE_CHECKING:
    from ...ir.module import AdtDef, Module

WINNERS: Final = 3
"""How many of the cases that win instead of one that is never reached are pointed at."""


def missing_cases(function: Function, adts: Mapping[str, AdtDef]) -> list[Problem]:
    """Return the matches of a typed function that leave out a case, each place once."""
    found: dict[Span, Problem] = {}
    for match, covered in _matches(function, adts):
        if match.partial or match.span in found:
            continue
        if not covered.is_complete and not covered.missing and _has_rest(match):
            continue
        if covered.missing:
            is_python = match.span.file.is_python
            cases = tuple(case_text(p, is_python=is_python) for p in covered.missing[:LISTED])
            more = len(covered.missing) > LISTED
            is_never = match.span.construct is Construct.NEVER
            named = _named(covered.missing, adts, more=more) if is_python else ()
            found[match.span] = MissingCases(match.span, cases, more, named, is_never)
        elif not covered.is_complete:
            found[match.span] = TangledCases(match.span)
    return list(found.values())


def _named(
    missing: Sequence[Pattern], adts: Mapping[str, AdtDef], *, more: bool
) -> tuple[str, ...]:
    """Return Python's patterns for all values that are missing."""
    texts = [case_text(with_names(p, adts), is_python=True) for p in missing[:LISTED]]
    return ("_",) if more or any("..." in t for t in texts) else tuple(texts)


def unreachable_cases(module: Module) -> list[Problem]:
    """Return the cases of a typed program that no value reaches, each place once. A function may be
    there in several copies: a case is reported if it is not reached in any of them."""
    reached: set[Span] = set()
    found: dict[Span, Problem] = {}
    for function in module.functions.values():
        for match, covered in _matches(function, module.adts):
            if not covered.is_complete and _has_rest(match):
                found.setdefault(match.span, CasesNotChecked(match.span))
            for place, clause in enumerate(match.clauses):
                span = clause.pattern.span
                if place not in covered.unreachable or not span.file.text:
                    reached.add(span)
                    continue
                unreachable = covered.unreachable[place]
                winners = dict.fromkeys(match.clauses[w].pattern.span for w in unreachable)
                found.setdefault(span, UnreachableCase(span, tuple(winners)[:WINNERS]))
    return [problem for span, problem in found.items() if span not in reached]


def _matches(function: Function, adts: Mapping[str, AdtDef]) -> Iterator[tuple[Match, Coverage]]:
    for node in post_order(function):
        if isinstance(node, Match):
            yield node, coverage(node, adts)


def _has_rest(match: Match) -> bool:
    """Return whether some clause takes everything, so that nothing can be missing."""
    return any(c.guard is None and takes_all(c.pattern) for c in match.clauses)


DEEPEST: Final = 12
"""How many patterns inside each other are written out."""


def with_names(pattern: Pattern, adts: Mapping[str, AdtDef]) -> Pattern:
    """Return a pattern that gives what it takes of fields their names, each name once."""
    taken: set[str] = set()

    def named(part: Pattern, depth: int) -> Pattern:
        match part:
            case TuplePattern(fields) if depth <= DEEPEST:
                return replace(part, fields=tuple(named(f, depth + 1) for f in fields))
            case ConstructorPattern(adt, name, fields) if depth <= DEEPEST:
                names = adts[adt].constructor(name).field_names or ("",) * len(fields)
                pairs = zip(fields, names, strict=True)
                inside = (
                    _field(f, n) if isinstance(f, Wildcard) else named(f, depth + 1)
                    for f, n in pairs
                )
                return replace(part, fields=tuple(inside))
            case _:
                return part

    def _field(part: Pattern, name: str) -> Pattern:
        if not name.isidentifier() or iskeyword(name) or name in taken:
            return part
        taken.add(name)
        return BindPattern(Var(name, span=part.span), span=part.span)

    return named(pattern, 0)


def case_text(pattern: Pattern, *, is_python: bool) -> str:
    """Return a pattern without names in Python's syntax, or in that of the text form."""
    return run(_text(pattern, is_python, 0))


def _text(pattern: Pattern, is_python: bool, depth: int) -> Steps[str]:
    if depth > DEEPEST:
        return "..."
    match pattern:
        case Wildcard():
            return "_"
        case BindPattern(var, None):
            return var.name
        case BindPattern(inner=inner):
            assert inner is not None
            return (yield _text(inner, is_python, depth))
        case LiteralPattern(value):
            return repr(value)
        case TuplePattern(fields):
            inside = yield _each(fields, is_python, depth)
            return f"({inside},)" if len(fields) == 1 else f"({inside})"
        case ConstructorPattern(adt, name, fields) if is_python and adt in (LIST, OPTION):
            return (yield _of_prelude(name, fields, depth))
        case ConstructorPattern(name=name, fields=fields):
            inside = yield _each(fields, is_python, depth)
            return f"{name}({inside})" if fields or is_python else name
        case other:
            assert_never(other)


def _of_prelude(name: str, fields: Sequence[Pattern], depth: int) -> Steps[str]:
    """Return the pattern of a list, or of an optional, as Python writes it."""
    elements: list[str] = []
    while name == "Cons":
        first, rest = fields
        elements.append((yield _text(first, True, depth + 1)))
        if not isinstance(rest, ConstructorPattern):
            return f"[{', '.join((*elements, '*_'))}]"
        name, fields = rest.name, rest.fields
    match name:
        case "Some":
            return (yield _text(fields[0], True, depth))
        case "None":
            return "None"
        case _:
            return f"[{', '.join(elements)}]"


def _each(fields: Sequence[Pattern], is_python: bool, depth: int) -> Steps[str]:
    texts: list[str] = []
    for field in fields:
        texts.append((yield _text(field, is_python, depth + 1)))  # noqa: PERF401
    return ", ".join(texts)
