"""Programs, the reference evaluator and scripts' calls run the implementations that apply."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
import torch

from pyrelay import Dim, Float, Tensor, dispatch, relay, relay_model
from pyrelay.ir.op import RuleCall, ShapeBehaviour
from tests.features.dispatch.dispatching import Counting, Seen, X, everywhere, mixed, triple, wave

N, M = Dim("N"), Dim("M")


def test_an_implementation_takes_the_place_of_the_operator_in_every_executor() -> None:
    with dispatch.register(relay.tanh, ("cpu", "float"), triple):
        torch.testing.assert_close(everywhere(wave, X), X * 6 + 1)
        torch.testing.assert_close(relay.tanh(X), X * 3)
    torch.testing.assert_close(everywhere(wave, X), torch.tanh(X) * 2 + 1)


def test_without_anything_that_applies_the_code_is_the_same_object() -> None:
    wave(X)
    program = next(iter(wave.runner._compiled.values())).entry.program
    plain = program.compiled(X.device)
    text = wave.show("host")
    other = dispatch.mode("Other")
    for unrelated in [
        lambda: dispatch.register(relay.tanh, "cuda", triple),
        lambda: dispatch.register(relay.tanh, "half", triple),
        lambda: dispatch.register(relay.exp, (), triple),
        lambda: dispatch.register(relay.tanh, other, triple),
        lambda: dispatch.fallback("meta", Seen()),
        lambda: dispatch.fallback(other, Seen()),
    ]:
        with unrelated():
            assert program.compiled(X.device) is plain
            assert wave.show("host") == text
    with dispatch.include(other):
        assert program.compiled(X.device) is plain
    with dispatch.fallback(other, Seen()):
        with dispatch.include(other):
            assert "dispatch__tanh" in wave.show("host")
            dispatched = program.compiled(X.device)
            assert dispatched is not plain
            with dispatch.exclude(other):
                assert program.compiled(X.device) is plain
        assert program.compiled(X.device) is plain
        with dispatch.include(other):
            assert program.compiled(X.device) is dispatched  # compiled once
    assert program.compiled(X.device) is plain


def test_only_the_calls_that_can_be_meant_are_dispatched() -> None:
    x, i = torch.tensor([-1.5, 2.0]), torch.tensor([-3, 4])
    with dispatch.register(relay.abs, "int", lambda x: torch.zeros_like(x)):
        torch.testing.assert_close(everywhere(mixed, x, i), torch.tensor([1.5, 2.0]))
        assert mixed.show("host").count("dispatch__abs") == 1
    with dispatch.register(relay.abs, (), lambda x: torch.zeros_like(x)):
        torch.testing.assert_close(everywhere(mixed, x, i), torch.zeros(2))
        assert mixed.show("host").count("dispatch__abs") == 2


def test_a_fallback_sees_every_operator_in_order() -> None:
    seen = Seen()
    with dispatch.fallback(Counting, seen), dispatch.include(Counting):
        torch.testing.assert_close(wave(X), torch.tanh(X) * 2 + 1)
        assert seen.names == ["tanh", "multiply", "add"]
        seen.names.clear()
        wave.interpret(X)
        assert seen.names == ["tanh", "multiply", "add"]
        seen.names.clear()
        relay.exp(X)
        assert seen.names == ["exp"]
    wave(X)
    assert seen.names == ["exp"]


def test_the_box_says_all_of_the_call() -> None:
    found: list[dispatch.OperatorCall] = []

    @relay
    def program(x: Tensor[Float, (N, M)]) -> Tensor[Float, (M,)]:
        return relay.mean(x.reshape(x.shape[1], x.shape[0]), dim=1)

    def note(call: dispatch.OperatorCall) -> Any:
        found.append(call)
        return call.redispatch()

    with dispatch.fallback("cpu", note), dispatch.include(Counting):
        program(torch.ones(4, 3))
    reshape, mean = found
    assert [c.name for c in found] == ["reshape", "mean"]
    assert reshape.attributes == {"shape": (3, 4)}
    assert dict(mean.attributes)["dim"] == (1,)
    assert [k.name for k in mean.keys] == ["Counting", "cpu", "float32", "float"]
    assert mean.device == torch.device("cpu")
    assert mean.operands[0].shape == (3, 4)
    assert mean.span.text == "relay.mean(x.reshape(x.shape[1], x.shape[0]), dim=1)"
    assert repr(mean) == "<call of mean giving Tensor[Float, (M,)]>"


def test_implementations_call_the_next_and_change_its_operands() -> None:
    def half(x: torch.Tensor) -> torch.Tensor:
        return dispatch.redispatch(x / 2) + 10

    def boxed(call: dispatch.OperatorCall) -> Any:
        return call.redispatch() * 100

    with (
        dispatch.register(relay.tanh, "cpu", half),
        dispatch.register(relay.tanh, "float", triple),
        dispatch.register(relay.tanh, Counting, boxed, boxed=True),
    ):
        torch.testing.assert_close(relay.tanh(X), X / 2 * 3 + 10)
        with dispatch.include(Counting):
            expected = (X / 2 * 3 + 10) * 100
            torch.testing.assert_close(relay.tanh(X), expected)
            torch.testing.assert_close(everywhere(wave, X), expected * 2 + 1)
            with dispatch.exclude("float"):
                torch.testing.assert_close(relay.tanh(X), (torch.tanh(X / 2) + 10) * 100)
            with dispatch.exclude(Counting, "cpu", "float"):
                torch.testing.assert_close(everywhere(wave, X), torch.tanh(X) * 2 + 1)


def test_an_implementation_is_not_chosen_again_for_what_it_calls() -> None:
    @relay
    def through(x: Tensor[Float, (N, 3)]) -> Tensor[Float, (N, 3)]:
        return relay.tanh(x) + 5.0

    depth: list[int] = []

    def nested(call: dispatch.OperatorCall) -> Any:
        depth.append(len(depth))
        return relay.exp(through(relay.tanh(call.operands[0]))) * 0 + call.redispatch()

    with dispatch.fallback(Counting, nested), dispatch.include(Counting):
        torch.testing.assert_close(everywhere(through, X), torch.tanh(X) + 5)
    assert len(depth) == 4  # tanh and add, in each executor


def test_a_relay_function_is_an_implementation() -> None:
    @relay
    def smooth(x: Tensor[Float, (N, 3)]) -> Tensor[Float, (N, 3)]:
        return x / (1.0 + relay.abs(x))

    with dispatch.register(relay.tanh, "cpu", smooth):
        torch.testing.assert_close(everywhere(wave, X), X / (1 + X.abs()) * 2 + 1)


def test_what_is_known_before_the_run_is_left_to_implementations_too() -> None:
    @relay
    def constants(x: Tensor[Float, (N,)]) -> Tensor[Float, (N,)]:
        return x * relay.tanh(1.0) + (x * 1.0) * 1.0

    x = torch.ones(2)
    with dispatch.register(relay.tanh, (), triple):
        torch.testing.assert_close(everywhere(constants, x), torch.tensor([4.0, 4.0]))
    with dispatch.register(relay.multiply, (), lambda a, b: a + b):
        torch.testing.assert_close(everywhere(constants, x), x + torch.tanh(x) + x + 2)
    torch.testing.assert_close(everywhere(constants, x), x * torch.tanh(x) + x)


def test_a_pool_stays_behind_the_function_that_has_an_implementation() -> None:
    @relay
    def pooled(x: Tensor[Float, (N, 1, 4, 4)]) -> Tensor[Float, (N, 1, 2, 2)]:
        return relay.max_pool2d(relay.tanh(x), kernel_size=2)

    x = torch.randn(2, 1, 4, 4)
    with dispatch.register(relay.tanh, (), torch.neg):
        expected = torch.nn.functional.max_pool2d(-x, 2)
        torch.testing.assert_close(everywhere(pooled, x), expected)


def test_omitted_operands_attributes_and_factories_reach_an_implementation() -> None:
    calls: list[tuple[Any, ...]] = []

    def linear(x: Any, weight: Any, bias: Any) -> Any:
        calls.append(("linear", bias))
        return torch.nn.functional.linear(x, weight, bias)

    def zeros(*, size: Any, dtype: Any, device: Any) -> Any:
        calls.append(("zeros", size, dtype, device))
        return torch.full(size, 7.0, device=device)

    def softmax(x: Any, *, dim: int, **rest: Any) -> Any:
        calls.append(("softmax", dim))
        return torch.softmax(x, dim)

    @relay
    def program(x: Tensor[Float, (N, 3)], w: Tensor[Float, (M, 3)]) -> Tensor[Float, (N, M)]:
        made = relay.zeros((x.shape[0], w.shape[0]))
        return relay.softmax(relay.linear(x, w), dim=-1) + made

    w = torch.randn(2, 3)
    with (
        dispatch.register(relay.linear, "cpu", linear),
        dispatch.register(relay.zeros, ("cpu", "float"), zeros),
        dispatch.register(relay.softmax, (), softmax),
    ):
        value = program(X, w)
        interpreted = program.interpret(X, w)
        assert relay.zeros((2,)).tolist() == [7.0, 7.0]
    torch.testing.assert_close(value, torch.softmax(X @ w.T, -1) + 7)
    torch.testing.assert_close(interpreted, value)
    cpu = torch.device("cpu")
    one_run = {("linear", None), ("zeros", (4, 2), None, cpu), ("softmax", -1)}
    assert set(calls) == {*one_run, ("zeros", (2,), None, cpu)}
    assert len(calls) == 7


@pytest.mark.host("tensors on another device")
def test_a_factory_is_dispatched_by_the_device_of_the_call() -> None:
    @relay
    def program(x: Tensor[Float, (N,)]) -> Tensor[Float, (N,)]:
        return relay.zeros((x.shape[0],)) + x

    where: list[torch.device] = []

    def zeros(*, size: Any, dtype: Any, device: Any) -> Any:
        where.append(device)
        return torch.zeros(size, device=device)

    with dispatch.register(relay.zeros, "meta", zeros):
        program(torch.ones(2))
        assert where == []
        assert program(torch.ones(2, device="meta")).device.type == "meta"
        assert where == [torch.device("meta")]


def test_numbers_stay_numbers_where_the_program_has_numbers() -> None:
    seen: list[type] = []

    @relay
    def collatz(n: int) -> int:
        steps = 0
        while n > 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            steps += 1
        return steps

    def note(call: dispatch.OperatorCall) -> Any:
        seen.extend(map(type, call.operands))
        return call.redispatch()

    with dispatch.fallback(Counting, note), dispatch.include(Counting):
        assert collatz(27) == 111
        assert collatz.interpret(27) == 111
    assert set(seen) == {int, bool} or set(seen) == {int}
    with dispatch.register("mod", "int", lambda a, b: torch.tensor(a % b)):
        assert collatz(27) == 111
        assert collatz.interpret(27) == 111


@dataclass(frozen=True)
class Leaf:
    value: Tensor[Float, (3,)]


@dataclass(frozen=True)
class Node:
    left: Tree
    right: Tree


Tree = Leaf | Node


@relay
def total(t: Tree) -> Tensor[Float, (3,)]:
    match t:
        case Leaf(v):
            return relay.tanh(v)
        case Node(left, right):
            return total(left) + total(right)


@relay
def deep(n: int, x: Tensor[Float, (N,)]) -> Tensor[Float, (N,)]:
    return x if n == 0 else relay.tanh(deep(n - 1, x)) * 0.5


def test_recursion_data_and_depth_are_as_without() -> None:
    tree: Any = Leaf(torch.ones(3))
    for _ in range(4):
        tree = Node(tree, tree)
    with dispatch.register(relay.tanh, (), triple):
        torch.testing.assert_close(everywhere(total, tree), torch.full((3,), 48.0))
        value = deep(5_000, torch.ones(2))
    assert torch.isinf(value).all()


def test_a_value_written_in_place_is_not_one_that_an_implementation_may_hold() -> None:
    @relay
    def filled(x: Tensor[Float, (N,)]) -> Tensor[Float, (N,)]:
        y = relay.tanh(x)
        for i in range(x.shape[0]):
            y[i] = y[i] + 1.0
        return y

    kept: list[torch.Tensor] = []

    def keep(x: torch.Tensor) -> torch.Tensor:
        kept.append(x.clone())
        return kept[-1]

    x = torch.zeros(3)
    with dispatch.register(relay.tanh, (), lambda x: x):
        assert everywhere(filled, x).tolist() == [1, 1, 1]
        assert x.tolist() == [0, 0, 0]
    with dispatch.register(relay.tanh, (), keep):
        assert everywhere(filled, x).tolist() == [1, 1, 1]
        assert [k.tolist() for k in kept] == [[0, 0, 0], [0, 0, 0]]


def test_a_result_that_is_an_argument_is_copied_on_its_way_out() -> None:
    @relay
    def same(x: Tensor[Float, (N,)]) -> Tensor[Float, (N,)]:
        return relay.tanh(x)

    x = torch.ones(3)
    for implementation in (lambda x: x, lambda x: x.view(3)):
        with dispatch.register(relay.tanh, (), implementation):
            value = same(x)
        assert value.data_ptr() != x.data_ptr()


# Exported programs, users' operators, threads and tasks, refusals.


@relay_model
def net(x: Tensor[Float, (N, 4)]) -> Tensor[Float, (N, 2)]:
    return relay.linear(relay.tanh(relay.linear(x, out_features=8)), out_features=2)


def test_an_exported_model_runs_the_table_of_its_process(tmp_path: Any) -> None:
    model = relay.create_model(net, seed=1)
    with dispatch.register(relay.tanh, (), torch.zeros_like):
        exported = relay.export_model(model)
        exported.save(tmp_path / "net.relay")
    x = torch.randn(2, 4)
    loaded = relay.load_model(tmp_path / "net.relay")
    for run in (exported, loaded):
        torch.testing.assert_close(run(x), model(x))  # no implementation is saved
        with dispatch.register(relay.tanh, (), torch.zeros_like):
            bias = dict(model.named_parameters())
            last = [v for n, v in bias.items() if n.endswith("bias")][-1]
            torch.testing.assert_close(run(x), last.detach().expand(2, 2))


def _same_type(call: RuleCall) -> Any:
    return call.tensor(0)


@relay.operator(type_rule=_same_type, samples=(), shape=ShapeBehaviour.POINTWISE)
def doubled(x: torch.Tensor, *, times: int = 1) -> torch.Tensor:
    return x * 2**times


@relay
def twice(x: Tensor[Float, (N,)]) -> Tensor[Float, (N,)]:
    return doubled(x, times=2)


def test_a_users_operator_has_implementations_too() -> None:
    x = torch.ones(2)
    assert twice(x).tolist() == [4, 4]
    with dispatch.register(doubled, "cpu", lambda x, times: x + times):
        assert everywhere(twice, x).tolist() == [3, 3]
        assert doubled(x).tolist() == [2, 2]
    seen = Seen()
    with dispatch.fallback(Counting, seen), dispatch.include(Counting):
        twice(x)
    assert seen.names == ["doubled"]
