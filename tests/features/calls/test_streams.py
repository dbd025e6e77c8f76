"""Loops over a Python iterable of the caller's: values, how far it is read, what goes wrong."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from pyrelay import Dim, Float, Int, Model, Tensor, relay, relay_model
from pyrelay.diagnostics.diagnostic import RunError
from pyrelay.ir.equality import alpha_equal
from pyrelay.text.json import from_json, to_json
from pyrelay.text.parser import parse_module
from pyrelay.text.printer import to_text

B, D, N = Dim("B"), Dim("D"), Dim("N")


def adds(data: Iterable[Tensor[Float, (N,)]]) -> Float:
    total = 0.0
    for x in data:
        total += x.sum() * x.shape[0]
    return total


def leaves_early(data: Iterable[Tensor[Float, (N,)]]) -> Float:
    total = 0.0
    for x in data:
        if x.shape[0] == 2:
            continue
        if x.shape[0] > 3:
            return total
        total += x.sum()
    return total + 100.0


def breaks(data: Iterable[Tensor[Float, (N,)]]) -> Float:
    total = 0.0
    for x in data:
        total += x.sum()
        if x.shape[0] >= 3:
            break
    return total


def numbers_them(data: Iterator[Tensor[Float, (N,)]]) -> Float:
    total = 0.0
    for i, x in enumerate(data, 1):
        total += x.sum() * i
    return total


def walks_beside_a_tensor(data: Iterable[Tensor[Float, (N,)]]) -> Float:
    total = 0.0
    for x, w in zip(data, relay.arange(3), strict=False):
        total += x.sum() * w
    return total


def walks_behind_a_tensor(data: Iterable[Tensor[Float, (N,)]]) -> Float:
    total = 0.0
    for w, x in zip(range(3), data, strict=False):
        total += x.sum() * w
    return total


def walks_in_pairs(data: Iterator[Tensor[Float, (N,)]]) -> Float:
    total = 0.0
    for x, y in zip(data, data, strict=False):
        total += x.sum() * 10 + y.sum()
    return total


def walks_twice(data: Iterable[Tensor[Float, (N,)]]) -> Float:
    total = 0.0
    for k in range(2):
        for x in data:
            total += x.sum() + k
    return total


def nests(data: Iterator[Tensor[Float, (N,)]]) -> Float:
    total = 0.0
    for x in data:
        for y in data:
            total += x.sum() * y.sum()
            if y.shape[0] > 1:
                break
    return total


def has_a_local_function(data: Iterable[Tensor[Float, (N,)]]) -> Float:
    again = data

    def add(k):
        total = 0.0
        for x in again:
            total += x.sum() * k
        return total

    return add(2.0) + add(3.0)


LOOPS = [
    adds,
    breaks,
    has_a_local_function,
    leaves_early,
    nests,
    numbers_them,
    walks_behind_a_tensor,
    walks_beside_a_tensor,
    walks_in_pairs,
    walks_twice,
]
each_loop = pytest.mark.parametrize("loop", LOOPS, ids=lambda f: f.__name__)


def tensors(count: int) -> list[torch.Tensor]:
    return [torch.arange(1.0, n + 1) for n in range(count)]


class PythonNames:
    """What the loops take from `relay`, for running them as plain Python."""

    arange = staticmethod(torch.arange)


def as_python(function: Callable[..., Any], data: Iterable[Any]) -> Any:
    return eval(  # the same code, with torch in place of relay
        "run(data)",
        {"run": type(adds)(function.__code__, {**function.__globals__, "relay": PythonNames})},
        {"data": data},
    )


@each_loop
@pytest.mark.parametrize("count", [0, 1, 2, 3, 5, 6])
def test_a_loop_means_what_it_means_in_python_and_reads_as_far(
    loop: Callable[..., Any], count: int
) -> None:
    compiled, data = relay(loop), tensors(count)
    for make in (list[Any], iter):
        given, expected = make(data), make(data)
        wanted = as_python(loop, expected)
        value = compiled(given)
        torch.testing.assert_close(value, torch.as_tensor(wanted, dtype=torch.float32))
        assert [len(x) for x in given] == [len(x) for x in expected]
        torch.testing.assert_close(compiled.interpret(make(data)), value)


@each_loop
def test_a_program_that_reads_an_iterable_can_be_written_down(loop: Callable[..., Any]) -> None:
    module = relay(loop).module
    assert alpha_equal(parse_module(to_text(module)), module)
    assert alpha_equal(from_json(to_json(module)), module)


@relay
def weighted(data: Iterable[tuple[Tensor[Float, (N, D)], Int]], w: Tensor[Float, (D,)]) -> Float:
    total = 0.0
    for x, k in data:
        total += (x @ w).sum() * k
    return total


def test_elements_are_converted_like_arguments() -> None:
    w = torch.tensor([1.0, 2.0])
    x = np.ones((3, 2), dtype=np.float32)
    data = [(x, 2), [torch.ones(1, 2), torch.tensor(3)], (x, np.int64(1))]
    assert weighted(data, w).item() == 36.0


def test_a_size_that_a_parameter_shows_is_that_of_every_element() -> None:
    with pytest.raises(RunError) as caught:
        weighted([(torch.ones(1, 2), 1), (torch.ones(1, 3), 1)], torch.ones(2))
    assert caught.value.codes == ("RL507",)
    assert "element 1 of `data`" in str(caught.value)


def test_gradients_go_through_a_loop_to_what_is_not_in_the_iterable() -> None:
    data = [(torch.randn(n, 2), n) for n in range(1, 4)]
    w = torch.randn(2, requires_grad=True)
    weighted(data, w).backward()
    wanted = sum((x * k).sum(0) for x, k in data)
    torch.testing.assert_close(w.grad, wanted)
    torch.testing.assert_close(relay.grad(weighted, wrt="w")(data, w.detach()), wanted)


@relay
def last(data: Iterable[Tensor[Float, (3,)]], x: Tensor[Float, (3,)]) -> Tensor[Float, (3,)]:
    for x in data:  # noqa: B007  the last is what counts
        pass
    return x


@relay
def view_of_last(data: Iterable[Tensor[Float, (3,)]], x: Tensor[Float, (3,)]):
    for x in data:  # noqa: B007  the last is what counts
        pass
    return x[1:], x.sum()


def test_results_share_no_memory_with_elements() -> None:
    data = [torch.ones(3), torch.arange(3.0)]
    found = last(data, torch.zeros(3))
    found += 1.0
    part, _ = view_of_last(data, torch.zeros(3))
    part += 1.0
    assert data[1].tolist() == [0.0, 1.0, 2.0]


class MineError(Exception):
    pass


def broken() -> Generator[torch.Tensor]:
    yield torch.ones(2)
    raise MineError("no more")


@pytest.mark.parametrize("run", [relay(adds), relay(adds).interpret])
def test_an_exception_of_the_iterator_comes_out_as_it_was(run: Callable[..., Any]) -> None:
    with pytest.raises(MineError, match="no more") as caught:
        run(broken())
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert caught.traceback[-1].name == "broken"


def test_an_iterator_runs_under_the_grad_mode_of_the_script() -> None:
    seen: list[bool] = []

    def data() -> Generator[torch.Tensor]:
        seen.append(torch.is_grad_enabled())
        yield torch.ones(2)

    relay(adds)(data())
    with torch.no_grad():
        relay(adds)(data())
    assert seen == [True, False]


def test_an_iterable_is_no_static_argument_and_is_not_kept() -> None:
    compiled = relay(adds)
    compiled(tensors(2))
    compiled(iter(tensors(4)))
    assert compiled.cache_info().entries == 1


T = TypeVar("T")


@dataclass(frozen=True)
class Word(Generic[T]):
    number: T


@dataclass(frozen=True)
class Pair(Generic[T]):
    left: Tree[T]
    right: Tree[T]


Tree = Word[T] | Pair[T]


@relay
def added(tree: Tree[Int]) -> Int:
    match tree:
        case Word(number):
            return number
        case Pair(left, right):
            return added(left) + added(right)


@relay
def data_of_all_kinds(
    trees: Iterable[tuple[Tree[Int], str]],
    rows: Iterable[list[Tensor[Float, (N,)]]],
    ragged: Iterable[list[Tensor[Float, (Any,)]]],
    options: Iterable[Float | None],
) -> Float:
    total = 0.0
    for tree, name in trees:
        if name == "counts":
            total += added(tree)
    for row in rows:
        total += relay.stack(row).sum() * row[0].shape[0]
    for row in ragged:
        for x in row:
            total += x.sum()
    for option in options:
        if option is not None:
            total += option
    return total


@pytest.mark.parametrize("run", [data_of_all_kinds, data_of_all_kinds.interpret])
def test_elements_may_be_data(run: Callable[..., Any]) -> None:
    trees = [(Pair(Word(1), Word(2)), "counts"), (Word(50), "is left out")]
    rows = [[torch.ones(2)] * 3, [torch.ones(5)]]
    found = run(iter(trees), rows, [[torch.ones(2), torch.ones(3)], []], [None, 0.5])
    assert found.item() == 3.0 + (2 * 6 + 5 * 5) + 5.0 + 0.5


def test_an_iterable_of_data_can_be_written_down() -> None:
    module = data_of_all_kinds.module
    assert alpha_equal(parse_module(to_text(module)), module)
    assert alpha_equal(from_json(to_json(module)), module)


def test_an_element_that_is_no_value_of_the_data_type_is_named() -> None:
    with pytest.raises(RunError) as caught:
        data_of_all_kinds([(Word(1), "a"), (Word(1.5), "b")], [], [], [])
    assert caught.value.codes == ("RL507",)
    assert "element 1 of `trees`" in str(caught.value)


@relay_model
def classify(x: Tensor[Float, (N, D)]) -> Tensor[Float, (N, 3)]:
    return relay.linear(relay.tanh(relay.linear(x, out_features=8)), out_features=3)


@relay
def loss(x: Tensor[Float, (N, D)], y: Tensor[Int, (N,)]) -> Float:
    return relay.softmax_cross_entropy(classify(x), y)


@relay
def train(
    model: Model[classify],
    data: Iterable[tuple[Tensor[Float, (N, 4)], Tensor[Int, (N,)]]],
    *,
    epochs: int = 1,
) -> Float:
    total, steps = 0.0, 0
    for _ in range(epochs):
        for x, y in data:
            value, grads = relay.value_and_grad(model, loss, (x, y))
            relay.update_model_params(model, grads, lr=0.5)
            total += value
            steps += 1
    return total / steps


def loader() -> DataLoader[Any]:
    torch.manual_seed(0)
    xs = torch.randn(50, 4)
    return DataLoader(TensorDataset(xs, (xs.sum(1) > 0).long()), batch_size=8)


def test_a_model_learns_from_a_data_loader_as_from_a_loop_in_a_script() -> None:
    inside = relay.create_model(classify, seed=0, dims={D: 4})
    outside = relay.create_model(classify, seed=0, dims={D: 4})
    first = train(inside, loader())
    for x, y in loader():
        _, grads = relay.value_and_grad(outside, loss, (x, y))
        relay.update_model_params(outside, grads, lr=0.5)
    for name, value in outside.state_dict().items():
        torch.testing.assert_close(inside.state_dict()[name], value)
    assert train(inside, loader(), epochs=5) < first


def test_an_interrupted_loop_leaves_the_last_whole_update() -> None:
    def interrupted() -> Generator[Any]:
        for step, batch in enumerate(loader()):
            if step == 3:
                raise KeyboardInterrupt
            yield batch

    model = relay.create_model(classify, seed=0, dims={D: 4})
    same = relay.create_model(classify, seed=0, dims={D: 4})
    with pytest.raises(KeyboardInterrupt):
        train(model, interrupted())
    train(same, list(loader())[:3])
    for name, value in same.state_dict().items():
        torch.testing.assert_close(model.state_dict()[name], value)
