"""Gradients of tables that are made of rows become one, of all of their rows."""

from __future__ import annotations

import pytest
import torch

from pyrelay.infer import infer
from pyrelay.ir.module import Module
from pyrelay.ir.normal_form import to_anf
from pyrelay.passes.rewrites.row_gradients import gather_rows
from pyrelay.passes.simplify.simplify import simplify
from pyrelay.runtime.compile.evaluator import evaluate
from pyrelay.text.parser import parse_module
from pyrelay.text.printer import to_text

CPU = torch.device("cpu")
TABLE = "Tensor[(200, 3), float32]"
PARAMS = f"""%t: {TABLE}, %x: Tensor[(4, 3), float32], %i: Tensor[(4,), int64],
    %v: Tensor[(3,), float32], %s: float32"""
ZERO = "zeros(size=(200, 3))"
ROW = 'spec=(("int", 0),)'
GRAD = "embedding_grad(%x, %i, num_embeddings=200)"


def programs(gradient: str) -> tuple[Module, Module]:
    """Return a step against a gradient, before and after the pass."""
    text = f"def @f({PARAMS}) {{ sgd_step(%t, {gradient}, 0.1f32) }}"
    before = to_anf(infer(parse_module(text)))
    return before, simplify(gather_rows(before, "f"), "f")


ROWS = {
    "rows added to zeros": f"index_accumulate({ZERO}, (%i,), %x, {ROW})",
    "a single row": f"index_accumulate({ZERO}, (3i64,), %v, {ROW})",
    "a row from the end": f"index_accumulate({ZERO}, (-3i64,), %v, {ROW})",
    "rows added to rows": f"index_accumulate({GRAD}, (%i,), %x, {ROW})",
    "two places": f"{GRAD} + {GRAD}",
    "scaled": f"-(({GRAD} + index_accumulate({ZERO}, (3i64,), %v, {ROW})) * %s / 2.0f32)",
    "elements": f"scatter_add({ZERO}, stack((%i, 199i64 - %i, 199i64 - %i), dim=1), %x, dim=0)",
    "elements of the flat table": "reshape(index_accumulate(zeros(size=(600,)), (%i - 5i64,), "
    f"sum(%x, dim=(1,)), {ROW}), shape=(200, 3))",
    "scattered columns": f"scatter_add({ZERO}, "
    "expand(unsqueeze(%i, dim=1), size=(4, 3)), %x, dim=0)",
}


@pytest.mark.parametrize("gradient", ROWS.values(), ids=ROWS)
def test_a_gradient_of_rows_is_one_of_all_of_them(gradient: str) -> None:
    before, after = programs(gradient)
    text = to_text(after)
    assert text.count("embedding_grad(") == 1
    assert not any(f"{name}(" in text for name in ("index_accumulate", "scatter_add", "zeros"))
    args = (
        torch.randn(200, 3),
        torch.randn(4, 3),
        torch.tensor([1, 4, 1, 199]),
        torch.randn(3),
        torch.tensor(0.5),
    )
    torch.testing.assert_close(evaluate(after, "f", args, CPU), evaluate(before, "f", args, CPU))


OTHERS = {
    "a dense part": f"{GRAD} + (%t * 2.0f32)",
    "a mask": f"index_accumulate({ZERO}, (%t > 0.0f32,), 1.0f32, {ROW})",
    "a row that is broadcast": f"index_accumulate({ZERO}, (%i,), %v, {ROW})",
    "columns": f'index_accumulate({ZERO}, (1i64,), 1.0f32, spec=(("slice", None, None, None), '
    '("int", 0)))',
}


@pytest.mark.parametrize("gradient", OTHERS.values(), ids=OTHERS)
def test_other_gradients_stay(gradient: str) -> None:
    before, after = programs(gradient)
    assert to_text(gather_rows(before, "f")) == to_text(before)
    assert "sgd_step" in to_text(after)


ARGS = (
    torch.randn(200, 3, generator=torch.Generator().manual_seed(0)),
    torch.randn(4, 3, generator=torch.Generator().manual_seed(1)),
    torch.tensor([1, 4, 1, 199]),
    torch.randn(3, generator=torch.Generator().manual_seed(2)),
    torch.tensor(0.5),
)
CLIPPED = {
    "the gradient of one place": GRAD,
    "of several": f"{GRAD} + index_accumulate({ZERO}, (3i64,), %v, {ROW})",
}


@pytest.mark.parametrize("gradient", CLIPPED.values(), ids=CLIPPED)
def test_a_gradient_clipped_by_its_norm_is_rows(gradient: str) -> None:
    text = f"""def @f({PARAMS}) {{ let %g = {gradient}; let %n = norm(%g);
        let %h = %g * %s; (sgd_step(%t, %h / %n, 0.1f32), %n, norm(%h)) }}"""
    before = to_anf(infer(parse_module(text)))
    after = simplify(gather_rows(before, "f"), "f")
    assert "norm(" not in to_text(after)
    assert to_text(after).count("embedding_grad(") == 1
    torch.testing.assert_close(evaluate(after, "f", ARGS, CPU), evaluate(before, "f", ARGS, CPU))


def test_the_norm_of_rows_that_cancel_each_other_is_zero() -> None:
    text = f"""def @f({PARAMS}) {{ let %g = {GRAD} + -{GRAD}; let %n = norm(%g);
        (sgd_step(%t, %g * %n, 0.1f32), %n) }}"""
    after = simplify(gather_rows(to_anf(infer(parse_module(text))), "f"), "f")
    assert "norm(" not in to_text(after)
    _, found = evaluate(after, "f", ARGS, CPU)
    assert 0.0 <= found < 1e-5


NORMS = {
    "of a dense gradient": f"let %g = {GRAD} + %t; (sgd_step(%t, %g, 0.1f32), norm(%g))",
    "of another order": f"let %g = {GRAD}; (sgd_step(%t, %g, 0.1f32), norm(%g, p=1))",
    "of rows": f"let %g = {GRAD}; (sgd_step(%t, %g, 0.1f32), norm(%g, dim=(1,)))",
    "of no gradient": f"let %g = {GRAD}; (sgd_step(%t, %g, 0.1f32), norm(%t))",
}


@pytest.mark.parametrize("body", NORMS.values(), ids=NORMS)
def test_other_norms_stay(body: str) -> None:
    before = to_anf(infer(parse_module(f"def @f({PARAMS}) {{ {body} }}")))
    assert to_text(gather_rows(before, "f")) == to_text(before)


def test_a_small_table_stays_dense() -> None:
    text = f"""def @f(%t: Tensor[(4, 3), float32], %v: Tensor[(3,), float32]) {{
        sgd_step(%t, index_accumulate(zeros(size=(4, 3)), (1i64,), %v, {ROW}), 0.1f32)
    }}"""
    module = to_anf(infer(parse_module(text)))
    assert gather_rows(module, "f") is module
