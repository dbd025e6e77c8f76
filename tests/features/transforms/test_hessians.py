"""`hvp`, `hessian`, `jacfwd` and `jacrev`: derivatives of derivatives, and of many results."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from benchmarks.operator_counts import Count
from pyrelay import CheckError, Dim, Fn, Int, Tensor, float64, relay

# `torch.func.jvp` imports what torch itself has deprecated.
pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")

N, M = Dim("N"), Dim("M")
VECTOR = Tensor[float64, (N,)]


def close(actual: Any, expected: Any) -> None:
    if isinstance(expected, tuple):
        assert len(actual) == len(expected)
        for a, e in zip(actual, expected, strict=True):
            close(a, e)
        return
    torch.testing.assert_close(torch.as_tensor(actual), expected, rtol=1e-9, atol=1e-12)


def random(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@relay
def energy(w: Tensor[float64, (M, N)], x: Tensor[float64, (N,)]) -> float64:
    return relay.sum(relay.tanh(w @ x)) * relay.sum(x * x)


def plain(w: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return torch.tanh(w @ x).sum() * (x * x).sum()


@relay
def rows(w: Tensor[float64, (M, N)], x: Tensor[float64, (N,)]) -> Tensor[float64, (M,)]:
    y = x
    for _ in range(2):
        y = relay.sin(y) * x
    return relay.tanh(w @ y)


def plain_rows(w: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    y = x
    for _ in range(2):
        y = torch.sin(y) * x
    return torch.tanh(w @ y)


W, X = random(2, 3), random(3, seed=1)
V, U = random(2, 3, seed=2), random(3, seed=3)


def test_products_with_the_hessian() -> None:
    _, expected = torch.func.jvp(torch.func.grad(plain, argnums=(0, 1)), (W, X), (V, U))
    close(relay.hvp(energy)((W, X), (V, U)), expected)


def test_products_in_one_parameter() -> None:
    gradient = torch.func.grad(plain, argnums=1)
    expected = torch.func.jvp(lambda x: gradient(W, x), (X,), (U,))[1]
    close(relay.hvp(energy, wrt="x")((W, X), (U,)), expected)


def test_products_in_more_parameters_than_the_two_tuples_have() -> None:
    @relay
    def four(a: float64, b: float64, n: Int, c: float64, d: float64) -> float64:
        return relay.sin(a * b) * c * d * d * n

    def reference(a: Any, b: Any, c: Any, d: Any) -> Any:
        return torch.sin(a * b) * c * d * d * 2

    at, along = tuple(random(4, seed=8)), tuple(random(4, seed=9))
    given = (at[0], at[1], 2, at[2], at[3])
    by = ("a", "c", "d")
    zero = torch.zeros((), dtype=torch.float64)
    _, expected = torch.func.jvp(
        torch.func.grad(reference, argnums=(0, 2, 3)), at, (along[0], zero, along[2], along[3])
    )
    found = relay.hvp(four, wrt=by)(given, (along[0], along[2], along[3]))
    for actual, wanted in zip(found, expected, strict=True):
        torch.testing.assert_close(actual, wanted, rtol=1e-6, atol=1e-7)


def test_hessians_are_those_of_torch() -> None:
    close(relay.hessian(energy)(W, X), torch.func.hessian(plain, argnums=(0, 1))(W, X))
    close(relay.hessian(energy, wrt="x")(W, X), torch.func.hessian(plain, argnums=1)(W, X))


@pytest.mark.parametrize("mode", ["jacfwd", "jacrev"])
def test_jacobians_are_those_of_torch(mode: str) -> None:
    ours, theirs = getattr(relay, mode), getattr(torch.func, mode)
    close(ours(rows)(W, X), theirs(plain_rows, argnums=(0, 1))(W, X))
    close(ours(rows, wrt="x")(W, X), theirs(plain_rows, argnums=1)(W, X))
    close(ours(rows, wrt=("w",))(W, X), theirs(plain_rows, argnums=(0,))(W, X))


@relay
def several(p: tuple[float64, VECTOR], s: float64) -> tuple[VECTOR, float64]:
    a, x = p
    return x * a * s, relay.sum(x * x) * a


@pytest.mark.parametrize("mode", ["jacfwd", "jacrev"])
def test_jacobians_of_tuples(mode: str) -> None:
    def reference(p: Any, s: Any) -> Any:
        return p[1] * p[0] * s, (p[1] * p[1]).sum() * p[0]

    at = ((random(seed=4), X), random(seed=5))
    expected = getattr(torch.func, mode)(reference, argnums=(0, 1))(*at)
    close(getattr(relay, mode)(several)(*at), expected)


def test_they_are_used_inside_compiled_code() -> None:
    @relay
    def newton(x: VECTOR, scale: float64) -> VECTOR:
        def f(z: VECTOR) -> float64:
            return relay.sum(relay.exp(z) - z * scale) + relay.sum(z) ** 2

        for _ in range(20):
            x = x - relay.linalg.solve(relay.hessian(f)(x), relay.grad(f)(x))
        return x

    @relay
    def product(f: Fn[[float64], float64], x: float64) -> float64:
        return relay.hvp(f)((x,), (2.0,))

    @relay
    def cubed(x: float64) -> float64:
        return x**3

    found = newton(X, 3.0)
    close(torch.exp(found) - 3.0 + 2 * found.sum(), torch.zeros(3, dtype=torch.float64))
    close(product(cubed, 5.0), torch.tensor(60.0, dtype=torch.float64))


def test_derivatives_of_them() -> None:
    @relay
    def trace(x: VECTOR) -> float64:
        return relay.sum(relay.diagonal(relay.hessian(lambda z: relay.sum(z**4) * z[0])(x)))

    def reference(x: torch.Tensor) -> torch.Tensor:
        return torch.func.hessian(lambda z: (z**4).sum() * z[0])(x).diagonal().sum()

    close(relay.grad(trace)(X), torch.func.grad(reference)(X))
    _, tangent = relay.jvp(trace)((X,), (U,))
    close(tangent, torch.func.jvp(reference, (X,), (U,))[1])


@relay
def valley(x: VECTOR) -> float64:
    return relay.sum((x[1:] - x[:-1] ** 2) ** 2 + relay.sin(x[:-1]))


@relay
def running(x: VECTOR) -> VECTOR:
    return relay.cumsum(relay.sin(x) * x, dim=0)


@pytest.mark.host("what torch runs is counted")
@pytest.mark.parametrize(
    ("mode", "function"), [("hessian", valley), ("jacfwd", running), ("jacrev", running)]
)
def test_operators_do_not_grow_with_the_elements(mode: str, function: Any) -> None:
    derivative = getattr(relay, mode)(function)
    found: list[int] = []
    for size in (4, 64):
        x = random(size)
        derivative(x)
        with Count() as count:
            derivative(x)
        found.append(count.operators)
    small, large = found
    assert large <= small + 4  # torch copies what it cannot view, which depends on sizes
    assert small < 64


@relay
def summed_jvp(primals: tuple[VECTOR], tangents: tuple[VECTOR]) -> tuple[float64, float64]:
    d = tangents[0]
    return summed(primals[0]), d[d != 0.0].sum()


@relay.custom_jvp(summed_jvp)
@relay
def summed(x: VECTOR) -> float64:
    return x.sum()


def test_what_vmap_refuses_is_taken_one_direction_after_the_other() -> None:
    with pytest.raises(CheckError, match="a mask selects"):
        relay.vmap(relay.jvp(summed), in_axes=(None, 0))((X,), (torch.stack((X, U)),))
    close(relay.jacfwd(summed)(X), torch.ones_like(X))
