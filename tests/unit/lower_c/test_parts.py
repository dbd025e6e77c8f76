"""Large texts are divided into parts, which are compiled in parallel and give the same values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from pyrelay import Dim, Float, Int, Tensor, options, relay
from pyrelay.lower_c.math import host_target
from pyrelay.lower_c.text import Kernel, in_parts, parts
from tests.unit.lower_c.counted import Counted

N, M = Dim("N"), Dim("M")
Rows = Tensor[Float, (N, M)]


def kernel(name: str, lines: int) -> Kernel:
    head = f"void {name}(relay_run *run)"
    return Kernel(name, head, f"KERNEL {head} {{\n" + lines * "    ;\n" + "}\n", ())


def test_kernels_of_a_few_lines_stay_together() -> None:
    found = in_parts([kernel("a", 10), kernel("b", 20)], host_target())
    assert found.beside == ()
    assert found.prefix.index("void a(") < found.prefix.index("void b(")
    assert "hidden" not in found.prefix


def test_many_lines_are_divided_evenly_and_declared_where_they_are_called() -> None:
    sizes = {"a": 700, "b": 300, "c": 500, "d": 600}
    found = in_parts([kernel(n, lines) for n, lines in sizes.items()], host_target())
    held = [[n for n in sizes if f"void {n}(relay_run *run) {{" in t] for t in found.beside]
    assert held == [["a"], ["d"], ["b", "c"]]
    for name in sizes:
        assert f"KERNEL void {name}(relay_run *run);" in found.prefix


def test_one_kernel_is_never_divided() -> None:
    assert in_parts([kernel("a", 5000)], host_target()).beside == ()


def layers(x: Rows, w: Tensor[Float, (M, M)]):
    h = relay.tanh(x @ w)
    h = relay.softmax(h @ w, dim=-1)
    return h, (h * x).sum(dim=0)


def rounds(x: Rows, w: Tensor[Float, (M, M)], n: Int):
    for _ in range(n):
        x = relay.softmax(relay.tanh(x @ w), dim=-1)
    return x


@pytest.mark.parametrize("products", ["own", "library"])
@pytest.mark.parametrize("function", [layers, rounds])
def test_parts_give_the_bits_of_the_whole(
    monkeypatch: pytest.MonkeyPatch, function: Callable[..., Any], products: str
) -> None:
    args = torch.randn(64, 33), torch.randn(33, 33), *([3] if function is rounds else [])
    built = Counted(monkeypatch).texts

    def run(most_lines: int) -> Any:
        monkeypatch.setattr(parts, "MOST_LINES", most_lines)
        with options(lowering="c", cache=False, products=products):
            return relay(function)(*args)

    whole = run(100_000)
    assert len(built) == 1
    torch.testing.assert_close(run(1), whole, rtol=0, atol=0)
    assert len(built) > 3
