"""Errors of a union, once its members are known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from ...diagnostics.catalogue.data import BadUnion, UnnamedUnion
from ...diagnostics.diagnostic import Problem
from ...diagnostics.source import Span
from ..source.unions import Member, Union, member_of, members_of


def not_classes(union: Union) -> Callable[[Span], Problem]:
    """Return the mistake of a union with members that are no dataclasses."""
    name = _name(union.others[0])
    return lambda span: BadUnion(
        span,
        union.name,
        f"`{name}` is no dataclass",
        f"give it a frozen dataclass of its own, with a field for the `{name}`",
    )


def _name(value: Any) -> str:
    return getattr(value, "__name__", repr(value))


def unnamed(value: Any, union: Union, members: Sequence[Member]) -> Callable[[Span], Problem]:
    """Return the mistake of a union that stands in an annotation and is no alias's."""
    names = [m.cls.__name__ for m in members]
    others = tuple(m for m in members_of(value) or () if member_of(m) is None)
    text = " | ".join([*names, *map(_name, others)])
    if others:
        return not_classes(replace(union, name=text, others=others))
    if len(union.key) > 1:
        return lambda span: BadUnion(
            span,
            text,
            f"`{names[0]}` belongs to the union {union.place}",
            f"write `{union.name}`, and match on it",
        )
    return lambda span: UnnamedUnion(span, text, f"Either = {text}")
