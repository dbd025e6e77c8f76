"""Tensors that are made in advance have the numbers that they stand for."""

from __future__ import annotations

from dataclasses import dataclass
from threading import Thread
from typing import Any

import pytest
import torch

from pyrelay import Float, float64, relay
from pyrelay.runtime.border.plain import Plain
from pyrelay.runtime.border.supply import Supply

CPU = torch.device("cpu")


@pytest.mark.parametrize(
    "dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64], ids=str
)
def test_tensors_keep_their_numbers_over_many_rows_and_calls(dtype: torch.dtype) -> None:
    rows: list[Any] = []
    for size in (1, 3, 300, 7, 2000):
        walk = Plain(CPU)
        supply = walk.supply(dtype)
        made = [supply.put(n / 2) for n in range(size)]
        walk.finish()
        rows.append(made)
    for made in rows:
        assert all(t.dtype is dtype and t.shape == () for t in made)
        assert [t.item() for t in made] == [torch.tensor(n / 2).to(dtype) for n in range(len(made))]


def test_calls_at_the_same_time_have_supplies_of_their_own() -> None:
    first, second = Plain(CPU), Plain(CPU)
    one, other = first.supply(torch.float32), second.supply(torch.float32)
    assert one is not other
    a, b, c = one.put(1.0), other.put(2.0), one.put(3.0)
    first.finish()
    second.finish()
    assert (a.item(), b.item(), c.item()) == (1.0, 2.0, 3.0)


def test_tensors_that_are_made_in_inference_mode_serve_later_gradients() -> None:
    with torch.inference_mode():
        supply = Supply(torch.float32, CPU)
        number = supply.put(3.0)
    supply.write()
    x = torch.tensor(2.0, requires_grad=True)
    (x * number).backward()
    assert x.grad == 3.0


def test_a_product_that_is_saved_for_a_gradient_is_not_touched_by_later_numbers() -> None:
    supply = Supply(torch.bfloat16, CPU)
    x = torch.tensor(2.0, dtype=torch.bfloat16, requires_grad=True)
    product = x * supply.put(3.0)
    supply.write()
    for _ in range(300):
        supply.put(5.0)
    supply.write()
    product.backward()
    assert x.grad == 3.0


@dataclass(frozen=True)
class Pair:
    single: Float
    double: float64


@relay
def both(pair: Pair) -> tuple[Float, float64]:
    return pair.single * 2.0, pair.double * 2.0


def test_threads_and_dtypes_do_not_mix() -> None:
    wrong: list[int] = []

    def run(first: int) -> None:
        for n in range(first, first + 500):
            pair: Any = Pair(float(n), n + 1 / 3)
            single, double = both(pair)
            if single.item() != 2.0 * n or double.item() != 2.0 * (n + 1 / 3):
                wrong.append(n)

    both(Pair(1.0, 1.0))
    threads = [Thread(target=run, args=(1000 * k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
