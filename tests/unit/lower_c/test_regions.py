"""Regions in C: one call for all kernels, calls of torch in between, failures, and no compiler."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from typing import Any

import pytest
import torch

from pyrelay import Dim, Float, Int, RunError, Tensor, options, relay
from pyrelay.lower_c import building
from pyrelay.lower_c.launching import prepare
from tests.tolerances import assert_program

N, M, K = Dim("N"), Dim("M"), Dim("K")
Rows = Tensor[Float, (N, M)]


@pytest.fixture(autouse=True)
def in_c() -> Generator[None]:
    with options(lowering="c"):
        yield


@relay
def layers(x: Rows, w: Tensor[Float, (M, M)]):
    h = relay.tanh(x @ w)
    h = relay.softmax(h @ w, dim=-1)
    return h, (h * x).sum(dim=0)


@relay
def around_torch(x: Rows):
    scaled = x * 2.0 + 1.0
    values, _ = relay.sort(scaled, dim=-1)
    return relay.tanh(values) * x


@relay
def picked(x: Rows, y: Tensor[Int, (K,)]):
    chosen = relay.embedding(y, x) * 2.0
    return relay.tanh(chosen @ relay.transpose(chosen, 0, 1))


def by_torch(function: Callable[..., Any], *args: Any) -> Any:
    with options(lowering="torch"):
        return function(*args)


def test_a_region_is_what_torch_does() -> None:
    for n, m in ((7, 5), (1, 1), (64, 33), (0, 3)):
        x, w = torch.randn(n, m), torch.randn(m, m)
        assert_program(layers(x, w), by_torch(layers, x, w))
        assert_program(layers(x.T.contiguous().T, w.T), by_torch(layers, x, w.T))


def test_calls_of_torch_stand_between_pieces() -> None:
    x = torch.randn(6, 9)
    assert_program(around_torch(x), by_torch(around_torch, x))
    assert "sort" in around_torch.explain()


def test_the_functions_of_a_region_are_shown_whatever_runs_it() -> None:
    text = around_torch.show("c")
    own = text[text.index("// region.1") :]
    first, second = own[own.index("int64_t piece_0(") :].split("int64_t piece_1(")
    assert "char *x_at = at[1];" in first
    assert "kernel_scaled(run, (const float *)x_at, (float *)scaled_at, " in first
    assert "kernel_multiply_1(run, (const float *)values_at, (const float *)x_at, " in second
    for lowering in ("torch", "auto", "triton"):
        with options(lowering=lowering):
            assert around_torch.show("c") == text


Stacks = Tensor[Float, (N, 4, 5)]


@relay
def seen_flat(x: Stacks, w: Tensor[Float, (20, 20)]):
    h = relay.tanh(x)
    flat = relay.flatten(h, start_dim=1)
    y = relay.tanh(flat @ w)
    return relay.softmax(flat @ y.T, dim=1)


@relay
def seen_flat_and_kept(x: Stacks, w: Tensor[Float, (20, 20)]):
    flat = relay.flatten(relay.tanh(x), start_dim=1)
    values, _ = relay.sort(relay.tanh(flat @ w), dim=-1)
    return flat, values @ relay.reshape(flat, (20, N)), relay.unsqueeze(values * 2.0, 0)


def test_a_value_under_another_shape_lies_where_it_did() -> None:
    for n in (1, 6):
        x, w = torch.randn(n, 4, 5), torch.randn(20, 20)
        for function in (seen_flat, seen_flat_and_kept):
            for _ in range(2):
                assert_program(function(x, w), by_torch(function, x, w))
    assert "piece_1" not in seen_flat.show("c")


def test_an_index_that_does_not_exist_is_the_error_of_torch() -> None:
    x, y = torch.randn(5, 4), torch.tensor([0, 4, 3])
    assert_program(picked(x, y), by_torch(picked, x, y))
    with pytest.raises(RunError, match="index out of range"):
        picked(x, torch.tensor([0, 5, 1]))
    assert_program(picked(x, y), by_torch(picked, x, y))


@relay
def second_and_last(x: Tensor[Float, (N,)]) -> Float:
    return relay.tanh(x[1]) * 2.0 + x[-2]


def test_a_constant_index_that_does_not_exist_is_an_error() -> None:
    x = torch.randn(4)
    assert_program(second_and_last(x), by_torch(second_and_last, x))
    for length in (0, 1):
        with pytest.raises(RunError, match="index out of range"):
            second_and_last(torch.randn(length))


@relay
def place_of_sorted(x: Tensor[Float, (N,)], i: Int):
    values, places = relay.sort(x)
    return relay.tanh(values)[i] + places


def test_torch_raises_the_error_of_a_piece_behind_the_last_use_of_an_argument() -> None:
    x = torch.randn(4)
    assert_program(place_of_sorted(x, 3), by_torch(place_of_sorted, x, 3))
    with pytest.raises(RunError, match="index 4 is out of bounds"):
        place_of_sorted(x, 4)


def test_results_are_storage_of_their_own() -> None:
    x, w = torch.randn(8, 8), torch.randn(8, 8)
    first = layers(x, w)
    kept = [t.clone() for t in first]
    layers(x + 1.0, w)
    assert_program(first, tuple(kept))


def test_threads_call_a_region_at_once() -> None:
    x, w = torch.randn(32, 16), torch.randn(16, 16)
    expected = layers(x, w)
    found: list[object] = []

    def run() -> None:
        with options(lowering="c"):
            found.extend(layers(x, w) for _ in range(20))

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 80
    for result in found:
        assert_program(result, expected)


def test_results_do_not_depend_on_the_number_of_threads() -> None:
    x, w = torch.randn(700, 65), torch.randn(65, 65)
    counts = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        alone = layers(x, w)
        torch.set_num_threads(2)
        together = layers(x, w)
    finally:
        torch.set_num_threads(counts)
    torch.testing.assert_close(together, alone, rtol=0, atol=0)


def test_without_a_compiler_torch_runs_all(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []

    def nothing(sources: object) -> None:
        asked.append(sources)

    monkeypatch.setattr(prepare, "build_or_notify", nothing)

    @relay
    def scaled(x: Rows):
        return relay.tanh(x * 3.0)

    x = torch.randn(4, 6)
    for _ in range(3):
        assert_program(scaled(x), by_torch(scaled, x))
    assert len(asked) == 1


def test_no_compiler_is_said_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    monkeypatch.setattr(building.texts, "_notified", threading.Event())

    @relay
    def shifted(x: Rows):
        return relay.tanh(x - 0.25) * 1.75

    x = torch.randn(4, 6)
    for _ in range(2):
        assert_program(shifted(x), by_torch(shifted, x))
    assert len([r for r in caplog.records if "CC=no-such-compiler" in r.getMessage()]) == 1
