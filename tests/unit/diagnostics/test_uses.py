"""A name among the operands of an expression."""

from __future__ import annotations

import pytest

from pyrelay.diagnostics.source import SourceFile, Span
from pyrelay.diagnostics.uses import use_of


@pytest.mark.parametrize(
    ("text", "name", "start"),
    [
        ("x + y", "y", 4),
        ("x + y", "z", None),
        ("x * x", "x", None),
        ("f(x) + x", "x", 7),
        ("-x", "x", 1),
        ("f('é', x)", "x", 7),
        ("f(\n    a,\n    other=x,\n)", "x", 20),
        ("x.sum(dim=0)", "x", 0),
        ("x[i]", "i", 2),
        ("x < y", "x", 0),
        ("x +", "x", None),
        ("(yield x)", "x", None),
    ],
)
def test_it_is_found_where_it_stands_once(text: str, name: str, start: int | None) -> None:
    file = SourceFile("a.py", f"é = {text}\n")
    found = use_of(name, Span(file, 4, 4 + len(text)))
    assert (found and found.start - 4) == start
    assert found is None or found.text == name
