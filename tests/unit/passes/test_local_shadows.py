"""Shadows of cells that become cells of a backward function: which do, and what is left then."""

from __future__ import annotations

import pytest
import torch

from pyrelay.infer import infer
from pyrelay.ir.expr import Call, RefCreate
from pyrelay.ir.module import Module
from pyrelay.ir.normal_form import to_anf
from pyrelay.ir.traverse import post_order
from pyrelay.ir.verify import Stage, verify
from pyrelay.operators.host.shadow import shadow
from pyrelay.passes.simplify.local_shadows import with_local_shadows
from pyrelay.passes.simplify.simplify import simplify
from pyrelay.passes.transforms import expand_transforms
from pyrelay.runtime.compile.evaluator import evaluate
from pyrelay.text.parser import parse_module


def program(text: str) -> Module:
    return to_anf(infer(parse_module(text)))


def shadows(module: Module) -> int:
    nodes = (n for f in module.functions.values() for n in post_order(f))
    return sum(isinstance(n, Call) and n.callee is shadow for n in nodes)


MADE = "let! %run = ref(()); let! %c = ref(%x);"
LOCAL = {
    "one": f"{MADE} let! %s = shadow(%run, %c, 0f64); let! %_ = ref_write(%s, %x); ref_read(%s)",
    "two cells": f"{MADE} let! %d = ref(%x); let! %s = shadow(%run, %c, 1f64);"
    " let! %t = shadow(%run, %d, 2f64); let! %_ = ref_write(%s, %x); ref_read(%s) + ref_read(%t)",
    "in a branch": f"{MADE} if (%x > 0f64) {{ let! %s = shadow(%run, %c, 3f64); ref_read(%s) }}"
    " else { %x }",
    "all in a loop": "let rec %go = fn (%x: float64) -> float64 { if (%x > 5f64) { %x } else {"
    f" {MADE} let! %s = shadow(%run, %c, 2f64); let! %_ = ref_write(%s, ref_read(%s) + %x);"
    " %go(ref_read(%s)) } }; %go(%x)",
}
KEPT = {
    "asked for twice": f"{MADE} let! %s = shadow(%run, %c, 0f64); let! %_ = ref_write(%s, %x);"
    " let! %t = shadow(%run, %c, 0f64); ref_read(%t)",
    "asked for by another name": f"{MADE} let %pair = (%c, %x); let! %s = shadow(%run, %c, 0f64);"
    " let! %_ = ref_write(%s, %x); let! %t = shadow(%run, %pair.0, 0f64); ref_read(%t)",
    "in a loop around which the cell is made": f"{MADE} let rec %go = fn (%n: int64) -> float64 {{"
    " let! %s = shadow(%run, %c, 0f64); let! %_ = ref_write(%s, ref_read(%s) + 1f64);"
    " if (%n < 1i64) { ref_read(%s) } else { %go(%n - 1i64) } }; %go(3i64)",
    "a run that is passed on": f"{MADE} let! %s = shadow(%run, %c, 0f64);"
    " let! %_ = ref_write(%s, %x); @other(%run, %c)",
}
OTHER = """def @other(%run: ref(()), %c: ref(float64)) -> float64 {
    let! %s = shadow(%run, %c, 0f64); ref_read(%s) }"""


@pytest.mark.parametrize("body", LOCAL.values(), ids=LOCAL)
def test_the_shadow_of_a_local_cell_is_one(body: str) -> None:
    module = program(f"def @main(%x: float64) -> float64 {{ {body} }}")
    changed = with_local_shadows(module)
    verify(changed, Stage.ANF)
    assert shadows(module) > shadows(changed) == 0
    for x in (0.5, -0.5):
        assert evaluate(changed, "main", [x]) == evaluate(module, "main", [x])


@pytest.mark.parametrize("body", KEPT.values(), ids=KEPT)
def test_other_shadows_are_found_by_their_run(body: str) -> None:
    module = program(f"def @main(%x: float64) -> float64 {{ {body} }} {OTHER}")
    assert with_local_shadows(module) is module


def test_the_gradient_through_a_cell_that_is_passed_on_is_straight_line() -> None:
    module = program(
        """def @read(%r: ref(float64)) -> float64 {
            let %a = ref_read(%r); let! %_ = ref_write(%r, %a * 2f64); sin(%a) * ref_read(%r) }
        def @f(%x: float64) -> float64 { let! %r = ref(%x); @read(%r) + ref_read(%r) }
        def @main(%x: float64) -> float64 { grad{wrt=(0,)}(@f)(%x) }"""
    )
    derived = expand_transforms(module, "main")
    assert shadows(derived)
    simple = simplify(derived, "main")
    nodes = [n for f in simple.functions.values() for n in post_order(f)]
    assert shadows(simple) == sum(isinstance(n, RefCreate) for n in nodes) == 0
    x = torch.tensor(0.7, dtype=torch.float64, requires_grad=True)
    (x.sin() * x * 2.0 + x * 2.0).backward()
    torch.testing.assert_close(torch.as_tensor(evaluate(simple, "main", [0.7])), x.grad)
