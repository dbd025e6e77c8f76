"""Updates in place: made where they cannot be observed, and nowhere else."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pyrelay.infer import infer
from pyrelay.ir.module import Module
from pyrelay.ir.normal_form import to_anf
from pyrelay.kernels.fusion.decompose import decompose
from pyrelay.passes.normalise.flavours import with_flavours
from pyrelay.passes.rewrites.in_place import update_in_place
from pyrelay.runtime.compile.evaluator import evaluate
from pyrelay.runtime.host import compile_module
from pyrelay.runtime.values.values import Cell
from pyrelay.text.parser import parse_module
from pyrelay.text.printer import to_text

CPU = torch.device("cpu")
MODEL = "ref((Tensor[(3, 3), float32], Tensor[(3,), float32]))"
WRITE = "ref_write(%m, (sgd_step(%p.0, %g, 0.5f32), sgd_step(%p.1, %b, 0.5f32)))"


def program(body: str, others: str = "") -> Module:
    """Return a program that updates one of two models, `%m` and `%n`, by `%x` and `%y`."""
    data = "%x: Tensor[(4, 3), float32], %y: Tensor[(4, 3), float32]"
    source = f"def @f(%m: {MODEL}, %n: {MODEL}, {data}) {{ {body} }} {others}"
    return to_anf(infer(parse_module(source)))


def values() -> list[Any]:
    torch.manual_seed(0)
    models = [Cell((torch.randn(3, 3), torch.randn(3))) for _ in range(2)]
    return [*models, torch.randn(4, 3), torch.randn(4, 3)]


def is_done(module: Module) -> bool:
    return "descend_in_place(" in to_text(update_in_place(module))


def check(module: Module) -> None:
    """Compare results and models after a run, before the pass and after it, evaluated and run."""
    expected = values()
    result = evaluate(module, "f", expected, CPU)
    changed = update_in_place(module)
    for runs in (
        lambda args: evaluate(changed, "f", args, CPU),
        lambda args: compile_module(with_flavours(changed), "f", CPU)(*args),
    ):
        given = values()
        torch.testing.assert_close(runs(given), result)
        for cell, wanted in zip(given[:2], expected[:2], strict=True):
            torch.testing.assert_close(cell.value, wanted.value)


DONE = {
    "separate gradients": "let %p = ref_read(%m); let %g = tanh(%p.0);"
    f" let %b = sum(%y, dim=(0,)); {WRITE}; sum(%x)",
    "read again afterwards": "let %p = ref_read(%m); let %g = tanh(%p.0);"
    f" let %b = sum(%y, dim=(0,)); {WRITE}; sum(ref_read(%m).1)",
    "an old value that was computed with": "let %p = ref_read(%m); let %old = sum(%p.1);"
    f" let %g = tanh(%p.0); let %b = sum(%y, dim=(0,)); {WRITE}; %old",
    "one arm": "if (sum(%x) > 0f32) { let %p = ref_read(%m); let %g = tanh(%p.0);"
    f" let %b = sum(%y, dim=(0,)); {WRITE}; 1f32 }} else {{ sum(ref_read(%m).1) }}",
    "a loop": "let rec %go = fn (%i: int64) -> float32 { if (%i == 0i64) { sum(ref_read(%m).1) }"
    " else { let %p = ref_read(%m); let %g = tanh(%p.0); let %b = sum(%y, dim=(0,));"
    f" {WRITE}; %go(%i - 1i64) }} }}; %go(3i64)",
    "only a part": "let %p = ref_read(%m); let %g = tanh(%p.0);"
    " ref_write(%m, (sgd_step(%p.0, %g, 0.5f32), %p.1)); sum(%x)",
}


@pytest.mark.parametrize("body", DONE.values(), ids=DONE.keys())
def test_updates_that_nobody_can_tell_are_made_in_place(body: str) -> None:
    module = program(body)
    assert is_done(module)
    check(module)


PRODUCT = "let %p = ref_read(%m); let %g = matmul(transpose(%y, dim0=0, dim1=1), %x);"


def test_a_gradient_that_is_a_product_is_multiplied_in() -> None:
    module = program(f"{PRODUCT} let %b = sum(%y, dim=(0,)); {WRITE}; sum(%x)")
    assert "matmul(" not in to_text(update_in_place(module))
    check(module)


def test_no_kernel_goes_over_a_table() -> None:
    params = "%m: ref((Tensor[(8, 3), float32],)), %x: Tensor[(4, 3), float32]"
    body = """let %p = ref_read(%m); let %g = embedding_grad(%x, %i, num_embeddings=Dim(8));
        ref_write(%m, (sgd_step(%p.0, %g, 0.5f32),)); sum(%x)"""
    text = f"def @f({params}, %i: Tensor[(4,), int64]) {{ {body} }}"
    module = to_anf(infer(parse_module(text)))
    changed = update_in_place(module)
    written = decompose(changed, "f")
    names = to_text(written)
    assert "add_rows(" in names
    assert "embedding_grad(" not in names
    assert "overwrite(" not in names
    tables: list[torch.Tensor] = []
    for program in (module, changed, written):
        torch.manual_seed(0)
        cell = Cell((torch.randn(8, 3),))
        evaluate(program, "f", [cell, torch.randn(4, 3), torch.tensor([1, 4, 1, 0])], CPU)
        tables.append(cell.value[0])
    for table in tables[1:]:
        torch.testing.assert_close(table, tables[0])


def test_a_product_with_another_use_is_computed() -> None:
    module = program(f"{PRODUCT} let %b = sum(%g, dim=(0,)); {WRITE}; sum(%x)")
    assert is_done(module)
    assert "matmul(" in to_text(update_in_place(module))
    check(module)


def test_a_product_of_parameters_is_computed_before_any_is_moved() -> None:
    module = program(
        "let %p = ref_read(%m); let %g = matmul(%p.0, %p.0);"
        f" let %b = sum(%y, dim=(0,)); {WRITE}; sum(%x)"
    )
    assert is_done(module)
    assert "matmul(" in to_text(update_in_place(module))
    check(module)


KEPT = {
    "read afterwards": "let %p = ref_read(%m); let %g = tanh(%p.0); let %b = sum(%y, dim=(0,));"
    f" {WRITE}; sum(%p.1)",
    "a view read afterwards": "let %p = ref_read(%m); let %v = transpose(%p.0, dim0=0, dim1=1);"
    f" let %g = tanh(%p.0); let %b = sum(%y, dim=(0,)); {WRITE}; sum(%v)",
    "the result": "let %p = ref_read(%m); let %g = tanh(%p.0); let %b = sum(%y, dim=(0,));"
    f" {WRITE}; %p.1",
    "a field of the result": "let %p = ref_read(%m); let %g = tanh(%p.0);"
    f" let %b = sum(%y, dim=(0,)); {WRITE}; (%p.1, sum(%x))",
    "captured": "let %p = ref_read(%m); let %h = fn () -> float32 { sum(%p.1) };"
    f" let %g = tanh(%p.0); let %b = sum(%y, dim=(0,)); {WRITE}; %h()",
    "kept in a cell": "let %p = ref_read(%m); let %kept = ref(%p.1); let %g = tanh(%p.0);"
    f" let %b = sum(%y, dim=(0,)); {WRITE}; sum(ref_read(%kept))",
    "chosen by a condition": "let %p = ref_read(%m); let %c = if (sum(%x) > 0f32) { %p.1 }"
    f" else {{ sum(%y, dim=(0,)) }}; let %g = tanh(%p.0); let %b = sum(%y, dim=(0,));"
    f" {WRITE}; sum(%c)",
    "the gradient is a parameter": "let %p = ref_read(%m); let %g = %p.0; let %b = %p.1;"
    f" {WRITE}; sum(%x)",
    "the gradient is a view of one": "let %p = ref_read(%m);"
    " let %g = transpose(%p.0, dim0=0, dim1=1); let %b = sum(%y, dim=(0,));"
    f" {WRITE}; sum(%x)",
    "two rates": "let %p = ref_read(%m); let %g = tanh(%p.0); let %b = sum(%y, dim=(0,));"
    " ref_write(%m, (sgd_step(%p.0, %g, 0.5f32), sgd_step(%p.1, %b, 0.25f32))); sum(%x)",
    "a rate of the run": "let %p = ref_read(%m); let %g = tanh(%p.0); let %b = sum(%y, dim=(0,));"
    " let %r = sum(%x); ref_write(%m, (sgd_step(%p.0, %g, %r), sgd_step(%p.1, %b, %r))); %r",
    "a part that stays as it was before another write": "let %p = ref_read(%m);"
    f" let %g = tanh(%p.0); let %b = sum(%y, dim=(0,)); {WRITE};"
    " ref_write(%m, (sgd_step(ref_read(%m).0, %g, 0.5f32), %p.1)); sum(%x)",
    "another model": "let %p = ref_read(%n); let %g = tanh(%p.0); let %b = sum(%y, dim=(0,));"
    f" {WRITE}; sum(%x)",
    "a step that is used twice": "let %p = ref_read(%m); let %g = tanh(%p.0);"
    " let %b = sum(%y, dim=(0,)); let %s = sgd_step(%p.1, %b, 0.5f32);"
    " ref_write(%m, (sgd_step(%p.0, %g, 0.5f32), %s)); sum(%s)",
    "another write that is no descent": "let %p = ref_read(%m); let %g = tanh(%p.0);"
    f" let %b = sum(%y, dim=(0,)); {WRITE}; ref_write(%n, ref_read(%m)); sum(%x)",
    "written between": "let %p = ref_read(%m); let %g = tanh(%p.0); let %b = sum(%y, dim=(0,));"
    f" let %q = ref_read(%m); {WRITE};"
    " ref_write(%m, (sgd_step(%q.0, %g, 0.5f32), sgd_step(%q.1, %b, 0.5f32))); sum(%x)",
}


@pytest.mark.parametrize("body", KEPT.values(), ids=KEPT.keys())
def test_other_updates_make_new_tensors(body: str) -> None:
    module = program(body)
    assert not is_done(module)
    check(module)


VECTOR = "Tensor[(3,), float32]"
CALLED = (
    f"let %p = ref_read(%m); let %g = tanh(%p.0); let %r = @g(%p.1, %y); let %b = %r * 2f32;"
    f" {WRITE}; sum(%r)"
)
UNSHARED = {
    "new values": "%v * 2f32",
    "a recursion": "if (sum(%y) > 1f32) { @g(%v, %y / 2f32) + %v } else { %v * 2f32 }",
    "another argument": 'index(%y, (0,), spec=(("int", 0),))',
    "a view that is read": "sum(reshape(%v, shape=(3, 1)), dim=(1,))",
    "another function": "@h(%v) * 2f32",
}
SHARED = {
    "the argument": "%v",
    "a view": "reshape(%v, shape=(3,))",
    "an argument of a recursion": "if (sum(%y) > 1f32) { @g(%v, %y / 2f32) } else { %v }",
    "by another function": "@h(%v)",
    "an argument that is kept": "let %kept = ref(%v); ref_read(%kept) * 2f32",
    "an argument that is captured": "let %k = fn () -> float32 { sum(%v) }; %v * %k()",
}


@pytest.mark.parametrize(
    ("body", "is_shared"),
    [*((b, False) for b in UNSHARED.values()), *((b, True) for b in SHARED.values())],
    ids=[*UNSHARED, *SHARED],
)
def test_a_function_may_share_what_it_is_passed(body: str, is_shared: bool) -> None:
    module = program(
        CALLED,
        f"def @g(%v: {VECTOR}, %y: Tensor[(4, 3), float32]) -> {VECTOR} {{ {body} }}"
        f" def @h(%v: {VECTOR}) -> {VECTOR} {{ reshape(%v, shape=(3,)) }}",
    )
    assert is_done(module) is not is_shared
    check(module)


def test_a_function_that_may_write_comes_between() -> None:
    module = program(
        "let %p = ref_read(%m); let %g = tanh(%p.0); let %b = sum(%y, dim=(0,)); let %k = @g(%m);"
        f" {WRITE}; %k",
        f"def @g(%m: {MODEL}) -> float32 {{ let %p = ref_read(%m);"
        " ref_write(%m, (sgd_step(%p.0, tanh(%p.0), 0.5f32), sgd_step(%p.1, tanh(%p.1), 0.5f32)));"
        " 1f32 }",
    )
    assert not is_done(module)
    check(module)


def test_a_model_that_the_program_makes_keeps_its_new_tensors() -> None:
    body = (
        "let %made = ref((zeros(size=(3, 3)), zeros(size=(3,)))); let %p = ref_read(%made);"
        " let %g = tanh(%p.0); let %b = sum(%y, dim=(0,));"
        f" {WRITE.replace('%m', '%made')}; sum(ref_read(%made).1)"
    )
    module = program(body)
    assert not is_done(module)
    check(module)
