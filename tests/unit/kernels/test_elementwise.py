"""Which calls an operator says the elements of."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from pyrelay.ir.declaration.lowering import Elementwise, Scatter, inside
from pyrelay.ir.dims import Dim
from pyrelay.ir.expr import Call
from pyrelay.ir.op import Clash, Effect, Op, Sample, TensorSpec
from pyrelay.kernels.fusion.nodes import has_elements
from pyrelay.operators.primitive import index, pool
from pyrelay.operators.table import ALL, GENERATED
from tests.ops.checks import samples
from tests.ops.materials import shape_names
from tests.ops.programs import call_program


def call_of(op: Op, sample: Sample, names: Mapping[int, Dim] | None = None) -> Call:
    program, _ = call_program(op, sample, names or {})
    calls = [b.value for b in program.builder.bindings if isinstance(b.value, Call)]
    return next(c for c in calls if c.callee is op)


@pytest.mark.parametrize(
    "op",
    [
        op
        for op in (*ALL, *GENERATED)
        if isinstance(inside(op.lowering), Elementwise | Scatter) and op.effect is Effect.NONE
    ],
    ids=lambda op: op.name,
)
def test_a_body_asks_for_nothing_but_places_and_sizes(op: Op) -> None:
    said = 0
    for sample in samples(op):
        try:
            said += has_elements(call_of(op, sample, shape_names(sample)))
        except Clash:
            continue  # some operators need a number where others take a name
    assert said


def test_a_mask_does_not_say_what_it_selects() -> None:
    row, mask = (("int", 0),), TensorSpec((4,), "bool")
    matrix = TensorSpec((4, 3))
    assert not has_elements(call_of(index.index, Sample((matrix, (mask,)), {"spec": row})))
    written = Sample((matrix, (mask,), TensorSpec(())), {"spec": row})
    assert not has_elements(call_of(index.set_at, written))


def test_a_large_window_is_not_written_out() -> None:
    image = TensorSpec((1, 1, 20, 20))
    assert has_elements(call_of(pool.max_pool2d, Sample((image,), {"kernel_size": 8})))
    assert not has_elements(call_of(pool.max_pool2d, Sample((image,), {"kernel_size": 9})))
