"""What each construct becomes in the IR, as text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pyrelay import Dim, Float, Fn, Int, Model, Tensor, relay, relay_model
from pyrelay.infer import infer
from pyrelay.text.printer import to_text
from pyrelay.translate.source.definition import Definition
from pyrelay.translate.translator import Translation, translate
from tests.golden import Golden

B, N, M = Dim("B"), Dim("N"), Dim("M")
WIDTH = 7


def translated(function: Any) -> Translation:
    """Return the translation of a decorated function."""
    definition = function.__relay__
    assert isinstance(definition, Definition)
    return translate(definition)


@relay
def operators(x: Tensor[Float, (N, 3)], s: float, n: int = 4) -> Float:
    y = x * 2 + s - -x
    y /= 3
    z = x @ x.T
    return relay.sum(y) + z.sum(0, keepdim=True).mean() + n // 2 + n % 3 + 2**n


@relay
def subscripts(x: Tensor[Float, (N, 3, 4)], i: int) -> Float:
    a = x[0, 1:, None]
    b = x[..., -1, ::2][i]
    c = x[i : i + 1, x.shape[1] - 1]
    d = (x, i)[0].shape[2]
    return a.sum() + b.sum() + c.sum() + d + len(x)


@relay
def items(x: Tensor[Float, (N, 3)], n: int) -> Tensor[Float, (N, 3)]:
    y = x * 1
    y[0] = 5.0
    y[1:, n] += 2
    for i in range(n):
        y[i, 0] = 1.0
    return y


@relay
def attributes(x: Tensor[Float, (N, 6)], *, kind: str = "sum") -> Float:
    k = 2
    a = relay.zeros(N, k) + relay.ones((x.shape[0], k), dtype=relay.float32)
    b = x.reshape(-1, 2, 3).permute(2, 0, 1).transpose(0, 1)
    c = relay.cat([x, x], dim=1) if kind == "sum" else relay.stack((x, x))
    d = relay.einsum("ij,kj->ik", x, x)
    return a.sum() + b.sum() + c.sum() + d.sum() + N + WIDTH


@relay
def branches(x: Float, n: int) -> Float:
    if n > 3 and x > 0:
        y = x * 2
        z = y
    elif n < 0:
        y = z = x
    else:
        y, z = 1.0, x
    if n == 7:
        return y
    if n == 8:
        y = y + z
        if n == 9:
            return x
    return y * 2 if 0 < n < 10 else y


@relay
def loops(xs: Tensor[Float, (N,)], n: int) -> Float:
    total = 0.0
    for i in range(1, n, 2):
        if i == 5:
            continue
        if i == 9:
            break
        total = total + i
    for i, (a, b) in enumerate(zip(xs, reversed(xs)), 1):  # noqa: B905
        total = total + a * b * i
    while True:
        total = total * 2
        if total > 100:
            break
    return total


@relay
def returns_in_loops(n: int, x: Float) -> Float:
    while x > 3:
        if x > 5000:
            return x
        for j in range(n):
            if j == 2:
                return 1.0
        x = x - 3
    return x + 1


@relay
def breaks_and_returns(n: int, x: Float) -> Float:
    for i in range(n):
        if i == 3:
            break
        if x > i:
            return x
        x = x + i
    return x * 2


@relay
def functions(n: int) -> Int:
    def fact(k, by=1):
        if k <= 1:
            return by
        return k * fact(k - 1)

    def even(k):
        return True if k == 0 else odd(k - 1)

    def odd(k):
        return False if k == 0 else even(k - 1)

    add = lambda a, b: a + b  # noqa: E731
    if even(n):
        return add(fact(by=2, k=n), 2)
    return 0


@relay
def effects(x: Float, n: int) -> Float:
    """Prints, asserts, raises, and keeps a cell."""
    print("x is", x, f"and {n} more", sep=", ")  # noqa: T201
    assert n > 0, "n is positive"
    cell = relay.ref(x)
    cell.value = cell.value * 2
    cell.value += n
    if n > 100:
        raise ValueError("too much")
    return cell.value


@relay
def twice(f: Fn[[Float], Float], x: Float) -> Float:
    return f(f(x))


@relay
def higher(x: Float, y: float = 0.5) -> Float:
    g = relay.grad(twice, wrt="x")

    def scaled(a: Float):
        return a * y

    h = relay.grad(scaled)
    both = relay.value_and_grad(higher)
    return twice(relay.tanh, x) + twice(lambda t: t * x, x) + h(x) + g(relay.exp, x) + both(x, y)[0]


@relay
def power(x: Tensor[Float, (N,)], *, p: int = 2, flag: bool = True) -> Tensor[Float, (N,)]:
    out = x if flag else x * 0
    for i in relay.layers(p):
        if i > 0:
            out = out * x
    return out


@relay
def static_arguments(x: Tensor[Float, (N,)]) -> Float:
    return relay.sum(power(x, p=3)) + power(x, flag=False).sum()


@relay
def sizes(n: Dim("K"), x: Tensor[Float, (N,)]) -> Tensor[Float, (N, Dim("K"))]:
    return x[:, None] * relay.ones(1, n)


@relay_model
def block(x: Tensor[Float, (N, M)]) -> Tensor[Float, (N, M)]:
    scale = relay.param((x.shape[1],), init="ones")
    h = relay.dropout(relay.linear(x, out_features=x.shape[1]), 0.1)
    return relay.batch_norm(h * scale)


@relay_model
def net(x: Tensor[Float, (N, M)], *, depth: int = 2) -> Tensor[Float, (N, 10)]:
    h = x
    for _ in relay.layers(depth):
        h = block(h)
    out = relay.linear(h, out_features=10, bias=False)
    return relay.tanh(out)


@relay
def loss(x: Tensor[Float, (N, 4)]) -> Float:
    return relay.mean(net(x))


@relay
def step(model: Model[net], x: Tensor[Float, (N, 4)]) -> Float:
    def objective(x):
        return relay.mean(net(x)) * 2

    grads = relay.grad(model, loss, (x,))
    value, more = relay.value_and_grad(model, objective, (x,))
    both = relay.tree_map(lambda a, b: a + b, grads, more)
    relay.update_model_params(model, both, lr=0.1)
    bound = model.bind(loss)
    return value + bound(x) + relay.mean(model(x))


@relay
def fresh(x: Tensor[Float, (N, 4)]):
    model = relay.create_model(net, seed=3, depth=1)
    params = relay.sgd(model.params, relay.grad(model, loss, (x,)), 0.1)
    return relay.export_model(model), params


PROGRAMS = [
    operators,
    subscripts,
    items,
    attributes,
    branches,
    loops,
    returns_in_loops,
    breaks_and_returns,
    functions,
    effects,
    higher,
    static_arguments,
    sizes,
    net,
    loss,
    step,
    fresh,
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__relay__.name)
def test_a_construct_becomes_this(program: Callable[..., Any], golden: Golden) -> None:
    found = translated(program)
    golden(f"{found.signature.text.split('(')[0]}.relay", to_text(found.module))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__relay__.name)
def test_what_is_translated_can_be_typed(program: Callable[..., Any]) -> None:
    infer(translated(program).module)


def test_translation_is_deterministic() -> None:
    texts = {to_text(translated(step).module) for _ in range(3)}
    assert len(texts) == 1
