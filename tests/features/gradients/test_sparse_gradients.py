"""Gradients of embeddings stay rows up to the update: no step makes a tensor like the table."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager, nullcontext
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from pyrelay import Dim, Float, Int, Model, Optimizer, Tensor, options, relay, relay_model
from pyrelay.runtime.models.records import are_rows
from tests.features.gradients.training import trained_by

K, N = Dim("K"), Dim("N")
ROWS, WIDTH = 5_000, 8


@relay_model
def net(ids: Tensor[Int, (N,)]) -> Tensor[Float, (N, 1)]:
    h = relay.embedding(ids, num_embeddings=5_000, embedding_dim=8)
    return relay.linear(relay.tanh(h), out_features=1)


@relay
def loss(ids: Tensor[Int, (N,)]) -> Float:
    return (net(ids) ** 2).sum()


@relay
def step(model: Model[net], ids: Tensor[Int, (N,)]) -> Float:
    value, grads = relay.value_and_grad(model, loss, (ids,))
    relay.update_model_params(model, grads, lr=0.1)
    return value


class Largest(TorchDispatchMode):
    """Notes the largest tensor that an operator makes; what works in place makes none."""

    elements = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        made = found if isinstance(found, tuple | list) else (found,)
        for tensor in made:
            if isinstance(tensor, torch.Tensor) and not any(tensor is a for a in args):
                own = {a.untyped_storage().data_ptr() for a in args if isinstance(a, torch.Tensor)}
                if tensor.untyped_storage().data_ptr() not in own:
                    self.elements = max(self.elements, tensor.numel())
        return found


@contextmanager
def touching_few_rows() -> Generator[None]:
    with Largest() as largest:
        yield
    assert largest.elements < ROWS


def models() -> tuple[Model[net], Any]:
    model = relay.create_model(net, seed=0)
    return model, relay.create_model(net, seed=0)


IDS = torch.tensor([3, 7, 3, 4_999, 0])


def dense(model: Any) -> dict[str, torch.Tensor]:
    table, weight, bias = (p.detach() for p in model.parameters())

    def run(params: Any) -> torch.Tensor:
        table, weight, bias = params
        return ((torch.tanh(table[IDS]) @ weight.T + bias) ** 2).sum()

    found = torch.func.grad(run)((table, weight, bias))
    return dict(zip(dict(model.named_parameters()), found, strict=True))


def test_the_gradient_reads_as_a_whole_table() -> None:
    model, _ = models()
    gradient = relay.grad(model, loss, (IDS,))
    torch.testing.assert_close(dict(gradient), dense(model))


def test_arithmetic_and_norm_keep_rows() -> None:
    model, _ = models()
    whole = dense(model)
    relay.grad(model, loss, (IDS,)).norm()  # compiled before anything is counted
    with touching_few_rows():
        gradient = relay.grad(model, loss, (IDS,)) * 0.5
        norm = gradient.norm()
    expected = torch.stack([v.norm() for v in whole.values()]).norm() * 0.5
    torch.testing.assert_close(norm, expected)
    torch.testing.assert_close(dict(gradient), {n: v * 0.5 for n, v in whole.items()})


MORE = torch.tensor([7, 1, 0])


def test_sums_of_gradients_keep_rows() -> None:
    model, _ = models()
    first, second = (relay.grad(model, loss, (ids,)) for ids in (IDS, MORE))
    pairs = list(zip(first.values(), second.values(), strict=True))
    found = {
        "+": (lambda a, b: a + b, [a + b for a, b in pairs]),
        "-": (lambda a, b: a - b, [a - b for a, b in pairs]),
        "sum": (lambda a, b: sum([a, -b, b]), [a for a, _ in pairs]),
    }
    for combine, expected in found.values():
        gradients = [relay.grad(model, loss, (ids,)) for ids in (IDS, MORE)]
        with touching_few_rows():
            both: Any = combine(*gradients)
            norm = both.norm()
        assert are_rows(both.parts[0])
        torch.testing.assert_close(norm, torch.stack([v.norm() for v in expected]).norm())
        torch.testing.assert_close([*both.values()], expected)


def test_as_many_rows_as_the_table_has_are_added_to_a_dense_gradient() -> None:
    model, _ = models()
    ids = torch.arange(ROWS // 2) * 2
    gradients = [relay.grad(model, loss, (ids,)) for _ in range(2)]
    both = gradients[0] + gradients[1]
    assert not are_rows(both.parts[0])
    whole = relay.grad(model, loss, (ids,)) * 2.0
    torch.testing.assert_close([*both.values()], [*whole.values()])


@pytest.mark.parametrize("lowering", ["c", "torch", "torch-regions"])
def test_descent_in_a_script_touches_the_rows_alone(lowering: str) -> None:
    model, other = models()
    gradient = dense(model)
    with options(lowering=lowering):
        for _ in range(3):  # a backend may leave first calls to torch
            gradients = relay.grad(other, loss, (IDS,))
            relay.update_model_params(other, gradients, lr=0.1)
        assert are_rows(gradients.parts[0])
        with touching_few_rows():
            relay.update_model_params(model, relay.grad(model, loss, (IDS,)), lr=0.1)
    for (name, own), start in zip(model.named_parameters(), models()[0].parameters(), strict=True):
        torch.testing.assert_close(own.detach(), start.detach() - 0.1 * gradient[name])


def test_descent_in_a_program_touches_the_rows_alone() -> None:
    model, other = models()
    gradient = dense(model)
    step(other, IDS)
    with touching_few_rows():
        step(model, IDS)
    for (name, own), start in zip(model.named_parameters(), models()[0].parameters(), strict=True):
        torch.testing.assert_close(own.detach(), start.detach() - 0.1 * gradient[name])


@pytest.mark.parametrize("make", ["sgd", "adam"])
def test_optimisers_move_and_remember_the_rows_alone(make: str) -> None:
    model, other = models()
    optimizers = (
        (relay.optim.sgd(lr=0.1, momentum=0.9), torch.optim.SGD(other.parameters(), 0.1, 0.9))
        if make == "sgd"
        else (relay.optim.adam(lr=0.1), torch.optim.Adam(other.parameters(), 0.1))
    )
    own, theirs = optimizers
    for _ in range(2):  # the same rows each time: lazy and dense steps agree there
        relay.update_model_params(model, relay.grad(model, loss, (IDS,)), optimizer=own)
        relay.update_model_params(other, relay.grad(other, loss, (IDS,)), optimizer=theirs)
    with touching_few_rows():
        relay.update_model_params(model, relay.grad(model, loss, (IDS,)), optimizer=own)
    relay.update_model_params(other, relay.grad(other, loss, (IDS,)), optimizer=theirs)
    for mine, expected in zip(model.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(mine, expected)


@pytest.mark.parametrize("lowering", ["c", "torch", "torch-regions"])
def test_ids_may_change_before_the_update(lowering: str) -> None:
    model, _ = models()
    whole = dense(model)
    ids = IDS.clone()
    with options(lowering=lowering):
        gradient = relay.grad(model, loss, (ids,))
    ids.zero_()
    torch.testing.assert_close(dict(gradient), whole)


# Tables that are read by indexing.


@relay_model
def indexed(ids: Tensor[Int, (N,)]) -> Tensor[Float, (N, 1)]:
    table = relay.param((5_000, 8))
    return relay.linear(relay.tanh(table[ids]), out_features=1)


@relay_model
def selected(ids: Tensor[Int, (N,)]) -> Tensor[Float, (N, 1)]:
    table = relay.param((5_000, 8))
    return relay.linear(relay.tanh(relay.index_select(table, 0, ids)), out_features=1)


@relay
def indexed_loss(ids: Tensor[Int, (N,)]) -> Float:
    return (indexed(ids) ** 2).sum()


@relay
def selected_loss(ids: Tensor[Int, (N,)]) -> Float:
    return (selected(ids) ** 2).sum()


@relay
def indexed_step(model: Model[indexed], ids: Tensor[Int, (N,)]) -> Float:
    value, grads = relay.value_and_grad(model, indexed_loss, (ids,))
    relay.update_model_params(model, grads, lr=0.1)
    return value


@pytest.mark.parametrize(
    ("definition", "of", "ids"),
    [(indexed, indexed_loss, [3, -1, 3, 0, -5_000]), (selected, selected_loss, [3, 7, 3, 4_999])],
    ids=["index", "index_select"],
)
def test_gradients_of_indexed_tables_are_rows(definition: Any, of: Any, ids: list[int]) -> None:
    model, other = (relay.create_model(definition, seed=0) for _ in range(2))
    numbers = torch.tensor(ids)
    table, weight, bias = (p.detach().clone() for p in model.parameters())

    def run(params: Any) -> torch.Tensor:
        table, weight, bias = params
        return ((torch.tanh(table[numbers]) @ weight.T + bias) ** 2).sum()

    whole = torch.func.grad(run)((table, weight, bias))
    found = dict(relay.grad(other, of, (numbers,)))
    torch.testing.assert_close(tuple(found.values()), whole)
    optimizer = relay.optim.adam(lr=0.1)
    relay.update_model_params(model, relay.grad(model, of, (numbers,)), optimizer=optimizer)
    with touching_few_rows():
        relay.update_model_params(model, relay.grad(model, of, (numbers,)), optimizer=optimizer)


def test_descent_of_an_indexed_table_in_a_program_touches_the_rows_alone() -> None:
    model, other = (relay.create_model(indexed, seed=0) for _ in range(2))
    gradient = dict(relay.grad(other, indexed_loss, (IDS,)))
    indexed_step(other, IDS)
    with touching_few_rows():
        indexed_step(model, IDS)
    start: Model = relay.create_model(indexed, seed=0)
    for (name, own), old in zip(model.named_parameters(), start.parameters(), strict=True):
        torch.testing.assert_close(own.detach(), old.detach() - 0.1 * gradient[name])


# Optimisers inside programs.


@relay_model
def twice(ids: Tensor[Int, (N,)]) -> Tensor[Float, (N, 1)]:
    table = relay.param((5_000, 8))
    both = relay.embedding(ids, weight=table) * table[ids + 1 - 2 * (ids % 2)]
    return relay.linear(both, out_features=1)


@relay
def twice_loss(ids: Tensor[Int, (N,)]) -> Float:
    return (twice(ids) ** 2).sum()


@relay_model
def padded(ids: Tensor[Int, (N,)]) -> Tensor[Float, (N, 1)]:
    h = relay.embedding(ids, num_embeddings=5_000, embedding_dim=8, padding_idx=7)
    return relay.linear(relay.tanh(h), out_features=1)


@relay
def padded_loss(ids: Tensor[Int, (N,)]) -> Float:
    return (padded(ids) ** 2).sum()


def test_the_row_of_the_padding_stays_and_the_others_are_rows() -> None:
    model: Any = relay.create_model(padded, seed=0)
    table, weight, bias = (p.detach().clone() for p in model.parameters())

    def run(table: torch.Tensor) -> torch.Tensor:
        found = torch.nn.functional.embedding(IDS, table, padding_idx=7)
        return ((torch.tanh(found) @ weight.T + bias) ** 2).sum()

    leaf = table.clone().requires_grad_()
    run(leaf).backward()
    gradient = relay.grad(model, padded_loss, (IDS,))
    assert are_rows(gradient.parts[0])
    torch.testing.assert_close(next(iter(gradient.values())), leaf.grad)
    relay.update_model_params(model, gradient, lr=0.1)
    for optimizer in (None, relay.optim.adam(lr=0.1)):
        for _ in range(2):
            gradient = relay.grad(model, padded_loss, (IDS,))
            with touching_few_rows() if optimizer is None else nullcontext():
                lr = 0.1 if optimizer is None else None
                relay.update_model_params(model, gradient, lr=lr, optimizer=optimizer)
    moved = next(model.parameters()).detach()
    torch.testing.assert_close(moved[7], table[7])
    assert not torch.equal(moved[3], table[3])


BATCHES = torch.tensor([[3, 7, 3, 4_999], [0, 7, 1, 2], [4_999, 4_999, 8, 0]])
OPTIMIZERS = {
    "adam": lambda: relay.optim.adam(lr=0.1, weight_decay=0.1),
    "adamw": lambda: relay.optim.adamw(lr=0.1),
    "momentum": lambda: relay.optim.sgd(0.1, 0.9, 0.1, nesterov=True),
    "decay": lambda: relay.optim.sgd(0.1, weight_decay=0.1),
}
PROGRAMS: dict[str, tuple[Any, Any]] = {
    "embedding": (net, loss),
    "index": (indexed, indexed_loss),
    "twice": (twice, twice_loss),
    "padding": (padded, padded_loss),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_optimisers_in_programs_move_and_remember_the_rows_alone(name: str, program: str) -> None:
    definition, of = PROGRAMS[program]
    train = trained_by(definition, of)
    own, theirs = OPTIMIZERS[name](), OPTIMIZERS[name]()
    model, other = (relay.create_model(definition, seed=0) for _ in range(2))
    train(model, own, BATCHES)
    for ids in BATCHES:
        relay.update_model_params(other, relay.grad(other, of, (ids,)), optimizer=theirs)
    torch.testing.assert_close([*model.parameters()], [*other.parameters()])
    torch.testing.assert_close(own.state_dict(model), theirs.state_dict(other))
    with touching_few_rows():
        train(model, own, BATCHES)


@relay
def clipped(model: Model[net], optimizer: Optimizer, ids: Tensor[Int, (N,)]) -> Float:
    grads = relay.grad(model, loss, (ids,)) + relay.grad(model, loss, (ids[1:],))
    size = grads.norm()
    grads = grads * (0.1 / relay.maximum(size, relay.tensor(0.1)))
    relay.update_model_params(model, grads, optimizer=optimizer)
    return size


@pytest.mark.parametrize("lowering", ["c", "torch", "torch-regions"])
@pytest.mark.parametrize("name", ["adam", "momentum"])
def test_gradients_clipped_by_their_norm_stay_rows(name: str, lowering: str) -> None:
    own, theirs = OPTIMIZERS[name](), OPTIMIZERS[name]()
    model, other = models()

    def clipped_in_a_script() -> Any:
        grads = relay.grad(other, loss, (IDS,)) + relay.grad(other, loss, (IDS[1:],))
        size = grads.norm()
        grads = grads * (0.1 / torch.maximum(size, torch.tensor(0.1)))
        relay.update_model_params(other, grads, optimizer=theirs)
        return size

    for _ in range(2):  # a backend may leave first calls to torch
        with options(lowering=lowering):
            found = clipped(model, own, IDS)
        torch.testing.assert_close(found, clipped_in_a_script())
    torch.testing.assert_close([*model.parameters()], [*other.parameters()])
    with options(lowering=lowering), touching_few_rows():
        clipped(model, own, IDS)


@relay_model
def huge(ids: Tensor[Int, (N,)], *, rows: int) -> Tensor[Float, (N, 1)]:
    found = relay.embedding(ids, num_embeddings=rows, embedding_dim=4)
    return relay.linear(relay.tanh(found), out_features=1)


@relay
def huge_loss(ids: Tensor[Int, (N,)]) -> Float:
    return (huge(ids) ** 2).sum()


class Elements(TorchDispatchMode):
    """Counts the elements that operators make, or write in place."""

    found = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        if func.overloadpacket in (torch.ops.aten.index_copy_, torch.ops.aten.index_add_):
            self.found += args[3].numel()
        elif isinstance(made, torch.Tensor) and not any(made is a for a in args):
            bases = {a.untyped_storage().data_ptr() for a in args if isinstance(a, torch.Tensor)}
            self.found += made.numel() * (made.untyped_storage().data_ptr() not in bases)
        elif isinstance(made, torch.Tensor):
            self.found += made.numel()
        return made


def test_a_table_of_a_million_rows_trains_at_the_cost_of_the_rows_it_touches() -> None:
    batches = torch.arange(12).reshape(3, 4)
    counts: dict[int, list[int]] = {}
    train = trained_by(huge, huge_loss)
    for rows in (1_000, 1_000_000):
        model = relay.create_model(huge, seed=0, rows=rows)
        for make in OPTIMIZERS.values():
            optimizer = make()
            train(model, optimizer, batches)
            with Elements() as elements:
                train(model, optimizer, batches)
            counts.setdefault(rows, []).append(elements.found)
    assert counts[1_000] == counts[1_000_000]
    assert all(0 < count < 4_000 for count in counts[1_000])  # fewer than those of the small table
