"""What stays outside of the language is refused when a function is decorated, by its name."""

from __future__ import annotations

import ast
import textwrap

import pytest

from pyrelay.diagnostics.source import SourceFile
from pyrelay.translate.subset.constructs import REFUSED, REFUSED_OPERATORS, mistakes

BODIES = {
    ast.AsyncFor: "async for i in x: pass",
    ast.AsyncFunctionDef: "async def g(): pass",
    ast.AsyncWith: "async with x: pass",
    ast.Await: "await x",
    ast.ClassDef: "class C: pass",
    ast.Delete: "del x",
    ast.Dict: "{1: x}",
    ast.DictComp: "{i: i for i in x}",
    ast.GeneratorExp: "f(i for i in x)",
    ast.Global: "global x",
    ast.Import: "import math",
    ast.ImportFrom: "from math import pi",
    ast.JoinedStr: "y = f'{x}'",
    ast.ListComp: "[i for i in x]",
    ast.MatchMapping: "match x:\n    case {1: y}: pass",
    ast.NamedExpr: "(y := x)",
    ast.Nonlocal: "def g():\n    nonlocal x",
    ast.Set: "{x}",
    ast.SetComp: "{i for i in x}",
    ast.Starred: "f(*x)",
    ast.Try: "try:\n    x\nfinally:\n    x",
    ast.TryStar: "try:\n    x\nexcept* ValueError:\n    x",
    ast.With: "with x: pass",
    ast.Yield: "yield x",
    ast.YieldFrom: "yield from x",
}
OPERATORS: dict[type[ast.AST], str] = {
    ast.LShift: "x << 1",
    ast.RShift: "x >> 1",
    ast.Is: "x is x",
    ast.IsNot: "x is not x",
}


def refused(body: str, head: str = "def f(x):") -> list[tuple[str, str]]:
    """Return what the fence says about a function, with the text it points at."""
    is_async = "await" in body or "async for" in body or "async with" in body
    text = f"{head}\n{textwrap.indent(body, '    ')}\n"
    if is_async:
        text = text.replace("def f", "async def f")
    found = ast.parse(text).body[0]
    assert isinstance(found, ast.FunctionDef | ast.AsyncFunctionDef)
    if isinstance(found, ast.AsyncFunctionDef):
        found = ast.FunctionDef(**{n: getattr(found, n, None) for n in found._fields}, lineno=1)
    return [(p.what, p.span.text) for p in mistakes(SourceFile("f.py", text), found)]


@pytest.mark.parametrize("construct", REFUSED, ids=lambda c: c.__name__)
def test_every_construct_in_the_table_is_refused_by_its_name(construct: type[ast.AST]) -> None:
    found = refused(BODIES[construct])
    assert [what for what, _ in found] == [REFUSED[construct].what]
    assert found[0][1] in BODIES[construct]


@pytest.mark.parametrize("operator", REFUSED_OPERATORS, ids=lambda c: c.__name__)
def test_every_operator_in_the_table_is_refused(operator: type[ast.AST]) -> None:
    assert refused(OPERATORS[operator]) == [(REFUSED_OPERATORS[operator].what, OPERATORS[operator])]


def test_all_mistakes_are_found_in_the_order_of_the_text() -> None:
    found = refused("y = {x}\nz = {i for i in x}\ndel y")
    assert [text for _, text in found] == ["{x}", "{i for i in x}", "del y"]


def test_star_parameters_are_refused_by_name() -> None:
    assert refused("pass", "def f(*xs, **more):") == [("`*xs`", "xs"), ("`**more`", "more")]


def test_an_f_string_is_allowed_where_it_is_shown() -> None:
    assert refused("print(f'{x}')\nassert x, f'{x}'\nraise ValueError(f'{x}')") == []


def test_only_items_of_names_are_assigned() -> None:
    assert [text for _, text in refused("f(x)[0] = 2\nx[0][1] = 2\nx[0] = 1")] == ["f(x)[0]"]


def test_nested_functions_have_no_decorators() -> None:
    assert refused("@x\ndef g(): pass") == [("a decorator on a nested function", "x")]


def test_annotations_are_not_read_by_the_fence() -> None:
    assert refused("y: {1: 2} = x", "def f(x: [i for i in y]) -> {3}:") == []
