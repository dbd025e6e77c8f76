"""Tangents of random programs are finite differences, and pullbacks their transposes."""

from __future__ import annotations

from typing import Any, Final

import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pyrelay.infer import infer
from pyrelay.ir.module import Module
from pyrelay.ir.normal_form import to_anf
from pyrelay.ir.verify import Stage, verify
from pyrelay.passes.transforms import expand_transforms
from pyrelay.runtime.compile.evaluator import evaluate
from pyrelay.text.parser import parse_module
from pyrelay.text.printer import to_text
from tests.strategies import Program, programs

PARAMS: Final = (
    "%a: Tensor[(N, M), float64], %v: Tensor[(M,), float64], %s: float64, %k: int64, %b: bool"
)
DIRECTION: Final = "%da: Tensor[(N, M), float64], %dv: Tensor[(M,), float64], %ds: float64"
OF: Final = "wrt=(0, 1, 2), single=False"
GIVEN: Final = "%a, %v, %s, %k, %b"
TEXT: Final = f"""
def @slopes[N: Dim, M: Dim]({PARAMS}) {{ grad{{{OF}}}(@main)({GIVEN}) }}
def @pushed[N: Dim, M: Dim]({PARAMS}, {DIRECTION}) {{
  jvp{{{OF}}}(@main)(({GIVEN}), (%da, %dv, %ds))
}}
def @slopes_pushed[N: Dim, M: Dim]({PARAMS}, {DIRECTION}) {{
  let %pushed = jvp{{{OF}}}(@slopes)(({GIVEN}), (%da, %dv, %ds));
  %pushed.1
}}
def @slopes_pulled[N: Dim, M: Dim]({PARAMS}, {DIRECTION}) {{
  let %pair = vjp{{{OF}}}(@slopes)({GIVEN});
  let %pull = %pair.1;
  %pull((%da, %dv, %ds))
}}
"""
HALF: Final = settings(max_examples=settings().max_examples // 2)


def derived(program: Program) -> Module:
    """Return the program with its derivatives, expanded."""
    bare = to_text(program.module).replace(", typed]", "]", 1)
    module = expand_transforms(to_anf(infer(parse_module(bare + TEXT))))
    verify(module, Stage.DERIVED)
    return module


def direction(program: Program, seed: int) -> list[torch.Tensor]:
    """Return a direction in the three float inputs."""
    generator = torch.Generator().manual_seed(seed)
    inputs = program.arguments()[:3]
    return [torch.randn(x.shape, generator=generator, dtype=x.dtype) for x in inputs]


def along(program: Program, step: float, way: list[torch.Tensor]) -> torch.Tensor:
    """Return the central difference of the program along a direction."""
    inputs = program.arguments()
    ends = [
        evaluate(
            program.module,
            "main",
            [*(x + t * d for x, d in zip(inputs[:3], way, strict=True)), *inputs[3:]],
        )
        for t in (step, -step)
    ]
    return (ends[0] - ends[1]) / (2.0 * step)


def dot(xs: Any, ys: Any) -> torch.Tensor:
    return torch.stack([(x * y).sum() for x, y in zip(xs, ys, strict=True)]).sum()


def assert_tangent(program: Program, seed: int) -> None:
    """Compare the tangent with a difference, where two of these show that the program is smooth,
    and with the gradient."""
    way, module = direction(program, seed), derived(program)
    value, tangent = evaluate(module, "pushed", [*program.arguments(), *way])
    torch.testing.assert_close(value, evaluate(program.module, "main", program.arguments()))
    slopes = evaluate(module, "slopes", program.arguments())
    torch.testing.assert_close(dot(slopes, way), tangent, rtol=1e-8, atol=1e-10)
    wide, narrow = (along(program, step, way) for step in (2e-5, 1e-5))
    assume(torch.allclose(wide, narrow, rtol=1e-6, atol=1e-8))
    torch.testing.assert_close(tangent, narrow, rtol=1e-5, atol=1e-7)


def assert_transpose(program: Program, seed: int) -> None:
    """Compare `<w, jvp v>` with `<vjp w, v>`, for the gradient of the program."""
    one, other = direction(program, seed), direction(program, seed + 1)
    module = derived(program)
    pushed = evaluate(module, "slopes_pushed", [*program.arguments(), *one])
    pulled = evaluate(module, "slopes_pulled", [*program.arguments(), *other])
    torch.testing.assert_close(dot(other, pushed), dot(pulled, one), rtol=1e-7, atol=1e-9)


@given(programs(differentiable=True), st.integers(0, 2**16))
def test_a_tangent_is_what_finite_differences_find(program: Program, seed: int) -> None:
    assert_tangent(program, seed)


@HALF
@given(programs(differentiable=True, effects=True), st.integers(0, 2**16))
def test_a_tangent_flows_through_cells(program: Program, seed: int) -> None:
    assert_tangent(program, seed)


@HALF
@given(programs(5, differentiable=True, effects=True), st.integers(0, 2**16))
def test_a_pullback_is_the_transpose_of_the_tangent(program: Program, seed: int) -> None:
    assert_transpose(program, seed)
