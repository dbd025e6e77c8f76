"""Relay's operators give the values that Relay gave, which torch computes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from pyrelay import api
from pyrelay.relay05.table import SUPPORTED
from tests.relay.dynamic_cases import DYNAMIC
from tests.relay.network_cases import NETWORKS
from tests.relay.operator_cases import (
    BINARY,
    INTEGERS,
    POSITIVE,
    REDUCTIONS,
    SHAPES,
    UNARY,
    UNIT,
    annotation,
    draw,
)
from tests.relay.reading import HEADER


def value(text: str, *args: Tensor) -> Any:
    params = ", ".join(f"%{'xyzuvw'[i]}: {annotation(a)}" for i, a in enumerate(args))
    function = api.parse(f"{HEADER}def @main({params}) {{ {text} }}")["main"]
    found = function(*args)
    torch.testing.assert_close(function.interpret(*args), found)
    return found


@pytest.mark.parametrize("name", UNARY)
def test_operators_of_one_operand(name: str) -> None:
    x = UNIT if name in {"asin", "acos", "atanh"} else POSITIVE
    x = POSITIVE + 1.0 if name == "acosh" else x
    torch.testing.assert_close(value(f"{name}(%x)", x), UNARY[name](x))


@pytest.mark.parametrize("name", BINARY)
def test_operators_of_two_operands_broadcast(name: str) -> None:
    y = draw(3, 1, low=0.5, high=2.0)
    torch.testing.assert_close(value(f"{name}(%x, %y)", POSITIVE, y), BINARY[name](POSITIVE, y))


@pytest.mark.parametrize(
    ("text", "args", "expected"),
    [*INTEGERS, *SHAPES, *DYNAMIC, *REDUCTIONS, *NETWORKS],
    ids=lambda v: str(v)[:60] if isinstance(v, str) else "",
)
def test_an_operator_gives_relays_value(
    text: str, args: tuple[Tensor, ...], expected: Callable[..., Any]
) -> None:
    torch.testing.assert_close(value(text, *args), expected(*args))


def test_every_operator_is_tried() -> None:
    cases = [text for text, _, _ in (*INTEGERS, *SHAPES, *DYNAMIC, *REDUCTIONS, *NETWORKS)]
    tried = {*UNARY, *BINARY, "divide"} | {n for n in SUPPORTED for t in cases if f"{n}(" in t}
    assert sorted(set(SUPPORTED) - tried) == []
