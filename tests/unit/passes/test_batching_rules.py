"""Row by row, a call on all rows at once has the values of calls on single rows."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest
import torch

from pyrelay.ir.dims import Dim
from pyrelay.ir.expr import Var, type_of
from pyrelay.ir.op import Op, Sample
from pyrelay.operators.builder import Value
from pyrelay.operators.primitive.index import SLICING
from pyrelay.operators.table import ALL, GENERATED
from pyrelay.operators.tiers import Tier, tier
from pyrelay.passes.batching import Block, is_any, rows_type
from pyrelay.passes.batching.rules import rules_of
from tests.ops.checks import assert_equal, samples
from tests.ops.materials import specs, tensor
from tests.ops.programs import Program, call_program

COUNT = 3
MANY = 3

UNBATCHED = {
    "nonzero": "its size depends on the values",
    "bincount": "its size depends on the values",
    "first_places": "it is made after functions are mapped",
    "existing_rows": "it is made after functions are mapped",
}
"""Operators that have no rule, and why."""

FACTORIES = {"full", "zeros", "ones", "arange", "linspace", "eye", "random_key"}
"""Operators without operands, so that no row comes into them."""

MADE_OF_UNBATCHED = {"summed_rows"}
"""Operators that are made of one without a rule."""

OPERATORS = [
    op
    for op in (*ALL, *GENERATED)
    if tier(op) is not Tier.HOST and op.name not in {*UNBATCHED, *MADE_OF_UNBATCHED, *FACTORIES}
]


def choices(params: list[Var]) -> Iterator[dict[Var, bool]]:
    """Return which parameters are rows: each set of them but the empty one; of many parameters
    each alone, all but each, and all."""
    if len(params) <= MANY:
        found = product((False, True), repeat=len(params))
    else:
        alone = [tuple(p is q for q in params) for p in params]
        found = [*alone, *(tuple(not f for f in flags) for flags in alone), (True,) * len(params)]
    for choice in found:
        if any(choice):
            yield dict(zip(params, choice, strict=True))


def rows_of(
    sample: Sample, is_row: dict[Var, bool], single: Program, result: Value
) -> tuple[Any, list[Any]] | None:
    """Return the values of a call on all rows, and of calls on each; None without a rule."""
    generator = torch.Generator().manual_seed(0)
    values = [
        torch.stack([tensor(spec, generator) for _ in range(COUNT)])
        if is_row[param]
        else tensor(spec, generator)
        for param, spec in zip(single.params, specs(sample), strict=True)
    ]
    several = Program({})
    block = Block(several.builder, Dim.of(COUNT))
    for param in single.params:
        ty = rows_type(type_of(param), is_row[param], Dim.of(COUNT))
        block.bind(param, several.parameter(ty), is_row[param])
    if not all(map(block.add, single.builder.bindings)):
        return None
    actual = several.run(block.whole(result.atom), values)
    return actual, [
        single.run(
            result,
            [v[i] if is_row[p] else v for p, v in zip(single.params, values, strict=True)],
        )
        for i in range(COUNT)
    ]


def assert_rows(actual: Any, expected: list[Any]) -> None:
    """Assert that row `i` of each tensor is that of the `i`-th value."""
    if isinstance(actual, tuple):
        for place, part in enumerate(actual):
            assert_rows(part, [e[place] for e in expected])
        return
    whole = torch.stack(list(map(torch.as_tensor, expected)))
    assert_equal(actual, whole, rtol=1e-5, atol=1e-5)


def sizes_differ(op: Op, is_row: dict[Var, bool]) -> bool:
    """Return whether masks of the rows select a number of elements each."""
    masks = [p for p, row in is_row.items() if row and "bool" in str(p.ty)]
    return op in SLICING and bool(masks)


@pytest.mark.parametrize("op", OPERATORS, ids=lambda op: op.name)
def test_rows_of_the_value_are_values_of_rows(op: Op) -> None:
    for sample in samples(op):
        single, result = call_program(op, sample, {})
        for is_row in choices(single.params):
            found = rows_of(sample, is_row, single, result)
            assert found is not None or sizes_differ(op, is_row), (sample, is_row.values())
            if found is not None:
                assert_rows(*found)


def test_every_primitive_has_a_rule_or_a_reason() -> None:
    without = {
        op.name
        for op in (*ALL, *GENERATED)
        if tier(op) in (Tier.PRIMITIVE, Tier.SCALAR) and not rules_of(op)
    }
    assert without == {*UNBATCHED, *FACTORIES}


def test_masks_name_the_tensors_of_tuples() -> None:
    assert is_any((False, (True, False)))
    assert not is_any((False, ()))
