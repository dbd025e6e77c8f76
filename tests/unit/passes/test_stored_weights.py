"""What a program computes from its weights alone takes the places of weights."""

from __future__ import annotations

from pyrelay.ir.verify import Stage, verify
from pyrelay.passes.rewrites.stored_weights import Path, stored_weights
from pyrelay.passes.simplify.simplify import simplify
from pyrelay.text.printer import to_text
from tests.unit.passes.programs import normal

WEIGHTS = "(Tensor[(3,), float32], Tensor[(3,), float32])"


def stored(body: str) -> tuple[str, tuple[Path, ...]]:
    """Return the entry after the pass, and the places of what is stored; none if nothing is."""
    params = f"%params: {WEIGHTS}, %state: (ref(Tensor[(3,), float32]),), %x: Tensor[(3,), float32]"
    module = normal(f"def @main({params}) {{ {body} }}")
    found = stored_weights(simplify(module, "main"), "main")
    if found is None:
        return "", ()
    verify(found.module, Stage.ANF)
    return to_text(simplify(found.module, "main")), found.places


def test_a_value_takes_the_place_of_a_weight_that_nothing_else_reads() -> None:
    text, places = stored("exp(%params.0) * %x + %params.1")
    assert places == ((0, 0),)
    assert "exp" not in text
    text, places = stored("(%params.0 + ref_read(%state.0)) * %x")
    assert places == ((0, 0),)
    assert "ref_read" not in text


def test_a_weight_that_is_read_as_it_is_stays() -> None:
    assert stored("exp(%params.0) * %x + %params.0") == ("", ())
    assert stored("exp(%params.0) * sum(%params.1) * %x + %params.0")[1] == ((0, 1),)


def test_what_stays_in_the_program_reads_the_weights_of_before() -> None:
    assert stored("exp(%params.0) * %x + tanh(%params.0) * %x") == ("", ())
    assert stored("exp(%params.0) * %x + sum(%params.0)") == ("", ())


def test_values_of_arguments_and_of_another_type_stay() -> None:
    assert stored("exp(%x) + %params.0") == ("", ())
    assert stored("sum(%params.0) + %x") == ("", ())
