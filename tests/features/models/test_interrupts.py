"""Ctrl-C at any moment leaves a model and its optimiser after the last whole update."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest
import torch

from pyrelay import Dim, Float, Int, Model, Optimizer, Tensor, options, relay, relay_model
from tests.interrupts import each_interrupt, each_signal

N = Dim("N")
X = torch.linspace(-1.0, 1.0, 6).reshape(2, 3)


@relay_model
def net(x: Tensor[Float, (N, 3)]) -> Tensor[Float, (N, 2)]:
    h = relay.linear(relay.batch_norm(x), out_features=3)
    return relay.linear(relay.tanh(h), out_features=2)


@relay
def loss(x: Tensor[Float, (N, 3)]) -> Float:
    return (net(x) ** 2).mean()


@relay
def fit(model: Model[net], optimizer: Optimizer, x: Tensor[Float, (N, 3)], steps: Int) -> Float:
    value = 0.0
    for _ in range(steps):
        value, grads = relay.value_and_grad(model, loss, (x,))
        relay.update_model_params(model, grads, optimizer=optimizer)
    return value


@relay
def fit_plainly(model: Model[net], x: Tensor[Float, (N, 3)], steps: Int) -> Float:
    value = 0.0
    for _ in range(steps):
        value, grads = relay.value_and_grad(model, loss, (x,))
        relay.update_model_params(model, grads, lr=0.1)
    return value


@relay
def fit_two(
    one: Model[net], two: Model[net], optimizer: Optimizer, x: Tensor[Float, (N, 3)], steps: Int
) -> Float:
    value = 0.0
    for _ in range(steps):
        value, grads = relay.value_and_grad(one, loss, (x,))
        relay.update_model_params(one, grads, optimizer=optimizer)
        value, grads = relay.value_and_grad(two, loss, (x,))
        relay.update_model_params(two, grads, optimizer=optimizer)
    return value


@relay
def fit_stream(
    model: Model[net], optimizer: Optimizer, data: Iterable[Tensor[Float, (N, 3)]]
) -> Float:
    value = 0.0
    for x in data:
        value, grads = relay.value_and_grad(model, loss, (x,))
        relay.update_model_params(model, grads, optimizer=optimizer)
    return value


CALLS: dict[str, Any] = {"fit": fit, "two": fit_two, "stream": fit_stream}
MAKERS = {
    "sgd": lambda: relay.optim.sgd(0.1),
    "nesterov": lambda: relay.optim.sgd(0.1, 0.9, 0.1, nesterov=True),
    "adam": lambda: relay.optim.adam(0.1, weight_decay=0.1),
    "adamw": lambda: relay.optim.adamw(0.1),
}
# An interrupt that comes while a generator is closed is dropped by Python, and the call goes on.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
State = list[torch.Tensor]


def state(model: Any, optimizer: Any = None) -> State:
    """Return the parameters, and the moments and the step count of the optimiser, as copies."""
    found = [p.detach().clone() for p in model.parameters()]
    if optimizer is None:
        return found
    memory = optimizer.state.get(model)
    trees = [] if memory is None else memory.trees
    moments = [[t.clone() for t in tree] for tree in trees]
    moments += [[torch.zeros_like(t) for t in found]] * (optimizer.rule.moments - len(trees))
    count = torch.tensor(0.0 if memory is None else float(memory.step))
    return [*found, *(t for tree in moments for t in tree), count]


def step(model: Any, optimizer: Any) -> None:
    grads = relay.grad(model, loss, (X,))
    relay.update_model_params(model, grads, optimizer=optimizer)


def wholes(make: Any, steps: int) -> list[State]:
    """Return the states after no step, after one, and so on."""
    model, optimizer = relay.create_model(net, seed=0), make()
    found = [state(model, optimizer)]
    for _ in range(steps):
        step(model, optimizer)
        found.append(state(model, optimizer))
    return found


def which(found: State, known: Sequence[State]) -> int:
    """Return which of the known states this is."""
    for place, each in enumerate(known):
        if all(torch.allclose(a, b, atol=1e-6) for a, b in zip(found, each, strict=True)):
            return place
    raise AssertionError("the model is between two updates")


@pytest.mark.parametrize("name", MAKERS)
def test_an_update_of_a_script_is_whole_or_not_made(name: str) -> None:
    make = MAKERS[name]
    known = wholes(make, 2)

    model, optimizer = relay.create_model(net, seed=0), make()
    step(model, optimizer)
    grads = relay.grad(model, loss, (X,))
    start = [p.detach().clone() for p in model.parameters()]
    memory = copy.deepcopy(optimizer.state_dict(model))

    def begun() -> Any:
        for parameter, value in zip(model.parameters(), start, strict=True):
            parameter.data = value.clone()
        optimizer.load_state_dict(model, memory)
        return model, optimizer, grads

    def update(given: Any) -> None:
        model, optimizer, grads = given
        relay.update_model_params(model, grads, optimizer=optimizer)

    found = [
        which(state(model, optimizer), known)
        for model, optimizer, _ in each_interrupt(begun, update, instructions=name == "adam")
    ]
    assert set(found) == {1, 2}


MODELS = [relay.create_model(net, seed=0) for _ in range(2)]
START = copy.deepcopy(MODELS[0].state_dict())


def new(make: Any, count: int = 1) -> Any:
    """Return models as they are at first, and an optimiser."""
    for model in MODELS[:count]:
        model.load_state_dict(START, assign=False)
    return (*MODELS[:count], make())


def by_program(
    make: Any, run: Callable[[Any, int], object], steps: int, count: int = 1
) -> list[list[State]]:
    """Return the states of each model after no step, after one, and so on, of a program itself:
    Adam makes large steps of what another one rounds."""
    found: list[list[State]] = [[] for _ in range(count)]
    for taken in range(steps + 1):
        given = new(make, count)
        run(given, taken)
        for states, model in zip(found, given[:count], strict=True):
            states.append(state(model, given[-1]))
    return found


@pytest.mark.parametrize("name", ["nesterov", "adam"])
def test_a_program_leaves_the_last_whole_update(name: str) -> None:
    make = MAKERS[name]
    (known,) = by_program(make, lambda given, steps: CALLS["fit"](*given, X, steps), 2)
    found = [
        which(state(model, optimizer), known)
        for model, optimizer in each_interrupt(
            lambda: new(make), lambda g: CALLS["fit"](*g, X, 2), every=2
        )
    ]
    assert set(found) == {0, 1, 2}


@pytest.mark.parametrize(
    ("lowering", "every"), [("evaluator", 701), ("torch", 11), ("torch-regions", 11)]
)
def test_each_way_to_run_a_program_leaves_the_last_whole_update(lowering: Any, every: int) -> None:
    make = MAKERS["adam"]
    with options(lowering=lowering):
        (known,) = by_program(make, lambda given, steps: CALLS["fit"](*given, X, steps), 2)
        found = [
            which(state(model, optimizer), known)
            for model, optimizer in each_interrupt(
                lambda: new(make), lambda g: CALLS["fit"](*g, X, 2), every=every
            )
        ]
    assert set(found) == {0, 1, 2}


def test_a_program_that_descends_in_place_leaves_the_last_whole_update() -> None:
    known = [s[:-1] for s in wholes(MAKERS["sgd"], 3)]
    fit_plainly(MODELS[0], X, 1)
    found = [
        which(state(model), known)
        for model, _ in each_interrupt(
            lambda: new(MAKERS["sgd"]), lambda g: fit_plainly(g[0], X, 3)
        )
    ]
    assert set(found) == {0, 1, 2, 3}


@relay_model
def looking_up(ids: Tensor[Int, (N,)]) -> Tensor[Float, (N, 2)]:
    return relay.linear(relay.embedding(ids, num_embeddings=5, embedding_dim=3), out_features=2)


@relay
def looked_up(ids: Tensor[Int, (N,)]) -> Float:
    return (looking_up(ids) ** 2).mean()


@relay
def fit_table(
    model: Model[looking_up], optimizer: Optimizer, ids: Tensor[Int, (N,)], steps: Int
) -> Float:
    value = 0.0
    for _ in range(steps):
        value, grads = relay.value_and_grad(model, looked_up, (ids,))
        relay.update_model_params(model, grads, optimizer=optimizer)
    return value


def test_a_program_that_moves_rows_of_a_table_leaves_the_last_whole_update() -> None:
    model, ids = relay.create_model(looking_up, seed=0), torch.tensor([3, 1, 3])
    start = copy.deepcopy(model.state_dict())

    def begun() -> Any:
        model.load_state_dict(start, assign=False)
        return model, relay.optim.adam(0.1)

    known: list[State] = []
    for steps in range(3):
        own, optimizer = begun()
        fit_table(own, optimizer, ids, steps)
        known.append(state(own, optimizer))
    found = [
        which(state(*given), known)
        for given in each_interrupt(begun, lambda g: fit_table(g[0], g[1], ids, 2))
    ]
    assert set(found) == {0, 1, 2}


def test_a_program_with_two_models_leaves_both_after_whole_updates() -> None:
    make = MAKERS["adam"]
    first, second = by_program(make, lambda g, steps: CALLS["two"](*g, X, steps), 2, count=2)
    found = [
        (which(state(one, optimizer), first), which(state(two, optimizer), second))
        for one, two, optimizer in each_interrupt(
            lambda: new(make, 2), lambda g: CALLS["two"](*g, X, 2), every=5
        )
    ]
    assert set(found) == {(0, 0), (1, 0), (1, 1), (2, 1), (2, 2)}


def test_a_stream_that_is_interrupted_leaves_the_last_whole_update() -> None:
    make = MAKERS["adam"]

    def batches(count: int = 3) -> Iterable[torch.Tensor]:
        yield from [X] * count

    (known,) = by_program(make, lambda g, steps: CALLS["stream"](*g, batches(steps)), 3)
    found = [
        which(state(model, optimizer), known)
        for model, optimizer in each_interrupt(
            lambda: new(make), lambda g: CALLS["stream"](*g, batches()), every=4
        )
    ]
    assert set(found) == {0, 1, 2, 3}


def assert_torch_records_after_signals(run: Any) -> None:
    for _ in range(3):
        run(None)  # nothing is compiled from here on
    assert all(torch.is_grad_enabled() for _ in each_signal(lambda: None, run))


@pytest.mark.parametrize("name", ["descent", *MAKERS])
def test_torch_records_after_an_interrupted_update(name: str) -> None:
    model = relay.create_model(net, seed=0)
    grads = relay.grad(model, loss, (X,))
    given = {"lr": 0.1} if name == "descent" else {"optimizer": MAKERS[name]()}
    assert_torch_records_after_signals(lambda _: relay.update_model_params(model, grads, **given))


def test_torch_records_after_an_interrupted_call() -> None:
    model = relay.create_model(net, seed=0)
    assert_torch_records_after_signals(lambda _: relay.value_and_grad(model, loss, (X,)))


@relay_model
def embedded(words: Tensor[Int, (N,)]) -> Tensor[Float, (N, 2)]:
    return relay.linear(relay.embedding(words, num_embeddings=9, embedding_dim=3), out_features=2)


@relay
def embedded_loss(words: Tensor[Int, (N,)]) -> Float:
    return (embedded(words) ** 2).mean()


def test_torch_records_after_interrupted_arithmetic_of_gradients() -> None:
    model = relay.create_model(embedded, seed=0)
    words = torch.tensor([1, 4, 1])

    def arithmetic() -> object:
        grads = relay.grad(model, embedded_loss, (words,))
        halved = grads * 0.5
        moved = relay.sgd(model.params, halved, 0.1)
        return halved.norm(), moved.norm(), halved["embedding_1.weight"], -halved + grads

    assert_torch_records_after_signals(lambda _: arithmetic())
