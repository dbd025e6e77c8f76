"""A mapped function calls as many operators for a large batch as for a small one."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import pytest
import torch

from pyrelay import relay
from pyrelay.runtime.dispatch import dispatching
from tests.features.vmap import test_programs as programs
from tests.features.vmap import test_structures as structures

SIZES = (2, 16, 300)
NUMBERS = [*programs.ELEMENTWISE, *structures.PROGRAMS]


def count_of(f: Any, *args: Any) -> int:
    """Return how many operators the reference evaluator calls."""
    count = 0
    apply = dispatching.apply

    def counted(*given: Any) -> Any:
        nonlocal count
        count += 1
        return apply(*given)

    with patch.object(dispatching, "apply", counted):
        f.interpret(*args)
    return count


def batch_of(f: Any, size: int) -> tuple[torch.Tensor, ...]:
    """Return arguments for the same elements, each many times: the same arms are taken."""
    if f in structures.PROGRAMS:
        return structures.XS.repeat(size), structures.NS.repeat(size)
    return (programs.batch(7).repeat(size) + 0.1,)


@pytest.mark.parametrize("f", NUMBERS, ids=lambda f: f.__name__)
def test_the_number_of_operators_is_independent_of_the_batch(f: Any) -> None:
    mapped = relay.vmap(f)
    assert len({count_of(mapped, *batch_of(f, size)) for size in SIZES}) == 1


@pytest.mark.parametrize("f", NUMBERS, ids=lambda f: f.__name__)
def test_the_number_of_operators_of_gradients_is_independent_of_the_batch(f: Any) -> None:
    mapped = relay.vmap(relay.grad(f, wrt="x"))
    assert len({count_of(mapped, *batch_of(f, size)) for size in SIZES}) == 1


def test_a_loop_of_calls_calls_more() -> None:
    f, (xs, ns) = structures.trips, batch_of(structures.trips, 20)
    each = sum(count_of(f, x, n) for x, n in zip(xs, ns, strict=True))
    assert each > 5 * count_of(relay.vmap(f), xs, ns)
