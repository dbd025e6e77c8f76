"""Values that have the form of their plan, and values that contain themselves."""

from __future__ import annotations

from typing import Any

from ...prelude.values import List
from .schema import Data, Elements, Items, Leaf, Maybe, Plan, opened


def has_form(value: Any, plan: Plan) -> bool:
    """Return whether a value can be opened as its plan says."""
    match plan:
        case Data():
            return type(value) in plan.cases
        case Items(fields=fields):
            return isinstance(value, tuple | list) and len(value) == len(fields)
        case Elements():
            return isinstance(value, list | tuple | List)
        case _:
            return True


def is_cyclic(value: Any, plan: Plan) -> bool:
    """Return whether a value contains itself."""
    inside: set[int] = set()
    done: set[int] = set()
    pending: list[tuple[Any, Plan, bool]] = [(value, plan, False)]
    while pending:
        current, plan, left = pending.pop()
        if left:
            inside.discard(id(current))
            done.add(id(current))
        elif id(current) in inside:
            return True
        elif id(current) not in done and not isinstance(plan, Leaf) and has_form(current, plan):
            if not isinstance(plan, Maybe):
                inside.add(id(current))
                pending.append((current, plan, True))
            parts, plans, _ = opened(current, plan, is_given=True)
            pending += ((p, q, False) for p, q in zip(parts, plans, strict=False))
    return False
