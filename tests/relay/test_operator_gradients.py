"""Relay's operators have the gradients that torch gives to what they mean."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

from pyrelay import api, relay
from tests.relay.network_cases import NETWORKS
from tests.relay.operator_cases import (
    BINARY,
    POSITIVE,
    REDUCTIONS,
    SHAPES,
    UNARY,
    UNIT,
    annotation,
    draw,
)
from tests.relay.reading import HEADER

STEPS = {"floor", "ceil", "trunc", "round", "sign", "isnan", "isfinite", "isinf"}
"""Operators without a slope."""
COMPARISONS = {"equal", "not_equal", "less", "less_equal", "greater", "greater_equal"}


def leaves(value: Any) -> list[Tensor]:
    """Return the tensors of floats in a result."""
    parts = value if isinstance(value, tuple | list) else (value,)
    return [p for p in parts if p.dtype.is_floating_point]


def weights(results: Sequence[Tensor]) -> list[Tensor]:
    generator = torch.Generator().manual_seed(len(results))
    return [torch.rand(r.shape, generator=generator).to(r.dtype) for r in results]


def by_torch(meaning: Callable[..., Any], args: Sequence[Tensor]) -> list[Tensor]:
    """Return the gradients of a weighted sum of the results in each argument of floats."""
    places = [a.clone().requires_grad_(a.dtype.is_floating_point) for a in args]
    results = leaves(meaning(*places))
    wanted = [p for p in places if p.requires_grad]
    used = [(r * w).sum() for r, w in zip(results, weights(results), strict=True)]
    unused = [p.sum() * 0.0 for p in wanted]
    return list(torch.autograd.grad(torch.stack([*used, *unused]).sum(), wanted))


def ours(text: str, args: Sequence[Tensor]) -> list[Tensor]:
    params = ", ".join(f"%{'xyzuvw'[i]}: {annotation(a)}" for i, a in enumerate(args))
    function = api.parse(f"{HEADER}def @main({params}) {{ {text} }}")["main"]
    value, pull = relay.vjp(function)(*args)
    drawn = iter(weights(leaves(value)))
    parts = value if isinstance(value, tuple) else (value,)
    given = tuple(next(drawn) for p in parts if p.dtype.is_floating_point)
    found = pull(given if isinstance(value, tuple) else given[0])
    return list(found) if isinstance(found, tuple) else [found]


def is_smooth(text: str, args: Sequence[Tensor], meaning: Callable[..., Any]) -> bool:
    """Return whether an operator gives floats of floats that it looks at."""
    has_floats = any(a.dtype.is_floating_point for a in args)
    return has_floats and bool(leaves(meaning(*args)))


DIFFERENTIABLE: dict[str, Callable[..., Any]] = {
    "variance(%x, %y, unbiased=True)": lambda x, y: ((x - y) ** 2).sum() / 23,
    "nn.batch_norm(%x, %y, %z, %u, %v, epsilon=0.001f).0": lambda x, g, b, m, v: (
        (x.movedim(1, -1) - m) / (v + 1e-3).sqrt() * g + b
    ).movedim(-1, 1),
}
"""Meanings that torch differentiates, where the one that gives the value is constant or refused."""

CASES = [c for c in (*SHAPES, *REDUCTIONS, *NETWORKS) if is_smooth(*c)]


@pytest.mark.parametrize("name", sorted(UNARY.keys() - STEPS))
def test_operators_of_one_operand(name: str) -> None:
    x = UNIT if name in {"asin", "acos", "atanh"} else POSITIVE
    x = POSITIVE + 1.0 if name == "acosh" else x
    (wanted,) = by_torch(UNARY[name], [x])
    (found,) = ours(f"{name}(%x)", [x])
    torch.testing.assert_close(found, wanted)


@pytest.mark.parametrize("name", sorted(BINARY.keys() - COMPARISONS - {"floor_divide"}))
def test_operators_of_two_operands_broadcast(name: str) -> None:
    args = [POSITIVE, draw(3, 1, low=0.5, high=2.0)]
    wanted = by_torch(BINARY[name], args)
    found = ours(f"{name}(%x, %y)", args)
    torch.testing.assert_close(found, wanted)


@pytest.mark.parametrize(
    ("text", "args", "meaning"), CASES, ids=lambda v: str(v)[:60] if isinstance(v, str) else ""
)
def test_the_gradient_is_that_of_torch(
    text: str, args: tuple[Tensor, ...], meaning: Callable[..., Any]
) -> None:
    wanted = by_torch(DIFFERENTIABLE.get(text, meaning), args)
    torch.testing.assert_close(ours(text, args), wanted, rtol=1e-4, atol=1e-5)
