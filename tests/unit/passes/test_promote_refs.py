"""Cells that become values: which do, and what the code is then."""

from __future__ import annotations

import pytest
import torch

from pyrelay.infer import infer
from pyrelay.ir.equality import alpha_equal
from pyrelay.ir.expr import RefCreate
from pyrelay.ir.module import Module
from pyrelay.ir.normal_form import to_anf
from pyrelay.ir.traverse import post_order
from pyrelay.ir.verify import Stage, verify
from pyrelay.passes.normalise.flavours import with_flavours
from pyrelay.passes.simplify.promote_refs import promote_refs
from pyrelay.passes.transforms import expand_transforms
from pyrelay.runtime.compile.evaluator import evaluate
from pyrelay.runtime.host import compile_module
from pyrelay.text.parser import parse_module
from tests.unit.runtime.host.programs import CPU, assert_same

OTHER = """
def @other(%r: ref(int64)) -> int64 { let! %_ = ref_write(%r, ref_read(%r) + 1); ref_read(%r) }
"""


def prepared(body: str) -> Module:
    """Return a program in A-normal form whose `main` has a body."""
    return to_anf(infer(parse_module(f"{OTHER}def @main(%n: int64) {{ {body} }}")))


def cells(module: Module) -> int:
    """Count where a program makes cells."""
    return sum(isinstance(n, RefCreate) for f in module.functions.values() for n in post_order(f))


def check(body: str, left: int, *args: int) -> Module:
    """Check that the program means the same, and how many cells it still makes."""
    module = prepared(body)
    changed = promote_refs(module)
    verify(changed, Stage.ANF)
    final = with_flavours(changed)
    verify(final, Stage.FLAVOURED)
    assert cells(changed) == left
    for n in args or (0, 3):
        expected = evaluate(module, "main", [n])
        assert_same(evaluate(changed, "main", [n]), expected)
        assert_same(compile_module(final, "main", CPU)(n), expected)
    return changed


@pytest.mark.parametrize(
    "body",
    [
        "let! %r = ref(%n); let! %_ = ref_write(%r, ref_read(%r) * 2); ref_read(%r) + 1",
        # In arms, in arms of arms, and in the arms of a match.
        "let! %r = ref(%n); let %a = if (%n < 1) { let! %_ = ref_write(%r, 5); 1 } else { 2 }; "
        "(%a, ref_read(%r))",
        "let! %r = ref(%n); let! %s = ref(1); "
        "let %a = if (%n < 1) { ref_write(%r, 7) } else { "
        "if (%n < 5) { ref_write(%s, ref_read(%r)) } else { ref_write(%r, 9) } }; "
        "(ref_read(%r), ref_read(%s))",
        "let! %r = ref(%n); let %a = match (%n) { 0 => { ref_write(%r, 1) }, _ => { () } }; "
        "ref_read(%r)",
        "let! %r = ref(%n); match (%n) { 0 => { 1 }, _ if { ref_read(%r) < 9 } => { ref_read(%r) },"
        " _ => { 3 } }",
        # Made in an arm, and in a loop.
        "if (%n < 1) { let! %r = ref(4); let! %_ = ref_write(%r, 5); ref_read(%r) } else { 0 }",
        "let rec %f = fn (%i: int64, %a: int64) -> int64 { if (%i < 1) { %a } else { "
        "let! %r = ref(%a); let! %_ = ref_write(%r, ref_read(%r) + %i); "
        "%f(%i - 1, ref_read(%r)) } }; %f(%n, 0)",
        # In functions that are called, and in those that these call.
        "let! %r = ref(%n); let %f = fn (%a: int64) { let! %_ = ref_write(%r, ref_read(%r) + %a); "
        "%a * 2 }; let %g = fn (%a: int64) { %f(%a) + %f(%a) }; (%g(3), ref_read(%r), %f(1))",
        "let! %r = ref(1); let! %s = ref(0); let rec %even = fn (%i: int64) -> () { "
        "if (%i < 1) { () } else { let! %_ = ref_write(%r, ref_read(%r) * 2); %odd(%i - 1) } } "
        "and %odd = fn (%i: int64) -> () { if (%i < 1) { ref_write(%s, 1) } else { %even(%i - 1) } "
        "}; let! %_ = %even(%n); (ref_read(%r), ref_read(%s))",
        "let! %r = ref(0); let rec %down = fn (%i: int64) -> int64 { if (%i < 1) { ref_read(%r) } "
        "else { let! %_ = ref_write(%r, ref_read(%r) + %i); let %b = %down(%i - 1); "
        "let! %_ = ref_write(%r, ref_read(%r) * 2); %b + ref_read(%r) } }; "
        "(%down(%n), ref_read(%r))",
    ],
)
def test_a_cell_that_is_not_passed_around_is_a_value(body: str) -> None:
    changed = check(body, 0)
    assert alpha_equal(promote_refs(changed), changed)


@pytest.mark.parametrize(
    "body",
    [
        "let! %r = ref(%n); (@other(%r), ref_read(%r))",
        "let! %r = ref(%n); let %p = (%r, 1); let! %_ = ref_write(%p.0, 5); ref_read(%r)",
        "let! %r = ref(%n); let %s = if (%n < 1) { %r } else { ref(2) }; ref_read(%s)",
        "let! %r = ref(%n); let %f = fn () { ref_read(%r) }; let %p = (%f, 1); let %g = %p.0; %g()",
        "let! %r = ref(%n); match (%n) { _ if { let! %_ = ref_write(%r, 3); False } => { 1 }, "
        "_ => { ref_read(%r) } }",
        "let! %r = ref(%n); let %f = fn () { let! %_ = ref_write(%r, 3); False }; "
        "match (%n) { _ if { %f() } => { 1 }, _ => { ref_read(%r) } }",
    ],
)
def test_a_cell_that_goes_elsewhere_stays(body: str) -> None:
    module = prepared(body)
    assert promote_refs(module) is module
    check(body, cells(module))


def test_a_loop_takes_its_cells_along_in_constant_stack() -> None:
    body = """let! %r = ref(0); let rec %loop = fn (%i: int64) -> () {
      if (%i < 1) { () } else {
        let %_ = if (mod(%i, 3) == 0) { ref_write(%r, ref_read(%r) + %i) } else { () };
        %loop(%i - 1) } };
    let! %_ = %loop(%n); ref_read(%r)"""
    changed = check(body, 0, 10)
    host = compile_module(with_flavours(changed), "main", CPU)
    assert "while True" in host.source
    assert host(30_000) == sum(range(0, 30_001, 3))


def test_many_branches_and_cells() -> None:
    steps = " ".join(
        f"let %_ = if (%n < {i}) {{ ref_write(%a, ref_read(%b) + {i}) }} "
        f"else {{ ref_write(%b, ref_read(%a) - {i}) }};"
        for i in range(300)
    )
    deep = "ref_write(%a, 1)"
    for i in range(300):
        deep = f"if (%n == {i}) {{ ref_write(%b, {i}) }} else {{ {deep} }}"
    ends = "(ref_read(%a), ref_read(%b))"
    body = f"let! %a = ref(1); let! %b = ref(2); {steps} let %_ = {deep}; {ends}"
    check(body, 0, 5, 1000)


def test_a_gradient_needs_no_shadow_where_a_cell_is_a_value() -> None:
    text = """def @f(%x: float64, %n: int64) -> float64 {
      let! %r = ref(%x); let rec %loop = fn (%i: int64) -> () {
        if (%i < 1) { () }
        else { let! %_ = ref_write(%r, sin(ref_read(%r)) * %x); %loop(%i - 1) } };
      let! %_ = %loop(%n); ref_read(%r) }
    def @main(%x: float64, %n: int64) { grad{wrt=(0,)}(@f)(%x, %n) }"""
    module = expand_transforms(promote_refs(to_anf(infer(parse_module(text)))))
    assert cells(module) == 0
    x = torch.tensor(0.7, dtype=torch.float64, requires_grad=True)
    y = x
    for _ in range(5):
        y = y.sin() * x
    found = evaluate(module, "main", [x.detach(), 5])
    torch.testing.assert_close(found, torch.autograd.grad(y, x)[0])
