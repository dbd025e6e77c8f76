"""Primitives and composites: how many there are, and that a body is its operator's value."""

from __future__ import annotations

from collections import Counter

import pytest

from pyrelay.ir.op import Effect, Op
from pyrelay.ir.types import float64
from pyrelay.operators.table import ALL, GENERATED
from pyrelay.operators.tiers import Tier, body_of, tier
from tests.ops.checks import assert_equal, samples
from tests.ops.derivatives import results_of
from tests.ops.materials import tensors, widened
from tests.ops.programs import call_program, float_parts

EVERY = (*ALL, *GENERATED)
COMPOSITES = [op for op in EVERY if tier(op) is Tier.COMPOSITE and not op.effect & Effect.STATE]
MOST = {Tier.PRIMITIVE: 92, Tier.SCALAR: 51}
"""A transform or a backend has a rule for each primitive."""


def test_primitives_stay_few() -> None:
    found = Counter(map(tier, EVERY))
    assert {t: n for t, n in found.items() if n > MOST.get(t, n)} == {}


@pytest.mark.parametrize("op", COMPOSITES, ids=lambda op: op.name)
def test_a_body_has_the_value_of_its_operator(op: Op) -> None:
    body, said = body_of(op), 0
    assert body is not None
    for sample in map(widened, samples(op)):
        program, result = call_program(op, sample, {})
        (call,) = [b.value for b in program.builder.bindings if b.var is result.atom]
        args = tuple(program.builder.value(a) for a in call.args)
        written = body(args, call.attrs)
        if written is None:
            continue
        said += 1
        assert written.ty == result.ty or not float_parts(result)
        pairs = zip(float_parts(written), float_parts(result), strict=True)
        for found, expected in pairs:
            values = tensors(sample)
            one, other = (results_of(program, [v], values) for v in (found, expected))
            tolerance = 1e-9 if expected.dtype == float64 else 1e-5
            assert_equal(one, other, rtol=tolerance, atol=tolerance)
    assert said or not samples(op)
