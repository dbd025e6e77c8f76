"""By default C runs what repeats: which calls build, what torch keeps, and what cannot be built."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.testing._internal.two_tensor import TwoTensor
from torch.utils.flop_counter import FlopCounterMode

import pyrelay
from pyrelay import Dim, Float, Int, Tensor, options, relay, relay_model
from pyrelay.lower_c.building import compiler, texts
from pyrelay.prelude import List
from tests.tolerances import assert_program
from tests.unit.lower_c.counted import Counted

pytestmark = pytest.mark.host("lowerings are chosen here")

N, M = Dim("N"), Dim("M")
Rows = Tensor[Float, (N, M)]


def activated(x: Rows) -> Rows:
    return relay.tanh(x * 1.1 + 0.1) * x


def repeated(x: Rows, times: Int) -> Rows:
    for _ in range(times):
        x = relay.tanh(x * 1.1) + x
    return x


def over_a_list(xs: List[Rows]) -> Float:
    total = 0.0
    for x in xs:
        total += relay.softmax(x, dim=-1).amax()
    return total


def twice(x: Tensor[Float, (N, N)]) -> Tensor[Float, (N, N)]:
    return relay.tanh(relay.tanh(x @ x) @ x)


@relay_model
def layer(x: Tensor[Float, (N, 4)]):
    return relay.tanh(relay.linear(x, out_features=3))


@pytest.fixture(autouse=True)
def by_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Run programs as `auto` does, with an empty cache, in a process that has built nothing."""
    monkeypatch.setattr(texts, "_notified", threading.Event())
    monkeypatch.setattr(texts, "_refused", {})
    with options(lowering="auto", cache_dir=tmp_path, cache=True):
        yield
    compiler._find.cache_clear()


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the texts that are built in the test."""
    return Counted(monkeypatch).texts


def by(lowering: str, function: Callable[..., Any], *args: Any) -> Any:
    """Return the result of a function that is compiled anew."""
    with options(lowering=lowering):
        return relay(function)(*args)


def test_a_region_is_built_when_it_is_called_again(built: list[str]) -> None:
    function, x = relay(activated), torch.randn(5, 7)
    in_torch, in_c = by("torch", activated, x), by("c", activated, x)
    built.clear()
    assert torch.equal(function(x), in_torch)
    assert built == []
    assert torch.equal(function(x), in_c)
    assert torch.equal(function(x[:3]), in_c[:3])
    assert_program(in_c, in_torch)


def test_no_kernel_is_built_alone_because_a_region_has_it_twice(built: list[str]) -> None:
    function, x = relay(twice), torch.randn(5, 5)
    first = function(x)
    assert built == []
    assert_program(first, function(x))
    assert built


def test_what_is_on_disk_changes_no_bits(built: list[str]) -> None:
    x = torch.randn(64, 33)

    def run() -> list[torch.Tensor]:
        function = relay(activated)
        return [function(x) for _ in range(3)]

    first = run()
    assert len(built) == 1
    again = run()
    assert len(built) == 1
    assert all(map(torch.equal, first, again))


def test_the_body_of_a_loop_is_built_at_its_second_round(built: list[str]) -> None:
    function, xs = relay(over_a_list), [torch.randn(3, 4) for _ in range(3)]
    assert_program(function(xs[:1]), by("torch", over_a_list, xs[:1]))
    assert built == []
    function = relay(over_a_list)
    assert_program(function(xs), by("torch", over_a_list, xs))
    assert len(built) == 1


def test_a_loop_that_c_runs_whole_is_built_at_its_first_call(built: list[str]) -> None:
    x = torch.randn(3, 4)
    assert_program(relay(repeated)(x, 5), by("torch", repeated, x, 5))
    assert len(built) == 1


def test_a_training_step_is_built_at_its_second_call_and_making_a_model_is_not(
    built: list[str],
) -> None:
    @relay
    def loss(x: Tensor[Float, (N, 4)]) -> Float:
        return relay.mean(layer(x) * layer(x))

    def losses() -> list[float]:
        model = relay.create_model(layer, seed=0)
        found: list[float] = []
        for step in range(4):
            value, grads = relay.value_and_grad(model, loss, (x,))
            relay.update_model_params(model, grads, lr=0.1)
            found.append(float(value))
            if step == 0:
                assert built == []
        return found

    x = torch.randn(6, 4)
    found = losses()
    assert len(built) == 1
    with options(lowering="torch"):
        built.clear()
        assert_program(found, losses())


def test_nothing_is_built_where_nothing_may_be_compiled(built: list[str]) -> None:
    function, x = relay(activated), torch.randn(5, 7)
    expected = function(x)
    with pyrelay.no_compile():
        for _ in range(3):
            assert torch.equal(function(x), expected)
    assert built == []
    assert_program(function(x), expected)
    assert len(built) == 1


def test_without_a_compiler_torch_runs_and_there_is_one_notice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("CC", str(tmp_path / "absent"))
    for function, *args in ((activated, torch.randn(5, 7)), (repeated, torch.randn(3, 4), 3)):
        compiled = relay(function)
        for _ in range(3):
            assert torch.equal(compiled(*args), by("torch", function, *args))
    (record,) = [r for r in caplog.records if r.levelno == logging.WARNING]
    assert "torch runs what would be C, with the same values" in record.getMessage()
    assert "there is no such program" in record.getMessage()
    assert "torch runs it" in relay(activated).explain()


def test_where_a_build_fails_torch_runs_and_there_is_one_notice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    broken = tmp_path / "broken"
    broken.write_text('#!/bin/sh\ncase "$*" in *--version*) echo broken 1.0; exit;; esac\nexit 1\n')
    broken.chmod(0o755)
    monkeypatch.setenv("CC", str(broken))
    for function, *args in ((activated, torch.randn(5, 7)), (repeated, torch.randn(3, 4), 3)):
        compiled = relay(function)
        for _ in range(3):
            assert_program(compiled(*args), by("torch", function, *args))
    (record,) = [r for r in caplog.records if r.levelno == logging.WARNING]
    assert "refused a text" in record.getMessage()


def test_a_cache_that_cannot_be_written_changes_nothing(built: list[str], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    x = torch.randn(5, 7)
    with options(cache_dir=tmp_path / "file"):
        function = relay(activated)
        for _ in range(3):
            assert_program(function(x), by("torch", activated, x))
    assert len(built) == 1


@pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")
def test_torch_runs_what_it_transforms_or_watches() -> None:
    function, x = relay(activated), torch.randn(5, 7)
    for _ in range(2):
        expected = function(x)
    many = torch.stack([x, x + 1.0])
    assert_program(torch.func.vmap(function)(many)[0], expected)
    assert_program(torch.func.jvp(function, (x,), (x,))[0], expected)
    traced = torch.jit.trace(function, (x,))
    assert_program(traced(x + 1.0), function(x + 1.0))
    with FlopCounterMode(display=False):
        assert_program(function(x), expected)
    assert_program(function(x), expected)


def test_tensors_whose_elements_lie_elsewhere_are_left_to_torch() -> None:
    class Marked(torch.Tensor):
        pass

    function, x = relay(activated), torch.randn(5, 7)
    for _ in range(2):
        expected = function(x)
    assert isinstance(function(x.as_subclass(Marked)), Marked)
    both = function(TwoTensor(x, x))
    assert_program(both.a, expected)
    assert_program(function(torch._neg_view(x)), function(-x))


def test_the_default_device_is_no_concern_of_c() -> None:
    for function, *args in ((activated, torch.randn(5, 7)), (repeated, torch.randn(3, 4), 3)):
        compiled = relay(function)
        for _ in range(2):
            expected = compiled(*args)
        with torch.device("meta"):
            x, *rest = args
            assert_program(compiled(x.clone(), *rest), expected)
