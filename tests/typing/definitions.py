"""Definitions as users write them: every form of annotation."""

from collections.abc import Callable
from typing import Annotated

from pyrelay import (
    Bool,
    Dim,
    Float,
    Fn,
    Int,
    Model,
    Optimizer,
    Params,
    Tensor,
    float64,
    int32,
    relay,
    relay_model,
)

B, N, K = Dim("B"), Dim("N"), Dim("K")


@relay
def scalars(a: Float, b: Int, c: Bool, d: float = 1.0, e: int = 2, f: bool = True) -> Float:
    return a * b + d * e if c and f else a


@relay
def shapes(x: Tensor[Float, (N, 2 * K + 1)], y: Tensor[Int, (N,)], z: Tensor[Float, 3]) -> Float:
    return x.sum() + y.sum() + z.sum()


@relay
def other_dtypes(x: Tensor[float64, (N,)], y: Tensor[int32, (N, ...)]) -> Tensor[float64, (N,)]:
    return x * 2.0


@relay
def higher_order(f: Fn[[Float], Float], g: Callable[[Float], Float], x: Float) -> Float:
    return f(g(x))


@relay
def sized(n: Annotated[int, N], k: Annotated[int, Dim("K")]) -> Tensor[Float, (N, K)]:
    return relay.zeros((n, k)) * (n // 2)


@relay
def pairs(p: tuple[Float, tuple[Int, Tensor[Float, (N,)]]]) -> tuple[Float, Int]:
    a, (n, v) = p
    return a + v.sum(), n


@relay
def inner(x: Tensor[Float, (N,)]) -> Float:
    def square(value: Float) -> Float:
        return value * value

    total = 0.0
    for value in x:
        total += square(value)
    double = lambda v: v * 2.0  # noqa: E731
    return double(total)


@relay
def countdown(n: int) -> int:
    if n == 0:
        return 0
    return countdown(n - 1)


@relay_model
def block(x: Tensor[Float, (N, K)], *, hidden: int = 32) -> Tensor[Float, (N, K)]:
    h = relay.linear(x, out_features=hidden)
    return x + relay.linear(relay.relu(h), out_features=x.shape[1])


@relay_model
def stack(x: Tensor[Float, (N, K)], *, depth: int = 3) -> Tensor[Float, (N, K)]:
    for _ in relay.layers(depth):
        x = block(x, hidden=64)
    scale = relay.param((1,), init="ones", name="scale")
    return relay.dropout(x * scale, p=0.1)


@relay
def loss(x: Tensor[Float, (N, K)], y: Tensor[Float, (N, K)]) -> Float:
    return relay.mse_loss(stack(x), y)


@relay
def explicit(model: Model[stack], any_model: Model, x: Tensor[Float, (N, K)]) -> Float:
    grads = relay.grad(model, loss, (x, x))
    relay.update_model_params(model, grads, lr=0.1)
    return any_model(x).sum() + model(x).sum()


@relay
def moved(params: Params[stack], grads: Params[stack]) -> Params[stack]:
    return params - 0.1 * grads / (1.0 + grads.norm())


@relay
def train(model: Model[stack], optimizer: Optimizer, x: Tensor[Float, (N, K)]) -> Float:
    value, grads = relay.value_and_grad(model, loss, (x, x))
    relay.update_model_params(model, grads, optimizer=optimizer)
    return value
