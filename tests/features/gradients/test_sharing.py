"""Gradients of values that are shared, stored or not used, and those that Relay's tests expect."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from pyrelay import Dim, Float, Fn, Tensor, float64, relay, relay_model
from tests.binary_trees import Leaf, Node, Tree

N, M = Dim("N"), Dim("M")
VECTOR = Tensor[float64, (N,)]


@dataclass(frozen=True)
class Layer:
    apply: Fn[[float64], float64]
    weight: float64


def number(value: float) -> torch.Tensor:
    return torch.tensor(value, dtype=torch.float64)


def test_a_tensor_that_is_two_arguments_has_a_gradient_for_each() -> None:
    @relay
    def dot(x: VECTOR, y: VECTOR) -> float64:
        return (relay.sin(x) * y).sum()

    x = torch.tensor([0.5, -1.0], dtype=torch.float64)
    first, second = relay.grad(dot)(x, x)
    torch.testing.assert_close(first, torch.cos(x) * x)
    torch.testing.assert_close(second, torch.sin(x))
    _, tangent = relay.jvp(dot)((x, x), (x, x * 0.0))
    torch.testing.assert_close(tangent, (torch.cos(x) * x * x).sum())


def test_a_subtree_that_stands_twice_has_a_gradient_at_each_place() -> None:
    @relay
    def total(tree: Tree[float64], weight: float64) -> float64:
        match tree:
            case Leaf(value):
                return value * value * weight
            case Node(left, right):
                return total(left, weight) + total(right, weight * 3.0)

    shared = Node(Leaf(number(2.0)), Leaf(number(5.0)))
    found = relay.grad(total, wrt="tree")(Node(shared, shared), 1.0)
    left, right = found.left, found.right
    values = [float(t.value) for t in (left.left, left.right, right.left, right.right)]
    assert values == [4.0, 30.0, 12.0, 90.0]


def test_functions_in_a_list_and_in_data_are_differentiated_with_what_they_capture() -> None:
    @relay
    def listed(x: float64, w: float64) -> float64:
        functions = [lambda z: z * w, lambda z: relay.sin(z), lambda z: z + w * w]
        for f in functions:
            x = f(x)
        return x

    @relay
    def stored(x: float64, w: float64) -> float64:
        layer = Layer(relay.grad(lambda z: z * z * z * w), w)
        return layer.apply(x) * layer.weight

    x, w = number(0.7), number(-1.3)
    close = torch.testing.assert_close
    close(relay.grad(listed)(x, w), (w * torch.cos(x * w), x * torch.cos(x * w) + 2.0 * w))
    close(relay.grad(stored)(x, w), (6.0 * x * w * w, 6.0 * x * x * w))


@relay_model
def either(x: Tensor[Float, (N, 2)], first: bool) -> Tensor[Float, (N, 1)]:
    if first:
        return relay.linear(x, out_features=1, name="one")
    return relay.linear(relay.tanh(x), out_features=1, name="other")


@relay
def loss(x: Tensor[Float, (N, 2)], first: bool) -> Float:
    return (either(x, first) ** 2).sum()


def test_parameters_of_a_branch_that_did_not_run_have_zeros_of_their_shapes() -> None:
    model = relay.create_model(either)
    x = torch.tensor([[1.0, 2.0], [0.5, -1.0]])
    for first, used in ((True, "one"), (False, "other")):
        grads = relay.grad(model, loss, (x, first))
        for name, gradient in grads.items():
            assert gradient.shape == dict(model.named_parameters())[name].shape
            assert bool((gradient != 0.0).any()) == name.startswith(used)


def test_relays_values_of_gradients_of_broadcasts_and_of_one_part_of_a_pair() -> None:
    @relay
    def added(x: Tensor[float64, (3, 4, 1)], y: Tensor[float64, (1, 5)]) -> float64:
        return (x + y).sum()

    @relay
    def subtracted(x: Tensor[float64, (3, 4, 1)], y: Tensor[float64, (1, 5)]) -> float64:
        return (x - y).sum()

    @relay
    def pair(x: VECTOR) -> tuple[VECTOR, VECTOR]:
        y = x + x
        return y + y, y

    x, y = torch.randn(3, 4, 1, dtype=torch.float64), torch.randn(1, 5, dtype=torch.float64)
    fives, twelves = torch.full_like(x, 5.0), torch.full_like(y, 12.0)
    torch.testing.assert_close(relay.grad(added)(x, y), (fives, twelves))
    torch.testing.assert_close(relay.grad(subtracted)(x, y), (fives, -twelves))
    (first, second), pull = relay.vjp(pair)(y[0])
    torch.testing.assert_close((first, second), (4.0 * y[0], 2.0 * y[0]))
    torch.testing.assert_close(
        pull((torch.ones_like(y[0]), torch.zeros_like(y[0]))), torch.full_like(y[0], 4.0)
    )


def test_a_product_is_not_computed_again_by_its_gradient() -> None:
    @relay
    def centred(x: Tensor[float64, (N, M)], w: Tensor[float64, (N, M)]) -> float64:
        xy = relay.linear(x, w)
        return (xy - xy.sum(dim=1, keepdim=True)).sum()

    program = relay.grad(centred).show("simplified")
    assert program.count("linear(") + program.count("matmul(") <= 3
