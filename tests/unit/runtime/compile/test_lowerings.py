"""What runs tensor code is an option, and all ways give the same values."""

from __future__ import annotations

import pytest
import torch

from pyrelay import Dim, Float, Tensor, relay
from pyrelay.config import options
from pyrelay.diagnostics.source import NOWHERE
from pyrelay.lower_c.backend import CBackend
from pyrelay.runtime.compile.lowerings import Plain, lowering_on

N = Dim("N")


@relay
def decay(x: Tensor[Float, (N,)], rounds: int) -> Float:
    total = 0.0
    for i in range(rounds):
        total += (x / (i + 1)).sum()
    return total


@pytest.mark.parametrize("lowering", ["torch", "torch-regions", "evaluator"])
def test_values_and_gradients_are_the_same(lowering: str) -> None:
    x = torch.arange(4.0)
    plain, gradient = decay(x, 3), relay.grad(decay, wrt="x")(x, 3)
    with options(lowering=lowering):
        torch.testing.assert_close(decay(x, 3), plain)
        torch.testing.assert_close(relay.grad(decay, wrt="x")(x, 3), gradient)


def test_a_cpu_has_c_and_other_devices_torch_unless_another_lowering_is_asked_for() -> None:
    cpu = torch.device("cpu")
    with options(lowering="auto"):
        assert isinstance(lowering_on(cpu, NOWHERE), CBackend)
        assert lowering_on(torch.device("meta"), NOWHERE) is Plain.TORCH
    with options(lowering="evaluator"):
        assert lowering_on(cpu, NOWHERE) is Plain.EVALUATOR
