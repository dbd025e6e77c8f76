"""Matching the arguments of a call to parameters, and keeping the order they are written in."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import Final, final

from ...dataclass import dataclass
from ...diagnostics.catalogue.signatures import WrongArguments
from ...ir.expr import Binding, Expr, Var, is_atom
from ...ir.traverse import Steps, let
from ..program.context import Context
from ..source.scope import nearest
from ..subset.migration_hints import OF_ARGUMENTS, WITHOUT


@final
@dataclass(frozen=True, slots=True)
class Slot:
    """A parameter to which an argument may go."""

    name: str
    required: bool
    keyword_only: bool = False


@final
@dataclass(frozen=True, slots=True)
class Callee:
    """The callee, as far as its arguments matter: its name, its parameters, its signature as
    text, and whether a receiver has already taken the first parameter."""

    name: str
    slots: tuple[Slot, ...]
    text: str
    received: int = 0


def match_arguments(
    cx: Context, call: ast.Call, callee: Callee, positional: Sequence[ast.expr] | None = None
) -> dict[str, ast.expr] | None:
    """Return the argument of each parameter that has one, in the order they are written; None when
    the call does not fit, which is reported. A missing argument is not looked at."""
    args = call.args if positional is None else positional
    free = [s for s in callee.slots[callee.received :] if not s.keyword_only]
    if len(args) > len(free):
        count = f"{len(free)} argument{'' if len(free) == 1 else 's'} by position"
        return _wrong(cx, args[len(free)], callee, f"takes {count}, not {len(args)}")
    found = {slot.name: arg for slot, arg in zip(free, args, strict=False)}
    taken = {s.name for s in callee.slots[: callee.received]}
    names = [s.name for s in callee.slots]
    for keyword in call.keywords:
        assert keyword.arg is not None, "the subset excludes **"
        if keyword.arg not in names:
            usual = OF_ARGUMENTS.get(keyword.arg)
            near = usual if usual in names else nearest(keyword.arg, names)
            way = WITHOUT.get(keyword.arg) if near is None else None
            return _wrong(cx, keyword, callee, f"has no parameter `{keyword.arg}`", near, way)
        if keyword.arg in found or keyword.arg in taken:
            return _wrong(cx, keyword, callee, f"gets `{keyword.arg}` twice")
        found[keyword.arg] = keyword.value
    return found


def bind_arguments(cx: Context, call: ast.Call, callee: Callee) -> dict[str, ast.expr] | None:
    """Return the argument of each parameter that has one, in the order they are written; None when
    the call does not fit or misses one, which is reported."""
    found = match_arguments(cx, call, callee)
    return None if found is None or not require(cx, call, callee, found) else found


def argument_values(cx: Context, call: ast.Call, callee: Callee) -> Steps[dict[str, Expr] | None]:
    """Translate the arguments of a call; None when they do not fit, which is reported."""
    bound = bind_arguments(cx, call, callee)
    if bound is None:
        return None
    values = yield cx.expressions(list(bound.values()))
    return dict(zip(bound, values, strict=True))


def require(cx: Context, call: ast.Call, callee: Callee, found: Mapping[str, object]) -> bool:
    """Return whether all required parameters have an argument; the first that has none is
    reported."""
    for slot in callee.slots[callee.received :]:
        if slot.required and slot.name not in found:
            why = f"misses its argument `{slot.name}`"
            _wrong(cx, call, callee, why, way=_with_argument(cx, call, slot.name))
            return False
    return True


def _with_argument(cx: Context, call: ast.Call, name: str) -> str | None:
    """Return how to write a call with the argument that it misses, if it is short."""
    text = cx.span(call).text
    if "\n" in text or len(text) > LONGEST_HELP:
        return None
    more = ", " if call.args or call.keywords else ""
    return f"write `{text[:-1]}{more}{name}={'-1' if name == 'dim' else '...'})`"


LONGEST_HELP: Final = 60
"""The longest text of a call that is repeated in a help."""


def _wrong(
    cx: Context,
    node: ast.expr | ast.keyword,
    callee: Callee,
    why: str,
    near: str | None = None,
    way: str | None = None,
) -> None:
    cx.program.report(WrongArguments(cx.span(node), callee.name, why, callee.text, near, way))


def in_order(
    written: Mapping[str, Expr], names: Sequence[str], build: Callable[[Mapping[str, Expr]], Expr]
) -> Expr:
    """Return a call built from its arguments by name, evaluated in the order they are written."""
    wanted = [n for n in names if n in written]
    moved = [n for n in written if not is_atom(written[n])]
    if [n for n in wanted if n in moved] == moved:
        return build(written)
    bindings = [Binding(Var(n, span=written[n].span), written[n]) for n in moved]
    atoms = {b.var.name: b.var for b in bindings}
    return let(bindings, build({n: atoms.get(n, v) for n, v in written.items()}))
