"""Transforms of programs, and transforms of transforms, against JAX, where it is installed."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import numpy
import pytest
import torch

from tests.features.transforms.programs import functions, structures
from tests.features.transforms.programs.case import Case
from tests.features.transforms.test_compositions import CASES, OURS, given, ours

IN_JAX: Final = [c for c in CASES if c.is_in_jax]
LONGER: Final = {c.name for c in (*functions.CASES, *structures.CASES)}
"""Programs that JAX unrolls, and compiles for seconds."""


@pytest.mark.parametrize(
    "case",
    [pytest.param(c, marks=[pytest.mark.slow] * (c.name in LONGER)) for c in IN_JAX],
    ids=[c.name for c in IN_JAX],
)
def test_they_are_those_of_jax(case: Case) -> None:
    jax = pytest.importorskip("jax")
    f = partial(case.meaning, jax.numpy)

    def all_at_once(xs: Any, vs: Any, ws: Any) -> dict[str, Any]:
        x, v = xs[0], vs[0]
        value, pull = jax.vjp(f, x)
        values, pull_all = jax.vjp(jax.vmap(f), xs)
        tangent = jax.grad(lambda p: jax.jvp(f, p[:1], p[1:])[1])((x, v))
        return {
            "vjp": (value, pull(ws[0])[0]),
            "jvp": jax.jvp(f, (x,), (v,)),
            "jvp of grad": jax.jvp(jax.grad(f), (x,), (v,)),
            "vjp of jvp": (tangent[:1], tangent[1:]),
            "hessian": jax.hessian(f)(x),
            "vmap of grad": jax.vmap(jax.grad(f))(xs),
            "vjp of vmap": (values, pull_all(ws)[0]),
            "jvp of vmap": jax.jvp(jax.vmap(f), (xs,), (vs,)),
        }

    with jax.enable_x64(True):
        found = jax.jit(all_at_once)(*(g.numpy() for g in given(case)))
    expected = jax.tree.map(lambda a: torch.from_numpy(numpy.array(a)), found)
    torch.testing.assert_close({n: ours(case, n) for n in OURS}, expected, rtol=1e-6, atol=1e-6)
