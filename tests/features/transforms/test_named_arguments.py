"""What transforms make takes arguments by the names of the function's parameters, in programs as in
scripts."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pyrelay import Dim, Float, Tensor, relay, relay_model

N = Dim("N")


@relay
def scaled(x: Float, y: Float, k: Float = 2.0, *, power: int = 1) -> Float:
    value = x * y * y * k
    for _ in relay.layers(power):
        value = value * x
    return value


slope = relay.grad(scaled, wrt="y")
mapped = relay.vmap(scaled, in_axes=(0, None, None))


@relay
def by_name(x: Float, y: Float) -> Float:
    return relay.grad(scaled, wrt="y")(x, y=y)


@relay
def in_another_order(x: Float, y: Float) -> Float:
    return relay.grad(scaled, wrt="y")(k=2.0, y=y, x=x)


@relay
def value_and_slope(x: Float, y: Float) -> Float:
    return relay.value_and_grad(scaled, wrt="y")(y=y, x=x)[1]


@relay
def pulled(x: Float, y: Float) -> Float:
    return relay.vjp(scaled, wrt="y")(x, y=y)[1](1.0)


@relay
def pushed(x: Float, y: Float) -> Float:
    return relay.jvp(scaled, wrt="y")(tangents=(1.0,), primals=(x, y))[1]


@relay
def of_a_local_function(x: Float, y: Float) -> Float:
    def product(a: Float, b: Float, c: Float = 2.0) -> Float:
        return a * a * b * b * c

    return relay.grad(product, wrt="b")(x, b=y)


@relay
def of_a_lambda(x: Float, y: Float) -> Float:
    return relay.grad(lambda a, b: 2.0 * a * a * b * b, wrt="b")(b=y, a=x)


@relay
def of_a_checkpoint(x: Float, y: Float) -> Float:
    return relay.grad(lambda z: relay.checkpoint(scaled)(y=z, x=x))(y)


@relay
def of_a_local_name(x: Float, y: Float) -> Float:
    gradient = relay.grad(scaled, wrt="y")
    return gradient(y=y, x=x)


@relay
def of_a_local_name_with_a_default(x: Float, y: Float) -> Float:
    gradient = relay.grad(scaled, wrt="y")
    return gradient(x, y)


@relay
def of_a_local_name_of_a_local_function(x: Float, y: Float) -> Float:
    def product(a: Float, b: Float) -> Float:
        return 2.0 * a * a * b * b

    push = relay.jvp(product, wrt="b")
    return push(tangents=(1.0,), primals=(x, y))[1]


@relay
def of_a_local_name_of_a_map(x: Float, y: Float) -> Float:
    mapped = relay.vmap(relay.grad(scaled, wrt="y"), in_axes=(None, 0, None))
    return mapped(x, k=2.0, y=relay.stack([y])).sum()


@relay
def of_a_script(x: Float, y: Float) -> Float:
    return slope(y=y, x=x)


@pytest.mark.parametrize(
    "function",
    [
        by_name,
        in_another_order,
        value_and_slope,
        pulled,
        pushed,
        of_a_local_function,
        of_a_lambda,
        of_a_checkpoint,
        of_a_script,
        of_a_local_name,
        of_a_local_name_with_a_default,
        of_a_local_name_of_a_local_function,
        of_a_local_name_of_a_map,
        slope,
    ],
)
def test_arguments_are_given_by_name(function: Any) -> None:
    for found in (function(3.0, 5.0), function.interpret(3.0, y=5.0)):
        assert float(found) == 180.0


@relay
def curvature(x: Float, y: Float) -> Float:
    return relay.grad(relay.grad(scaled, wrt="y"), wrt="y")(x, y=y)


@relay
def defaults_of_both(x: Float, y: Float) -> Float:
    return relay.grad(relay.grad(scaled, wrt="y"), wrt="y")(x, y)


@pytest.mark.parametrize("function", [curvature, defaults_of_both])
def test_a_transform_of_a_transform_has_the_names_of_the_function(function: Any) -> None:
    assert float(function(3.0, 5.0)) == 36.0


@relay
def steep(x: Float, y: Float) -> Float:
    return relay.grad(scaled, wrt="y")(x, y, power=2)


@relay
def steep_of_a_script(x: Float, y: Float) -> Float:
    return slope(x, y, power=2)


@relay
def steep_along(x: Float, y: Float) -> Float:
    return relay.jvp(scaled, wrt="y")((x, y), (1.0,), power=2)[1]


@relay
def steep_again(x: Float, y: Float) -> Float:
    return relay.grad(lambda z: relay.checkpoint(scaled)(x, z, power=2))(y)


@relay
def steep_of_a_local_name(x: Float, y: Float) -> Float:
    gradient = relay.grad(scaled, wrt="y")
    return gradient(x, y, power=2)


@relay
def steep_under_policies(x: Float, y: Float) -> Float:
    return relay.grad(relay.autocast(relay.checkpoint(scaled)), wrt="y")(x, y, power=2)


@relay
def steep_in_a_batch(x: Float, y: Float) -> Float:
    ys = relay.stack([y])
    return relay.vmap(relay.grad(scaled, wrt="y"), in_axes=(None, 0))(x, ys, power=2).sum()


@relay
def steep_of_a_gradient(x: Float, y: Float) -> Float:
    return relay.jvp(relay.grad(scaled, wrt="y"), wrt="y")((x, y), (y,), power=2)[1]


STEEP = (
    steep,
    steep_of_a_script,
    steep_along,
    steep_again,
    steep_of_a_local_name,
    steep_under_policies,
    steep_in_a_batch,
    steep_of_a_gradient,
)


@pytest.mark.parametrize("function", STEEP)
def test_static_arguments_count(function: Any) -> None:
    assert float(function(3.0, 5.0)) == 540.0
    assert float(slope(3.0, 5.0, power=2)) == 540.0


@relay
def each(xs: Tensor[Float, (N,)], y: Float) -> Tensor[Float, (N,)]:
    return relay.vmap(scaled, in_axes=(0, None, None))(xs, k=1.0, y=y)


@relay
def each_by_default(xs: Tensor[Float, (N,)], y: Float) -> Tensor[Float, (N,)]:
    return relay.vmap(scaled, in_axes=(0, None, None))(y=y, x=xs)


@relay
def each_of_a_script(xs: Tensor[Float, (N,)], y: Float) -> Tensor[Float, (N,)]:
    return mapped(xs, y, 2.0, power=2)


@relay
def weighted(x: Float, k: Float = 2.0, y: Float = 3.0) -> Float:
    return x * k + y


@relay
def each_but_one(xs: Tensor[Float, (N,)]) -> Tensor[Float, (N,)]:
    return relay.vmap(weighted)(xs, y=xs) + relay.vmap(weighted, in_axes=(0, None, 0))(xs, y=xs)


def test_functions_over_batches_take_names() -> None:
    xs, y = torch.tensor([1.0, 2.0]), torch.tensor(3.0)
    torch.testing.assert_close(each(xs, y), 9.0 * xs**2)
    torch.testing.assert_close(each_by_default(xs, y), 18.0 * xs**2)
    torch.testing.assert_close(each_of_a_script(xs, y), 18.0 * xs**3)
    torch.testing.assert_close(each_but_one(xs), 6.0 * xs)


@relay
def printed(x: Float, *, name: str) -> Float:
    print(name)  # noqa: T201
    return x


@relay
def written(x: Float, y: Float) -> Float:
    return relay.grad(scaled, wrt="y")(y=printed(y, name="y"), x=printed(x, name="x"))


def test_arguments_are_evaluated_in_the_order_they_are_written(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert float(written(3.0, 5.0)) == 180.0
    assert capsys.readouterr().out == "y\nx\n"


@relay_model
def net(x: Tensor[Float, (N, 2)]) -> Tensor[Float, (N, 1)]:
    return relay.linear(x, out_features=1)


@relay_model
def times(x: Tensor[Float, (N, 2)], *, factor: int = 2) -> Tensor[Float, (N, 2)]:
    return relay.linear(x, out_features=2) * factor


checkpointed = relay.checkpoint(times)


@relay_model
def of_each_kind(x: Tensor[Float, (N, 2)]) -> Tensor[Float, (N, 2)]:
    return checkpointed(x, factor=3) + relay.checkpoint(times)(x, factor=5)


def test_models_under_a_policy_have_their_static_arguments() -> None:
    model, x = relay.create_model(of_each_kind, seed=0), torch.ones(1, 2)
    one, other = (w @ x[0] + b for w, b in zip(*[iter(model.parameters())] * 2, strict=True))
    torch.testing.assert_close(model(x)[0].detach(), (3.0 * one + 5.0 * other).detach())


@relay
def loss(x: Tensor[Float, (N, 2)], factor: Float = 2.0) -> Float:
    return (net(x) ** 2).sum() * factor


@relay
def pure(x: Tensor[Float, (N, 2)]) -> Float:
    model = relay.create_model(net, seed=0)
    return relay.with_params(loss)(model.params, factor=1.0, x=x)


def test_pure_functions_take_names() -> None:
    x, model = torch.ones(3, 2), relay.create_model(net, seed=0)
    torch.testing.assert_close(pure(x), (model(x) ** 2).sum().detach())
