"""`relay.stop_gradient` of values of every type, against torch with detached tensors."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from pyrelay import Dim, Float, Fn, Int, Params, Tensor, relay, relay_model

N = Dim("N")


@dataclass(frozen=True)
class Leaf:
    value: Float
    label: Int


@dataclass(frozen=True)
class Fork:
    left: Tree
    right: Tree


Tree = Leaf | Fork


@relay
def total(tree: Tree, w: Float) -> Float:
    match tree:
        case Leaf(value, label):
            return value * value * w * label
        case Fork(left, right):
            return total(left, w) + total(right, w)


@relay
def half_held(tree: Tree, w: Float) -> Float:
    return total(relay.stop_gradient(tree), w) + total(tree, relay.stop_gradient((w, 2))[0])


def test_data_and_tuples_are_held_constant() -> None:
    tree = Fork(Leaf(torch.tensor(2.0), 1), Leaf(torch.tensor(3.0), 2))
    w = torch.tensor(1.5)
    for run in (relay.grad(half_held), relay.grad(half_held).interpret):
        gradient, slope = run(tree, w)
        assert gradient.left.value == 6.0
        assert gradient.right.value == 18.0
        assert slope == 22.0
    assert half_held(tree, w) == 66.0


@relay
def of_a_list(xs: list[Float], w: Float) -> Float:
    held = 0.0
    for x in relay.stop_gradient([x * w for x in xs]):
        held += x * w
    return held


def test_lists_are_held_constant() -> None:
    gradients, slope = relay.grad(of_a_list)(
        [torch.tensor(2.0), torch.tensor(3.0)], torch.tensor(1.5)
    )
    assert list(gradients) == [0.0, 0.0]
    assert slope == 7.5


@relay
def of_a_result(f: Fn[[Float], Float], x: Float) -> Float:
    return relay.stop_gradient((f(x), x))[0] * x


@relay
def with_a_closure(x: Float, w: Float) -> Float:
    return of_a_result(lambda y: y * w, x)


def test_results_of_closures_are_held_constant() -> None:
    assert relay.grad(with_a_closure)(torch.tensor(2.0), torch.tensor(3.0)) == (6.0, 0.0)


@relay
def second(x: Float) -> Float:
    return relay.grad(lambda y: relay.stop_gradient((y * y, y))[0] * y * x)(x)


def test_what_is_held_stays_held_in_higher_derivatives() -> None:
    # The inner gradient is y * y * x, where y * y is held.
    assert relay.grad(second)(torch.tensor(2.0)) == 4.0


@relay_model
def net(x: Tensor[Float, (N, 3)]) -> Tensor[Float, (N, 1)]:
    return relay.linear(x, out_features=1)


@relay
def error(x: Tensor[Float, (N, 3)]) -> Float:
    return (net(x) ** 2).sum()


@relay
def distance(params: Params[net], x: Tensor[Float, (N, 3)]) -> Float:
    target = relay.with_params(error)(relay.stop_gradient(params), x)
    return relay.with_params(error)(params, x) * target


def test_parameters_of_a_model_are_held_constant() -> None:
    model = relay.create_model(net, seed=0)
    x = torch.randn(4, 3)
    gradient = relay.grad(distance, wrt="params")(model.params, x)
    value, plain = relay.value_and_grad(model, error, (x,))
    torch.testing.assert_close(gradient["linear_1.weight"], plain["linear_1.weight"] * value)


def test_a_script_detaches_the_tensors_in_a_value() -> None:
    x = torch.ones(2, requires_grad=True)
    held = relay.stop_gradient((x, [x], Leaf(x.sum(), 3), 2.0))
    assert not held[0].requires_grad
    assert not held[1][0].requires_grad
    assert not held[2].value.requires_grad
    assert held[2].label == 3
    assert held[3] == 2.0
