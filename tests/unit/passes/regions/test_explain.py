"""What networks become: their kernels, bytes and operations, as the user is told."""

from __future__ import annotations

import pytest

from tests.golden import Golden
from tests.unit.passes.regions import steps

PROGRAMS = ("lenet_step", "mlp_step", "lstm_step", "block_grad", "tree_state")


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_kernels_of_a_network_are_these(name: str, golden: Golden) -> None:
    golden(f"{name}.txt", getattr(steps, name).explain())
