"""Fixed points and roots, differentiated by the implicit function theorem.

Nothing of the iteration is saved: the derivative is that of the equation that holds in the end. See
Bai, Kolter and Koltun, "Deep equilibrium models", 2019, and Blondel et al., "Efficient and modular
implicit differentiation", 2022. `custom_vjp` is all that it takes.
"""

# pyright: reportInvalidTypeForm=false
# Annotations mention the dtype that a function is made for.

from __future__ import annotations

from functools import cache
from typing import Any, Final, TypeVar

from ..annotations import Dim, Float, Fn, Int, Tensor, float64
from ..decorators import relay

A = TypeVar("A")
N = Dim("N")
TOLERANCES: Final = {Float: 1e-6, float64: 1e-12}
"""The tolerance of iterations by dtype."""


@cache
def fixed_point_in(dtype: Any) -> Any:
    """Return `fixed_point` for vectors of a dtype, `Float` or `float64`."""
    small = TOLERANCES[dtype]

    @relay
    def fixed_point(
        step: Fn[[A, Tensor[dtype, (N,)]], Tensor[dtype, (N,)]],
        a: A,
        start: Tensor[dtype, (N,)],
        tolerance: dtype = small,
        rounds: Int = 1000,
    ) -> Tensor[dtype, (N,)]:
        """Return the `x` with `x = step(a, x)` that iteration from `start` leads to.

        Iteration ends when no element moves by more than `tolerance`, or after `rounds`. The
        gradient in `a` solves `u = g + u @ d step / d x` by iteration too; that in `start` is zero.
        What `step` captures must not be differentiated: pass it in `a`, which may be of any type.
        """

        def solve(a: A, start: Tensor[dtype, (N,)]) -> Tensor[dtype, (N,)]:
            x = start
            for _ in range(rounds):
                moved = step(a, x)
                is_done = relay.amax(relay.abs(moved - x)) <= tolerance
                x = moved
                if is_done:
                    break
            return x

        def fwd(a: A, start: Tensor[dtype, (N,)]):
            x = solve(a, start)
            return x, (a, x)

        def bwd(saved: tuple[A, Tensor[dtype, (N,)]], g: Tensor[dtype, (N,)]):
            a, x = saved
            _, pullback = relay.vjp(lambda x: step(a, x))(x)
            u = g
            for _ in range(rounds):
                moved = g + pullback(u)
                is_done = relay.amax(relay.abs(moved - u)) <= tolerance
                u = moved
                if is_done:
                    break
            _, into = relay.vjp(lambda a: step(a, x))(a)
            return into(u), relay.zeros_like(x)

        return relay.custom_vjp(fwd, bwd)(solve)(a, start)

    return fixed_point


@cache
def implicit_root_in(dtype: Any) -> Any:
    """Return `implicit_root` for vectors of a dtype, `Float` or `float64`."""

    @relay
    def implicit_root(
        residual: Fn[[A, Tensor[dtype, (N,)]], Tensor[dtype, (N,)]],
        solve: Fn[[A], Tensor[dtype, (N,)]],
        a: A,
    ) -> Tensor[dtype, (N,)]:
        """Return `x = solve(a)`, a root of `residual(a, x)`, with the derivative of the root.

        The gradient in `a` is `-u @ d residual / d a` where `u @ d residual / d x = g`, a system of
        `N` equations that is solved densely; the Jacobian must not be singular. `solve` is not
        looked into. What the functions capture must not be differentiated: pass it in `a`.
        """

        def fwd(a: A):
            x = solve(a)
            return x, (a, x)

        def bwd(saved: tuple[A, Tensor[dtype, (N,)]], g: Tensor[dtype, (N,)]):
            a, x = saved
            jacobian = relay.jacrev(lambda x: residual(a, x))(x)
            u = relay.linalg.solve(relay.transpose(jacobian, 0, 1), -g)
            _, into = relay.vjp(lambda a: residual(a, x))(a)
            return into(u)

        return relay.custom_vjp(fwd, bwd)(solve)(a)

    return implicit_root


fixed_point = fixed_point_in(Float)
implicit_root = implicit_root_in(Float)
