"""Simplification ends, keeps meanings and leaves nothing for a second time."""

from __future__ import annotations

import pytest

from pyrelay.ir.verify import Stage, verify
from pyrelay.passes.closures import first_order
from pyrelay.passes.normalise.flavours import with_flavours
from pyrelay.passes.simplify.simplify import simplify
from tests.golden import Golden
from tests.unit.passes.programs import ARGUMENTS, body_of, folding, normal, program, to_text


@pytest.mark.parametrize("name", ARGUMENTS)
def test_a_simplified_program_is_given_back(name: str) -> None:
    module = simplify(program(name), "main", folding)
    assert simplify(module, "main", folding) is module


@pytest.mark.parametrize("name", ARGUMENTS)
def test_a_simplified_program_reads_well(name: str, golden: Golden) -> None:
    module = with_flavours(simplify(program(name), "main", folding))
    verify(module, Stage.FLAVOURED)
    golden(f"{name}.relay", to_text(module))


@pytest.mark.parametrize("name", ARGUMENTS)
def test_a_first_order_program_reads_well(name: str, golden: Golden) -> None:
    module = with_flavours(simplify(first_order(program(name), "main"), "main", folding))
    verify(module, Stage.FLAVOURED)
    golden(f"{name}.first_order.relay", to_text(module))


def test_passes_make_work_for_each_other() -> None:
    module = simplify(
        normal("""
            type Shape { Circle(float32), Square(float32) }
            def @area(%s: Shape) -> float32 {
              match (%s) { Circle(%r) => 3.0 * %r * %r, Square(%a) => %a * %a }
            }
            def @main(%x: float32) -> float32 {
              let %pair = (Square(%x * 1.0), Circle(2.0));
              @area(%pair.0) + @area(%pair.1)
            }
        """),
        "main",
        folding,
    )
    assert body_of(module) == (
        "let %multiply_2: float32 = multiply(%x, %x);\n"
        "let %add: float32 = add(%multiply_2, 12.0f32);\n"
        "%add"
    )
