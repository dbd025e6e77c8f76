"""Gradients of conditionals and of case analysis on tuples and literals."""

from __future__ import annotations

import pytest

from pyrelay.text.printer import to_text
from tests.unit.passes.grad.programs import check, expanded, scalar

TWO = "%x: float64, %y: float64"
VALUES = [(0.3, 0.2), (0.3, 0.05), (1.4, 0.6), (-0.5, 2.0)]


def check_everywhere(text: str) -> None:
    """Check a program at points that take different branches."""
    for x, y in VALUES:
        check(text, TWO, scalar(x), scalar(y))


@pytest.mark.parametrize(
    "body",
    [
        "if (%x < 1.0f64) { %x * %y * %x } else { %x * 3.0f64 }",
        "let %c = if (%x < 1.0f64) { %x * %y * %x } else { %y }; tanh(%c) * %x",
        """let %a = %x * %y;
        let %c = if (%x < 1.0f64) { let %q = sin(%a); %q * %q * %x } else { %a * 3.0f64 };
        tanh(%c) * %a""",
        """if (%x < 1.0f64) {
          let %a = exp(%x);
          if (%y < 0.1f64) { %a } else { let %b = sin(%a); %b * %b * %y + %a }
        } else { %y }""",
        """let %p = if (%x < 1.0f64) { (%x * %y, 3) } else { (sin(%y), 4) };
        let %q = if (%p.1 == 3) { (%p.0, %x) } else { (%x, %p.0 * %p.0) };
        %q.0 * %q.1""",
        "let %c = if (%x < 1.0f64) { 2.0f64 } else { 3.0f64 }; %c * %x * %y",
        "let %c = if (%x < 1.0f64) { %x } else { %y }; %c",
        """let %c = if (%x < 1.0f64) { let %s = sin(%y); %s * %s } else { 1.0f64 };
        let %d = if (%y < 0.1f64) { %c } else { let %t = cos(%c); %t * %t * %x };
        %d * %c""",
    ],
)
def test_a_conditional_is_differentiated_along_the_branch_that_ran(body: str) -> None:
    check_everywhere(f"def @f({TWO}) -> float64 {{ {body} }}")


def test_case_analysis_on_tuples_and_literals_with_guards() -> None:
    check_everywhere(f"""
    def @f({TWO}) -> float64 {{
      let %n = if (%x < 0.0f64) {{ 0 }} else {{ if (%x < 1.0f64) {{ 1 }} else {{ 2 }} }};
      let %pair = (%x, (%n, %y));
      match (%pair) {{
        (%a, (0, %b)) => %a * %b,
        (%a, (1, %b)) if %b < 0.1f64 => {{ let %s = sin(%a); %s * %s * %b }},
        (%a, (_, _)) as %whole => {{ let %w = %whole.1; exp(%a) * %w.1 * %y }},
      }} }}""")


def test_a_calls_residual_is_saved_by_the_arm_that_made_it() -> None:
    check_everywhere(f"""
    def @h(%x: float64) -> float64 {{ let %s = sin(%x); %s * %s }}
    def @f({TWO}) -> float64 {{
      let %a = if (%x < 1.0f64) {{ let %b = @h(%y); %b * @h(%b) }} else {{ @h(%x) }};
      %a * %x }}""")


def test_an_if_whose_arms_save_nothing_of_their_own_is_chosen_by_its_condition() -> None:
    text = """
    def @f(%x: float64, %y: float64) -> float64 {
      let %c = if (%x < 1.0f64) { %x * %y } else { %y * 3.0f64 }; %c * %c }
    def @main(%x: float64, %y: float64) { let %g = grad(@f); %g(%x, %y) }
    """
    module = expanded(text)
    assert not module.adts
    assert to_text(module).count("if (") == 3  # of the function, forwards and backwards


def test_a_branch_that_saves_something_gets_a_constructor_per_arm() -> None:
    text = """
    def @f(%x: float64) -> float64 {
      let %c = if (%x < 1.0f64) { let %s = sin(%x); %s * %s } else { %x }; %c * %x }
    def @main(%x: float64) { let %g = grad(@f); %g(%x) }
    """
    (adt,) = expanded(text).adts.values()
    assert [len(c.fields) for c in adt.constructors] == [1, 0]


def test_integer_work_has_no_backward_code() -> None:
    text = """
    def @f(%x: float64, %n: int64) -> float64 {
      let %m = if (%n < 3) { %n * 2 } else { %n * %n + 1 };
      %x * cast(%m, dtype=float64) }
    def @main(%x: float64, %n: int64) { let %g = grad{wrt=(0,)}(@f); %g(%x, %n) }
    """
    module = expanded(text)
    backward = to_text(module).split("def @f_bwd")[1].split("def ")[0]
    assert "if (" not in backward
    assert "int64" not in backward
