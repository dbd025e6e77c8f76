"""The kernels of networks, with bytes and operations, as the user reads them."""

from __future__ import annotations

import pytest

from pyrelay import Dim, Float, Int, Tensor, bfloat16, options, relay
from pyrelay.decorators import RelayFunction
from pyrelay.ir.expr import Call, GlobalVar
from pyrelay.ir.traverse import post_order
from pyrelay.ir.types import UNIT
from pyrelay.kernels.outlined import outlined_of
from pyrelay.kernels.reading import straight_line
from pyrelay.text.parser import parse_module
from tests.golden import Golden
from tests.unit.kernels import steps
from tests.unit.kernels.recognised import checked

N, M = Dim("N"), Dim("M")
PROGRAMS = ("lenet_step", "mlp_step", "lstm_step", "block_grad", "tree_state")


def explained(function: RelayFunction[..., object]) -> str:
    """Return what kernels a function becomes."""
    with options(lowering="triton"):
        return function.explain()


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_kernels_of_a_network_are_these(name: str, golden: Golden) -> None:
    golden(f"{name}.txt", explained(getattr(steps, name)))


def test_a_program_is_shown_with_what_its_kernels_cost() -> None:
    text = steps.lenet_step.show("regions")
    assert "/* contraction; reads " in text
    assert "def @`region.1`" in text
    assert parse_module(text).functions.keys() >= {"lenet_step", "region.1", "kernel.1"}


def test_a_whole_training_step_is_one_region() -> None:
    program = steps.lenet_step.runner.program
    cut = program.regions
    assert outlined_of(cut).regions == ("region.1",)
    outside = [n for n in post_order(cut.functions["lenet_step"].body) if isinstance(n, Call)]
    assert [c.callee.name for c in outside if isinstance(c.callee, GlobalVar)] == ["region.1"]
    assert len(outside) == 1
    inside = straight_line(cut.functions["region.1"].body)[0]
    calls = [b.var.ty == UNIT for b in inside if isinstance(b.value, Call)]
    assert calls == sorted(calls)
    assert sum(calls) == 3
    for group in outlined_of(cut).groups.values():
        checked(group)


@relay
def squares(w: Tensor[bfloat16, (10, 4)], i: Tensor[Int, (N,)]) -> Tensor[bfloat16, ()]:
    return (w[i] * w[i]).sum()


@relay
def scattered(w: Tensor[bfloat16, (10, 4)], i: Tensor[Int, (N,)]) -> Tensor[bfloat16, (10, 4)]:
    return relay.grad(squares)(w, i)


def test_what_has_no_text_is_said_with_why() -> None:
    head, _, tail = explained(scattered).partition("kernels that run as calls of torch\n")
    assert "scatter" in head
    assert set(tail.splitlines()) == {
        "  kernel.2: bfloat16 is not added atomically",
        "  kernel.3: bfloat16 is not added atomically",
        "",
        "gradients save",
        "  squares: 16*N B",
    }
    assert "as calls of torch" not in explained(steps.lstm_step)


@relay
def normal(x: Tensor[Float, (N, M)]):
    return relay.softmax(x, dim=-1)


@relay
def normal_of_vocabulary(x: Tensor[Float, (N, 50257)]):
    return relay.softmax(x, dim=-1)


@relay
def totals(x: Tensor[Float, (N, 50257)]):
    return x.sum(dim=-1)


def test_rows_that_registers_do_not_hold_are_said_with_what_is_read_again() -> None:
    head = "rows that are read again where registers do not hold them\n"
    _, _, tail = explained(normal).partition(head)
    where = "where M is above 32768, on GPUs with clusters above 262144"
    assert tail == f"  kernel.1: 4*M*N B {where}\n"
    _, _, tail = explained(normal_of_vocabulary).partition(head)
    assert tail == "  kernel.1: 201028*N B on GPUs without clusters\n"
    assert head not in explained(totals)


@pytest.mark.host("says what torch runs")
def test_what_runs_here_is_described() -> None:
    with options(lowering="torch"):
        text = totals.explain()
    assert text.startswith("totals: 1 call of operators in the code\ntorch runs it")
    assert "sum" in text
    assert "201028*N B" in text
    assert "kernel.1" not in text
    with options(lowering="auto"):
        text = totals.explain()
    assert "C runs its kernels from their second call on" in text
    assert "(PYRELAY_LOWERING=auto)" in text
    assert "kernel.1" in text
    with options(lowering="evaluator"):
        assert "the reference evaluator runs it" in totals.explain()
    assert "kernels run it on a GPU" in explained(totals)
