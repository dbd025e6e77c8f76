"""Devices: programs stay on one, which is there, and do not wait for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

import pyrelay
from pyrelay import Dim, Float, Int, Model, Optimizer, Ref, RunError, Tensor, relay, relay_model
from pyrelay.prelude import List
from tests.loading import load_file
from tests.pretended_gpu import move_to_pretended_gpu
from tests.synchronisations import Synchronisations

N, B = Dim("N"), Dim("B")
EXAMPLES = Path(__file__).parents[3] / "examples"


@relay
def add(x: Tensor[Float, (N,)], y: Tensor[Float, (N,)]) -> Tensor[Float, (N,)]:
    return x + y


@relay
def scaled(x: Tensor[Float, (N,)], by: Float) -> Tensor[Float, (N,)]:
    return x * by


@relay
def first(p: tuple[Tensor[Float, (N,)], Tensor[Float, (N,)]]) -> Tensor[Float, (N,)]:
    return p[0]


@relay
def summed(xs: List[Tensor[Float, (3,)]]) -> Tensor[Float, (3,)]:
    return xs[0] + xs[1]


@relay
def read(r: Ref[Tensor[Float, (N,)]], x: Tensor[Float, (N,)]) -> Tensor[Float, (N,)]:
    return r.value + x


@dataclass(frozen=True)
class Pair:
    first: Tensor[Float, (3,)]
    second: Tensor[Float, (3,)]


@relay
def both(p: Pair, x: Tensor[Float, (3,)]) -> Tensor[Float, (3,)]:
    return p.first + p.second + x


@relay_model
def net(x: Tensor[Float, (N, 4)]) -> Tensor[Float, (N, 2)]:
    return relay.linear(x, out_features=2)


@relay
def loss(x: Tensor[Float, (N, 4)]) -> Float:
    return relay.mean(net(x) ** 2)


@relay
def size_of(model: Model[net]) -> Float:
    return relay.mean(model(relay.ones((1, 4))))


@relay
def train(model: Model[net], x: Tensor[Float, (N, 4)]) -> Float:
    value, grads = relay.value_and_grad(model, loss, (x,))
    relay.update_model_params(model, grads, lr=0.1)
    return value


HERE, THERE = torch.ones(3), torch.ones(3, device="meta")
MIXED: dict[str, tuple[Callable[[], Any], list[str]]] = {
    "tensors": (lambda: add(HERE, THERE), ["`y` is on meta", "`x` is on cpu"]),
    "interpreted": (lambda: add.interpret(THERE, HERE), ["`x` is on meta", "`y` is on cpu"]),
    "a scalar": (lambda: scaled(THERE, torch.tensor(2.0)), ["`x` is on meta", "`by` is on cpu"]),
    "a tuple": (lambda: first((HERE, THERE)), ["`p` is on cpu and meta"]),
    "a list": (lambda: summed([HERE, THERE]), ["`xs` is on cpu and meta"]),
    "a cell": (lambda: read(relay.ref(HERE), THERE), ["`x` is on meta", "`r` is on cpu"]),
    "data": (lambda: both(Pair(HERE, HERE), THERE), ["`x` is on meta", "`p` is on cpu"]),
    "a field": (lambda: both(Pair(HERE, THERE), HERE), ["`p.second` is on meta"]),
    "a model": (
        lambda: relay.create_model(net)(torch.ones(2, 4, device="meta")),
        ["`x` is on meta", "the model is on cpu"],
    ),
    "the model of a gradient": (
        lambda: relay.grad(relay.create_model(net), loss, (torch.ones(2, 4, device="meta"),)),
        ["`x` is on meta", "the model is on cpu"],
    ),
    "a model as an argument": (
        lambda: train(relay.create_model(net), torch.ones(2, 4, device="meta")),
        ["`x` is on meta", "`model` is on cpu"],
    ),
}


@pytest.mark.parametrize("name", MIXED)
def test_arguments_on_two_devices_are_refused_each_by_its_name(name: str) -> None:
    call, labels = MIXED[name]
    with pytest.raises(RunError) as caught:
        call()
    (found,) = caught.value.diagnostics
    assert found.code == "RL553"
    assert found.primary is not None
    assert [found.primary.text, *(label.text for label in found.secondary)] == labels


def test_an_operator_of_a_script_names_its_operands() -> None:
    with pytest.raises(RunError) as caught:
        relay.add(HERE, THERE)
    (found,) = caught.value.diagnostics
    assert found.notes == ("`input` is on cpu", "`other` is on meta")


@pytest.mark.host("tensors on another device")
def test_a_model_that_moved_between_two_calls_is_noticed() -> None:
    model = relay.create_model(net, seed=0)
    x = torch.ones(2, 4)
    train(model, x)
    model.to("meta")
    with pytest.raises(RunError, match="`train` got tensors on cpu and meta"):
        train(model, x)
    assert train(model, x.to("meta")).device.type == "meta"


@pytest.mark.host("tensors on another device")
def test_a_program_without_tensors_runs_where_its_model_is() -> None:
    model = relay.create_model(net, seed=0)
    assert size_of(model).device.type == "cpu"
    model.to("meta")
    assert size_of(model).device.type == "meta"


@pytest.mark.host("tensors on another device")
def test_numbers_and_arrays_go_where_the_tensors_are() -> None:
    assert scaled(THERE, 2.0).device.type == "meta"
    assert add(THERE, HERE.numpy()).device.type == "meta"


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_device_that_is_not_there_is_never_replaced() -> None:
    def by_option() -> None:
        with pyrelay.options(device="cuda"):
            relay.create_model(net)

    for make in (lambda: relay.create_model(net, device="cuda:1"), by_option):
        with pytest.raises(RunError) as caught:
            make()
        assert caught.value.codes == ("RL558",)
        assert "there is no device 'cuda" in caught.value.diagnostics[0].title
        assert caught.value.diagnostics[0].notes[0].startswith("torch says: ")


# Waiting.


def test_the_counter_sees_what_waits() -> None:
    waits: list[tuple[Callable[[torch.Tensor], Any], str]] = [
        (lambda x: x.sum().item(), "_local_scalar_dense"),
        (lambda x: float(x[0]), "_local_scalar_dense"),
        (lambda x: bool(x.sum() > 0), "is_nonzero"),
        (torch.nonzero, "nonzero"),
        (lambda x: x[x > 0], "index"),
        (lambda x: torch.equal(x, x), "equal"),
        (torch.unique, "_unique2"),
    ]
    for wait, name in waits:
        with Synchronisations() as seen:
            wait(torch.ones(3))
        assert seen.found in ([name], ["_local_scalar_dense"]), name
    with FakeTensorMode(), Synchronisations() as seen:
        there = torch.empty(3, device="cuda")
        there.cpu()
        torch.tensor(2.0, device="cuda")
        torch._foreach_copy_([there], [torch.empty(3)])
        torch.scalar_tensor(2.0, device="cuda")
    assert seen.found == ["_to_copy", "_to_copy", "_foreach_copy_"]


@pytest.fixture
def lenet() -> Any:
    """Load the example anew: what is compiled in a pretence holds constants that belong to it."""
    return load_file(EXAMPLES / "lenet" / "lenet.py", "lenet_anew")


@relay
def with_size(x: Tensor[Float, (N, 4)]) -> tuple[Tensor[Float, (N, 4)], Tensor[Int, ()]]:
    return relay.where(x > 0.0, x, relay.full((x.shape[0], 4), 3.0)), x.shape[0]


@relay
def repeated(x: Tensor[Float, (N, 4)], times: Int) -> Tensor[Float, (N, 4)]:
    for i in range(times):
        x = relay.cumsum(relay.tril(x * (1.0 * i)), dim=0)
    return x


def test_numbers_of_programs_never_wait_for_a_pretended_gpu() -> None:
    with FakeTensorMode(), pyrelay.options(lowering="torch"):
        x = torch.empty(3, 4, device="cuda")
        calls: list[Callable[[], Any]] = [lambda: with_size(x), lambda: repeated(x, 3)]
        for call in calls:
            call()
            with Synchronisations() as seen:
                call()
            assert seen.found == []


@pytest.mark.filterwarnings("ignore:Accessing the data pointer of FakeTensor")
@pytest.mark.parametrize("name", ["sgd", "momentum", "adam", "adamw"])
def test_a_training_step_of_lenet_never_waits_for_a_pretended_gpu(lenet: Any, name: str) -> None:
    optimizers = {
        "sgd": lambda: None,
        "momentum": lambda: relay.optim.sgd(lr=0.1, momentum=0.9),
        "adam": lambda: relay.optim.adam(lr=1e-3),
        "adamw": lambda: relay.optim.adamw(lr=1e-3),
    }
    model, optimizer = relay.create_model(lenet.lenet, seed=0), optimizers[name]()
    how: dict[str, Any] = {"lr": 0.1} if optimizer is None else {"optimizer": optimizer}
    with FakeTensorMode(), pyrelay.options(lowering="torch"):  # kernels read what lies at addresses
        move_to_pretended_gpu(model)
        x = torch.empty(4, 1, 28, 28, device="cuda")
        y = torch.empty(4, dtype=torch.int64, device="cuda")
        for _ in range(2):  # the first compiles, which fills constants
            with Synchronisations() as seen:
                _, grads = relay.value_and_grad(model, lenet.loss, (x, y))
                relay.update_model_params(model, grads, **how)
    assert seen.found == []


@relay
def epoch(model: Model[net], batches: Tensor[Float, (B, N, 4)], optimizer: Optimizer) -> Float:
    total = 0.0
    for i, x in enumerate(batches):
        value, grads = relay.value_and_grad(model, loss, (x,))
        relay.update_model_params(model, grads, optimizer=optimizer)
        total += value * (1.0 if i % 2 == 0 else 0.5)
    return total / len(batches)


@relay
def norms(xs: List[Tensor[Float, (3,)]], n: int) -> Float:
    total = 0.0
    for x in xs:
        for _ in range(n):
            total += relay.sum(x * 2.0)
    return total


@relay
def labelled(x: Tensor[Float, (N, 4)], y: Tensor[Int, (N,)]) -> Float:
    return relay.softmax_cross_entropy(x, y)


@pytest.mark.host("what asks for values is counted")
def test_loops_of_programs_never_ask_for_the_value_of_a_tensor(lenet: Any) -> None:
    model, plain = relay.create_model(lenet.lenet, seed=0), relay.create_model(net, seed=0)
    images, labels = torch.randn(3, 4, 1, 28, 28), torch.randint(0, 10, (3, 4))
    batches, adam = torch.randn(3, 2, 4), relay.optim.adam(lr=1e-3)
    runs: list[Callable[[], Any]] = [
        lambda: lenet.train(model, images, labels),
        lambda: epoch(plain, batches, adam),
        lambda: norms([torch.ones(3)] * 3, 2),
        lambda: labelled(batches[0], labels[0, :2] % 4),
        lambda: relay.grad(labelled, wrt="x")(batches[0], labels[0, :2] % 4),
        lambda: both(Pair(HERE, HERE), HERE),
    ]
    for run in runs:
        run()
        with Synchronisations() as seen:
            run()
        assert seen.found == []
