"""Runs of tensor code as region functions."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pyrelay.diagnostics.source import NOWHERE
from pyrelay.ir.dims import Dim
from pyrelay.ir.expr import Binding, Call, Constant, GlobalVar, TensorData, Tuple, Var
from pyrelay.ir.module import Module
from pyrelay.ir.op import Op
from pyrelay.ir.traverse import post_order
from pyrelay.ir.types import TensorType, TupleType, float32
from pyrelay.ir.verify import Stage, verify
from pyrelay.kernels.fusion.closed_functions import close
from pyrelay.kernels.outlined import outlined_of
from pyrelay.runtime.compile.evaluator import evaluate
from tests.unit.kernels.kernels import in_regions, module

X = "%x: Tensor[(N, 8), float32]"


def cut(text: str, *args: Any) -> Module:
    """Return a program in regions, verified, and compare what it gives."""
    before = module(text)
    found = in_regions(before, "main")
    verify(found, Stage.REGIONS)
    result = evaluate(found, "main", args)
    torch.testing.assert_close(result, evaluate(before, "main", args))
    return found


def callees(found: Module, name: str) -> list[str]:
    """Return what a function calls, in order."""
    nodes = post_order(found.functions[name].body)
    calls = [n.callee for n in nodes if isinstance(n, Call)]
    return [c.name for c in calls if isinstance(c, GlobalVar | Op)]


def test_kernels_and_calls_of_torch_are_one_region() -> None:
    found = cut(
        f"def @main[N: Dim]({X}) {{ let %s = sort(tanh(%x) * %x); exp(%s.0) * %x }}",
        torch.randn(3, 8),
    )
    assert outlined_of(found).regions == ("region.1",)
    assert callees(found, "main") == ["region.1"]
    assert callees(found, "region.1") == ["kernel.1", "sort", "kernel.2"]


def test_parts_of_a_size_that_is_shown_as_a_whole_are_computed_for_kernels() -> None:
    found = cut(
        "def @main[A: Dim, B: Dim](%x: Tensor[(A + B,), float32], %y: Tensor[(A,), float32]) {"
        " let %ones = full(size=(A + B,), fill_value=1.0, dtype=float32); tanh(%ones) * %ones }",
        torch.randn(5),
        torch.randn(2),
    )
    assert callees(found, "main") == ["solved_size", "size", "size", "kernel.1"]


def test_what_the_host_computes_is_outside() -> None:
    found = cut(
        f"def @main[N: Dim]({X}, %k: int64) {{ let %a = sort(exp(%x)).0; let %j = %k * 2i64;"
        " let %b = sort(%a * cast(%j, dtype=float32)).0; (%b, %j + 1i64) }",
        torch.randn(3, 8),
        3,
    )
    assert len(outlined_of(found).regions) == 1
    assert sorted(callees(found, "main")) == ["add", "multiply", "region.1"]


def test_a_tuple_that_a_region_would_only_pass_on_is_outside() -> None:
    """The state of an optimizer has its numbers and counts in a tuple of its own."""
    found = cut(
        f"def @main[N: Dim]({X}, %s: (float64, (int64, int64))) {{"
        " let %a = sort(exp(%x)).0; let %b = sort(%a * %x).0;"
        " let %t = (%a, %b); let %u = (%t, %s); (%u, %b) }",
        torch.randn(3, 8),
        (0.5, (1, 2)),
    )
    assert outlined_of(found).regions == ("region.1",)
    region = found.functions["region.1"]
    assert [type(p.ty) for p in region.params] == [TensorType]


def test_a_branch_on_a_result_cuts() -> None:
    found = cut(
        f"def @main[N: Dim]({X}) {{ let %a = sort(exp(%x)).0; let %s = sum(%a);"
        " let %c = if (%s > 0.0f32) { sort(%a).0 } else { %a };"
        " sort(%c * %a + %c).0 }",
        torch.randn(3, 8),
    )
    assert len(outlined_of(found).regions) == 2
    assert "region.1" in callees(found, "main")
    assert "region.2" in callees(found, "main")


def test_sizes_that_only_the_run_knows_cut() -> None:
    found = cut(
        f"def @main[N: Dim]({X}) {{ let %a = sort(exp(%x)).0; let %p = nonzero(%a > 1.0f32);"
        " let %q = sort(%p, dim=0).0; sort(%q + %q * %q, dim=0).0 }",
        torch.randn(3, 8),
    )
    assert "nonzero" in callees(found, "main")
    assert len(outlined_of(found).regions) == 2


def test_a_single_call_is_no_region() -> None:
    found = cut(f"def @main[N: Dim]({X}) {{ exp(%x) * %x }}", torch.randn(3, 8))
    assert outlined_of(found).regions == ()
    assert callees(found, "main") == ["kernel.1"]


def test_equal_regions_are_one_function() -> None:
    found = cut(
        "def @main(%c: bool, %x: Tensor[(4,), float32]) {"
        " if (%c) { sort(exp(%x) * 2.0f32).0 } else { sort(exp(%x) * 2.0f32).0 } }",
        True,
        torch.randn(4),
    )
    assert outlined_of(found).regions == ("region.1",)


def test_loops_keep_their_body_in_a_region() -> None:
    found = cut(
        "def @main(%x: Tensor[(4,), float32], %n: int64) {"
        " let rec %go = fn (%i: int64, %a: Tensor[(4,), float32]) -> Tensor[(4,), float32] {"
        " if (%i == 0i64) { %a } else { %go(%i - 1i64, sort(exp(%a) * 0.1f32).0) } };"
        " %go(%n, %x) }",
        torch.randn(4),
        3,
    )
    assert outlined_of(found).regions == ("region.1",)


def test_a_constant_that_a_tuple_holds_twice_is_passed_once() -> None:
    ty = TensorType((Dim.of(2),), float32)
    tensor = Constant(TensorData(float32, (2,), bytes(8)), ty, span=NOWHERE)
    pair = TupleType((ty, ty))
    var = Var("pair", pair, span=NOWHERE)
    value = Tuple((tensor, tensor), pair, span=NOWHERE)
    closed = close([Binding(var, value)], [], [var], [], NOWHERE)
    assert closed.args == (tensor,)
    assert len(closed.function.params) == 1


LOOKS = {
    "of a value that the region makes": "let %old = @look(%p, %s);",
    "at a view that the region makes": "let %v = reshape(%s, shape=(8,));"
    " let %old = @look(%p, %v);",
    "in a branch": "let %old = if (sum(%s) > 1e6f32) { 0f32 } else { sum(%p) };",
    "at a tuple": "let %old = @both((%p, %s));",
    "before everything": "let %old = @look(%p, %p);",
}


@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS)
def test_a_region_overwrites_a_parameter_after_it_was_looked_at(look: str) -> None:
    vector = "Tensor[(8,), float32]"
    program = module(
        f"def @main(%x: Tensor[(4, 8), float32], %p: {vector}) {{"
        " let %a = sort(exp(%x)).0; let %s = sum(%a * %x, dim=(0,));"
        f" {look} let %_ = overwrite(%p, %p - sort(%s).0); (%old, %s) }}"
        f" def @look(%p: {vector}, %s: {vector}) {{ sum(%p) + sum(%s) }}"
        f" def @both(%t: ({vector}, {vector})) {{ sum(%t.0) + sum(%t.1) }}"
    )
    found = in_regions(program, "main")
    x, p = torch.randn(4, 8), torch.randn(8)
    results = [(evaluate(m, "main", (x, q)), q) for m in (program, found) for q in (p.clone(),)]
    torch.testing.assert_close(results[1], results[0])
    assert not torch.equal(results[0][1], p)


PAIR = "(Tensor[(8,), float32], Tensor[(8,), float32])"
BEFORE = {
    "the tuple that they are in": "let %old = @look(%t, %g);",
    "a result that shows one": "let %v = @part(%t); let %old = sum(tanh(%v) * %g);",
    "data that show one": "let %d = @kept(%t, %g); let %old = @found(%d, %g);",
    "a value of two arms": "let %v = if (sum(%g) > 0f32) { %t.0 } else { %t.1 };"
    " let %old = sum(tanh(%v) * %g);",
    "values at other places": "let %v = @part(%t); let %old = tanh(flip(%v, dims=(0,)) * %g);",
}


@pytest.mark.parametrize("look", BEFORE.values(), ids=BEFORE)
def test_parameters_are_overwritten_after_what_reads(look: str) -> None:
    program = module(
        "type Kept { Kept(Tensor[(8,), float32]), Nothing }"
        f" def @main(%x: Tensor[(8,), float32], %t: {PAIR}) {{ let %g = tanh(%x); {look}"
        " let %_ = overwrite(%t.0, %t.0 - %g); let %_ = overwrite(%t.1, %t.1 - %g); (%old, %g) }"
        f" def @look(%t: {PAIR}, %g: Tensor[(8,), float32]) {{ sum(%t.0) + sum(%t.1 * %g) }}"
        f" def @part(%t: {PAIR}) {{ %t.1 }}"
        f" def @kept(%t: {PAIR}, %g: Tensor[(8,), float32]) {{"
        " if (sum(%g) > 1e6f32) { Nothing() } else { Kept(%t.0) } }"
        " def @found(%k: Kept, %g: Tensor[(8,), float32]) {"
        " match (%k) { Kept(%v) => { sum(%v * %g) }, Nothing() => { 0f32 } } }"
    )
    found = in_regions(program, "main")
    x, p = torch.randn(8), (torch.randn(8), torch.randn(8))
    results = [
        (evaluate(m, "main", (x, q)), q)
        for m in (program, found)
        for q in (tuple(v.clone() for v in p),)
    ]
    torch.testing.assert_close(results[1], results[0])
    assert not torch.equal(results[0][1][0], p[0])
