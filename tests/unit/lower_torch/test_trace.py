"""Bodies of library operators become the torch calls they make, where that is known."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

import pytest
import torch

from pyrelay.diagnostics.source import BUILTIN
from pyrelay.ir.types import INT, float32, tensor_type
from pyrelay.lower_torch.code import Code
from pyrelay.lower_torch.terms import Form, Term, leaf, write
from pyrelay.lower_torch.trace import NotTraceable, trace

MATRIX = tensor_type(float32, "N", 3)


class Recorder:
    """A function under construction that has nothing but assignments."""

    def __init__(self) -> None:
        self.code = Code(BUILTIN)
        self.lines: list[str] = []

    def bind(self, value: ast.expr, hint: str) -> ast.expr:
        name = f"{hint}_{len(self.lines)}"
        self.lines.append(f"{name} = {ast.unparse(value)}")
        return self.code.name(name)


def operand(code: Code, name: str, form: Form = Form.TENSOR) -> Term:
    return leaf(lambda: code.name(name), form, float32)


def text_of(body: Callable[..., Any], *attrs: Any) -> list[str]:
    """Return the statements of a body of one matrix `x`, the result last."""
    recorder = Recorder()
    x = operand(recorder.code, "x")
    term = trace(body, recorder, [x, *attrs], [MATRIX])  # type: ignore[arg-type]
    result = write(term, recorder, "t")  # type: ignore[arg-type]
    return [*recorder.lines, ast.unparse(result)]


def test_a_call_of_torch_is_written_as_it_is() -> None:
    body = lambda torch, x, dims: torch.nn.functional.pad(x, dims, value=0.5)  # noqa: E731
    assert text_of(body, (1, 2)) == ["torch.nn.functional.pad(x, (1, 2), value=0.5)"]


def test_attributes_decide_at_compile_time() -> None:
    def body(torch: Any, x: Any, keep: bool) -> Any:
        return x.sum(0, keepdim=True) if keep else torch.relu(x)

    assert text_of(body, True) == ["x.sum(0, keepdim=True)"]
    assert text_of(body, False) == ["torch.relu(x)"]


def test_what_the_type_tells_needs_no_tensor() -> None:
    def body(torch: Any, x: Any) -> Any:
        assert isinstance(x, torch.Tensor)
        assert x.dim() == x.ndim == len(x.shape) == 2
        assert x.dtype == torch.float32
        return x.reshape(x.shape[0], x.shape[1] * 2)

    assert text_of(body) == ["x.reshape(x.shape[0], 6)"]


def test_a_value_used_twice_is_computed_once() -> None:
    def body(torch: Any, x: Any) -> Any:
        y = torch.exp(x)
        return y / y.sum()

    assert text_of(body) == ["t_0 = torch.exp(x)", "t_0 / t_0.sum()"]


def test_slices_inside_tuples_are_calls() -> None:
    assert text_of(lambda torch, x: x[1:, 0]) == ["x[slice(1, None, None), 0]"]
    assert text_of(lambda torch, x: x[1:]) == ["x[1:]"]


REFUSED: dict[str, Callable[..., Any]] = {
    "looks at elements": lambda torch, x: x if x.sum() > 0 else -x,
    "iterates": lambda torch, x: list(x),
    "writes": lambda torch, x: x.add_(1),
    "writes to an output": lambda torch, x: torch.exp(x, out=x),
    "assigns elements": lambda torch, x: x.__setitem__(0, 1),
    "compares shapes": lambda torch, x: x if x.shape == (3, 3) else -x,
    "compares a device": lambda torch, x: x if x.device == "cpu" else -x,
    "calls another class": lambda torch, x: torch.Generator(x),
    "goes wrong": lambda torch, x: x + undefined,  # type: ignore[name-defined]  # noqa: F821
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_body_that_needs_values_is_not_traced(name: str) -> None:
    with pytest.raises(NotTraceable):
        text_of(REFUSED[name])


def test_whether_a_number_is_a_tensor_may_be_open() -> None:
    recorder = Recorder()
    number = operand(recorder.code, "n", Form.EITHER)
    with pytest.raises(NotTraceable):
        trace(lambda torch, n: isinstance(n, torch.Tensor), recorder, [number], [INT])  # type: ignore[arg-type]


def test_the_real_torch_is_not_touched() -> None:
    seen: list[object] = []
    text_of(lambda namespace, x: seen.append(namespace) or x)
    assert seen[0] is not torch
