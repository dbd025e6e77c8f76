"""Dead code goes; an effect, and a value that shows a needed size, stays."""

from __future__ import annotations

import pytest

from pyrelay.ir.module import Module
from pyrelay.ir.verify import Stage, verify
from pyrelay.passes.simplify.dce import remove_dead
from tests.unit.passes.programs import body_of, evaluate, normal


def cleaned(text: str) -> Module:
    module = remove_dead(normal(text), "main")
    verify(module, Stage.ANF)
    assert remove_dead(module, "main") is module, "once is enough"
    return module


def left(body: str) -> str:
    """Return what is left of a body."""
    text = f"def @main(%x: float32, %r: ref(float32), %b: bool) {{ {body} }}"
    return body_of(cleaned(text))


@pytest.mark.parametrize(
    "dead",
    [
        "sin(exp(%x))",
        "(%x, %x)",
        "fn () { ref_write(%r, %x) }",
        "ref(%x)",
        "if (%b) { exp(%x) } else { %x }",
        "{ let %c = ref(%x); ref_write(%c, 1.0) }",
        "{ let rec %f = fn (%n: int64) -> int64 { %f(%n) }; %f }",
    ],
)
def test_what_is_not_used_goes(dead: str) -> None:
    assert left(f"let %dead = {dead}; %x") == "%x"


@pytest.mark.parametrize(
    "live",
    [
        "ref_write(%r, %x)",
        "check(%b)",
        "print((%x,))",
        "if (%b) { ref_write(%r, %x) } else { () }",
        "(fn () { ref_write(%r, %x) })()",
        "match? (%b) { True => %x }",
    ],
)
def test_what_has_an_effect_stays(live: str) -> None:
    assert left(f"let %used = {live}; %x") != "%x"


def test_what_only_dead_code_uses_goes_too() -> None:
    assert left("let %a = sin(%x); let %b = if (%b) { %a } else { exp(%a) }; %x") == "%x"


def test_branches_are_cleaned() -> None:
    text = left("if (%b) { let %dead = sin(%x); %x } else { let %live = exp(%x); %live }")
    assert "sin" not in text
    assert "exp" in text


def test_a_recursive_group_keeps_whom_it_calls() -> None:
    text = left("""
        let rec %f = fn (%n: int64) -> int64 { if (%n == 0) { 0 } else { %g(%n - 1) } }
        and %g = fn (%n: int64) -> int64 { %f(%n) }
        and %h = fn (%n: int64) -> int64 { %f(%n) };
        %f(3)
    """)
    assert "%g" in text
    assert "%h" not in text


def test_a_cell_that_is_only_written_goes() -> None:
    assert left("let %c = ref(%x); ref_write(%c, 2.0); ref_write(%c, 3.0); %x") == "%x"
    assert "ref(" in left("let %c = ref(%x); ref_write(%c, 2.0); ref_read(%c)")
    assert "ref(" in left("let %c = ref(%x); ref_write(%c, 2.0); %c")


def test_the_unit_that_a_dead_write_gave_may_be_used() -> None:
    module = cleaned("def @main(%x: float32) { let %c = ref(%x); (ref_write(%c, 2.0), %x) }")
    assert "ref" not in body_of(module).replace("%ref", "")
    assert evaluate(module, "main", (1.0,))[0] == ()


def test_functions_that_are_not_reached_go() -> None:
    text = """
        def @a() -> int64 { @b() }
        def @b() -> int64 { 1 }
        def @c() -> int64 { @a() }
        def @main() { let %dead = @c(); @b() }
    """
    assert list(cleaned(text).functions) == ["b", "main"]
    assert list(remove_dead(normal(text)).functions) == ["a", "b", "c", "main"]


def test_a_binding_that_shows_a_needed_size_stays() -> None:
    module = cleaned("""
        def @main[N: Dim](%x: Tensor[(N,), float32]) {
          let %where = nonzero(%x > 0.0);
          let %n = dim_size(%where, dim=0);
          let %unused = sin(%x);
          full(size=({ %n },), fill_value=1.0, dtype=float32)
        }
    """)
    text = body_of(module)
    assert "nonzero(" in text
    assert "sin(" not in text


def test_a_size_that_a_parameter_shows_keeps_nothing() -> None:
    module = cleaned("""
        def @main[N: Dim](%x: Tensor[(N,), float32]) {
          let %unused = sin(%x);
          full(size=(N,), fill_value=1.0, dtype=float32)
        }
    """)
    assert "sin(" not in body_of(module)
