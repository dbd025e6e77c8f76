"""Errors and warnings about cases: those that are missing, and those that nothing reaches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from ...analysis.coverage import LISTED, Coverage, coverage
from ...diagnostics.catalogue.patterns import (
    CasesNotChecked,
    MissingCases,
    TangledCases,
    UnreachableCase,
)
from ...diagnostics.diagnostic import Problem
from ...diagnostics.source import Construct, Span
from ...ir.expr import Function, Match, Pattern
from ...ir.traverse import post_order, takes_all
from .witness import case_text, with_names

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
                winners = [match.clauses[w].pattern.span for w in covered.unreachable[place]]
                found.setdefault(span, UnreachableCase(span, tuple(_once(winners)[:WINNERS])))
    return [problem for span, problem in found.items() if span not in reached]


def _once(spans: Sequence[Span]) -> list[Span]:
    return list(dict.fromkeys(spans))


def _matches(function: Function, adts: Mapping[str, AdtDef]) -> Iterator[tuple[Match, Coverage]]:
    for node in post_order(function):
        if isinstance(node, Match):
            yield node, coverage(node, adts)


def _has_rest(match: Match) -> bool:
    """Return whether some clause takes everything, so that nothing can be missing."""
    return any(c.guard is None and takes_all(c.pattern) for c in match.clauses)
