"""Transforms of a hundred programs, and transforms of transforms, against torch.func."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any, Final

import pytest
import torch

from pyrelay import relay
from tests.features.transforms.programs import control, functions, matrices, structures, vectors
from tests.features.transforms.programs.case import Case

# `torch.func.jvp` imports what torch itself has deprecated.
pytestmark = [
    pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated"),
    pytest.mark.filterwarnings("ignore:Converting a tensor with requires_grad=True"),
]

STRUCTURED: Final = [*control.CASES, *functions.CASES, *structures.CASES]
"""Programs that differ in what they are made of, not in an operator."""

CASES: Final = [*vectors.CASES, *matrices.CASES, *STRUCTURED]
BATCH: Final = 3
Given = tuple[torch.Tensor, torch.Tensor, torch.Tensor]
"""A batch of points, a direction at each, and a weight of each result."""


def given(case: Case) -> Given:
    generator = torch.Generator().manual_seed(len(case.name))
    draw = partial(torch.randn, generator=generator, dtype=torch.float64)
    return draw(BATCH, *case.shape), draw(BATCH, *case.shape), draw(BATCH)


def pulled(f: Any, args: tuple[Any, ...], cotangent: Any) -> Any:
    value, pull = relay.vjp(f)(*args)
    return value, pull(cotangent)


ONE, ZERO = torch.ones((), dtype=torch.float64), torch.zeros((), dtype=torch.float64)

OURS: Final[dict[str, Callable[[Any, Given], Any]]] = {
    "vjp": lambda f, g: pulled(f, (g[0][0],), g[2][0]),
    "jvp": lambda f, g: relay.jvp(f)((g[0][0],), (g[1][0],)),
    "jvp of grad": lambda f, g: relay.jvp(relay.grad(f))((g[0][0],), (g[1][0],)),
    "vjp of jvp": lambda f, g: pulled(relay.jvp(f), ((g[0][0],), (g[1][0],)), (ZERO, ONE))[1],
    "hessian": lambda f, g: relay.hessian(f)(g[0][0]),
    "vmap of grad": lambda f, g: relay.vmap(relay.grad(f))(g[0]),
    "vjp of vmap": lambda f, g: pulled(relay.vmap(f), (g[0],), g[2]),
    "jvp of vmap": lambda f, g: relay.jvp(relay.vmap(f))((g[0],), (g[1],)),
}


@cache
def by_torch(case: Case) -> dict[str, Any]:
    """Return what each composition gives, from gradients, directions and products of torch.func at
    single points: a batch is these, one after the other."""
    f = partial(case.meaning, torch)
    xs, vs, ws = given(case)
    gradient = torch.func.grad(f)

    def product(x: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return torch.func.jvp(gradient, (x,), (v,))[1]

    values, tangents = zip(
        *(torch.func.jvp(f, (x,), (v,)) for x, v in zip(xs, vs, strict=True)), strict=True
    )
    gradients = [gradient(x) for x in xs]
    size = xs[0].numel()
    basis = torch.eye(size, dtype=torch.float64).reshape(size, *case.shape)
    columns = torch.stack([product(xs[0], e) for e in basis], -1)
    weighted = torch.stack([g * w for g, w in zip(gradients, ws, strict=True)])
    second = product(xs[0], vs[0])
    return {
        "vjp": (values[0], weighted[0]),
        "jvp": (values[0], tangents[0]),
        "jvp of grad": (gradients[0], second),
        "vjp of jvp": ((second,), (gradients[0],)),
        "hessian": columns.reshape(*case.shape, *case.shape),
        "vmap of grad": torch.stack(gradients),
        "vjp of vmap": (torch.stack(values), weighted),
        "jvp of vmap": (torch.stack(values), torch.stack(tangents)),
    }


@cache
def ours(case: Case, composition: str) -> Any:
    return OURS[composition](case.function, given(case))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("composition", OURS)
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_it_is_that_of_torch(case: Case, composition: str) -> None:
    found = ours(case, composition)
    torch.testing.assert_close(found, by_torch(case)[composition], rtol=1e-6, atol=1e-6)


def test_there_are_as_many_programs_as_promised() -> None:
    assert len(CASES) >= 80 + len(vectors.CASES)
    assert len(STRUCTURED) >= 60
    assert len({c.name for c in CASES}) == len(CASES)
