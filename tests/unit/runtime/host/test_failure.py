"""A program that fails says where, in the user's own text, in both executors."""

from __future__ import annotations

import traceback

import pytest
import torch

from pyrelay.diagnostics.diagnostic import RunError
from pyrelay.runtime.compile.evaluator import evaluate
from pyrelay.runtime.host import compile_module
from tests.unit.runtime.host.programs import CPU, compiled, prepared

FAILING = {
    "check": (
        "def @main(%n: int64) {{ {0}; %n }}",
        'check(less(%n, 0), message="too big")',
        "RL500",
    ),
    "fail": (
        "def @main(%n: int64) -> int64 {{ if (less(%n, 0)) {{ 1 }} else {{ {0} }} }}",
        'fail(message="no way on")',
        "RL501",
    ),
    "index": (
        "def @main(%n: int64) {{ let %x = zeros(size=(3,), dtype=float32); {0} }}",
        'index(%x, (%n,), spec=(("int", 0),))',
        "RL502",
    ),
    "list": (
        "def @main(%n: int64) -> int64 {{ if (less(%n, 0)) {{ 1 }} else {{ {0} }} }}",
        "no_element(%n, 2)",
        "RL502",
    ),
    "division": ("def @main(%n: int64) {{ add(1, {0}) }}", "floor_divide(%n, 0)", "RL503"),
    "match": ("def @main(%n: int64) {{ {0} }}", "match? (%n) { 0 => 1, 1 => 2 }", "RL504"),
    "operator": (
        "def @main(%n: int64) {{ {0} }}",
        "same_length((as_size(%n), as_size(3)))",
        "RL508",
    ),
}


@pytest.mark.parametrize("name", FAILING)
def test_a_failure_points_at_the_expression(name: str) -> None:
    template, expression, code = FAILING[name]
    module = prepared(template.format(expression))
    runs = (lambda: compile_module(module, "main", CPU)(7), lambda: evaluate(module, "main", [7]))
    for fails in runs:
        with pytest.raises(RunError) as caught:
            fails()
        assert caught.value.codes == (code,)
        (diagnostic,) = caught.value.diagnostics
        assert diagnostic.primary is not None
        assert diagnostic.primary.span.text == expression


def test_messages_of_the_program_are_the_title() -> None:
    with pytest.raises(RunError, match="too big"):
        compiled('def @main(%n: int64) { check(less(%n, 0), message="too big"); %n }')(7)


def test_a_traceback_shows_only_the_users_frames() -> None:
    source = """
    def @main(%n: int64) -> int64 { add(@half(%n), 1) }
    def @half(%n: int64) -> int64 { add(1, floor_divide(4, %n)) }
    """
    with pytest.raises(RunError) as caught:
        compiled(source)(0)
    frames = [f.name for f in traceback.extract_tb(caught.value.__traceback__)]
    assert frames[-2:] == ["main", "half"]
    assert frames.index("main") == 2  # this test, the call, then only the program
    assert caught.value.__suppress_context__


def test_a_failure_in_deep_recursion_still_has_its_place() -> None:
    source = """def @main(%n: int64) -> int64 {
      if (less(%n, 1)) { floor_divide(1, %n) } else { add(@main(subtract(%n, 1)), 1) }
    }"""
    with pytest.raises(RunError) as caught:
        compiled(source)(5000)
    primary = caught.value.diagnostics[0].primary
    assert primary is not None
    assert primary.span.text == "floor_divide(1, %n)"


def test_division_of_a_tensor_by_zero_is_an_error_for_integers_only() -> None:
    source = "def @main(%x: Tensor[(2,), {0}], %y: Tensor[(2,), {0}]) {{ floor_divide(%x, %y) }}"
    with pytest.raises(RunError) as caught:
        compiled(source.format("int64"))(torch.tensor([1, 2]), torch.tensor([1, 0]))
    assert caught.value.codes == ("RL503",)
    found = compiled(source.format("float32"))(torch.ones(2), torch.tensor([1.0, 0.0]))
    assert found.tolist() == [1.0, float("inf")]


def test_sizes_of_arguments_must_fit_together() -> None:
    source = """def @main[N: Dim, M: Dim](%x: Tensor[(N,), float32], %y: Tensor[(M,), float32]) {
      add(%x, %y)
    }"""
    module = prepared(source)
    runs = (compile_module(module, "main", CPU), lambda *args: evaluate(module, "main", args))
    for run in runs:
        assert run(torch.ones(3), torch.ones(3)).shape == (3,)
        with pytest.raises(RunError) as caught:
            run(torch.ones(3), torch.ones(1))
        assert caught.value.codes == ("RL505",)
