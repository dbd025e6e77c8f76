"""Reads small pieces of Relay's text for the tests of its reader."""

from __future__ import annotations

import pytest

from pyrelay.diagnostics.diagnostic import CheckError
from pyrelay.ir.equality import alpha_equal
from pyrelay.ir.expr import Call, Expr
from pyrelay.ir.module import Module
from pyrelay.ir.op import Op
from pyrelay.ir.traverse import post_order
from pyrelay.text.parser import parse_expr, parse_module

HEADER = '#[version = "0.0.5"]\n'


def relay(text: str) -> Expr:
    return parse_expr(text, relay=True)


def module(text: str) -> Module:
    return parse_module(HEADER + text)


def same(left: str, right: str) -> bool:
    return alpha_equal(relay(left), relay(right))


def mistake(text: str) -> tuple[str, str]:
    """Return the code of the mistake in a text, and the characters it points at."""
    with pytest.raises(CheckError) as caught:
        module(text)
    (found,) = caught.value.diagnostics
    assert found.primary is not None
    return found.code, found.primary.span.text


def operators(expr: Expr) -> list[str]:
    calls = (n.callee for n in post_order(expr) if isinstance(n, Call))
    return [c.name for c in calls if isinstance(c, Op)]
