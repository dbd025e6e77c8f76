"""Liveness and the ends of statements, on which joins and loops rely."""

from __future__ import annotations

import ast
import textwrap

from pyrelay.translate.source.flow import analyse, locals_of, reads


def parsed(text: str) -> list[ast.stmt]:
    return ast.parse(textwrap.dedent(text)).body


def never_known(_: ast.expr) -> bool | None:
    return None


def literal(test: ast.expr) -> bool | None:
    return bool(test.value) if isinstance(test, ast.Constant) else None


def function(text: str) -> ast.FunctionDef:
    found = parsed(text)[0]
    assert isinstance(found, ast.FunctionDef)
    return found


def first(body: list[ast.stmt]) -> ast.If | ast.For | ast.While:
    found = body[0]
    assert isinstance(found, ast.If | ast.For | ast.While)
    return found


def test_only_names_read_later_are_joined() -> None:
    body = parsed(
        """
        if c:
            a = b = d = 1
        else:
            a = d = 2
        d = 3
        use(a, d)
        """
    )
    assert analyse(body, never_known).joined(first(body)) == ("a",)


def test_a_name_read_in_the_next_round_is_carried() -> None:
    body = parsed(
        """
        while c:
            t = a
            a = t + 1
            u = t
        use(u)
        """
    )
    flow = analyse(body, never_known)
    assert flow.carried(first(body)) == ("a", "u")
    assert flow.joined(first(body)) == ("u",)


def test_a_name_set_before_every_break_is_not_carried() -> None:
    body = parsed(
        """
        while True:
            x = f()
            if x:
                break
        use(x)
        """
    )
    flow = analyse(body, literal)
    assert flow.carried(first(body)) == ()
    assert flow.joined(first(body)) == ("x",)


def test_the_loop_variable_is_not_carried() -> None:
    body = parsed("for i in xs:\n    use(i)\n")
    assert analyse(body, never_known).carried(first(body)) == ()


def test_an_item_that_is_assigned_makes_its_name_new() -> None:
    body = parsed("for i in xs:\n    y[i] = i\nuse(y)\n")
    assert analyse(body, never_known).carried(first(body)) == ("y",)


def test_a_nested_function_reads_what_it_captures() -> None:
    assert reads(function("def f(a, b=k):\n    c = a + d\n    return lambda e: c + e + g")) == {
        "k",
        "d",
        "g",
    }


def test_locals_are_parameters_and_names_assigned_but_no_items() -> None:
    node = function("def f(a, *, b):\n    for c, (d, e) in a:\n        g[0] = c\n    x.y = 1\n")
    assert locals_of(node) == {"a", "b", "c", "d", "e"}


def test_a_branch_with_a_break_of_an_inner_loop_does_not_jump() -> None:
    body = parsed("if c:\n    while d:\n        break\nif c:\n    while d:\n        return")
    inner, outer = body
    assert isinstance(inner, ast.If)
    assert isinstance(outer, ast.If)
    flow = analyse(body, literal)
    assert not flow.jumps(inner)
    assert flow.jumps(outer)
    loops = [s for s in (inner.body[0], outer.body[0]) if isinstance(s, ast.While)]
    assert [flow.jumps_back(s) for s in loops] == [False, True]


def test_what_leaves_an_else_leaves_what_is_around_the_loop() -> None:
    body = parsed("while a:\n    for b in c:\n        break\n    else:\n        continue\n")
    outer = body[0]
    assert isinstance(outer, ast.While)
    inner = outer.body[0]
    assert isinstance(inner, ast.For)
    flow = analyse(body, literal)
    assert flow.jumps_back(inner)
    assert not flow.jumps_back(outer)


def test_the_else_of_a_loop_is_its_end_unless_a_break_is() -> None:
    ended = "for a in b:\n    x = 1\nelse:\n    return\n"
    assert not reaches_its_end(ended)
    assert reaches_its_end(ended.replace("x = 1", "break"))


def reaches_its_end(body: str) -> bool:
    """Return whether control can reach the end of a body, which is put into a branch."""
    branch = parsed("if c:\n" + textwrap.indent(body, "    "))
    found = first(branch)
    assert isinstance(found, ast.If)
    return analyse(branch, literal).falls_through(found)


def test_an_endless_loop_without_break_has_no_end() -> None:
    assert not reaches_its_end("while True:\n    x = 1\n")
    assert reaches_its_end("while True:\n    if c:\n        break\n")


def test_a_branch_ends_where_one_of_its_arms_does() -> None:
    assert not reaches_its_end("if c:\n    return\nelse:\n    raise E\n")
    assert reaches_its_end("if c:\n    return\n")
    assert not reaches_its_end("if True:\n    return\n")
    assert reaches_its_end("if False:\n    return\n")
    assert not reaches_its_end("return\nx = 1\n")
