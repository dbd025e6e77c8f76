"""A-normal form names intermediate values in order of evaluation and keeps what tails are."""

from __future__ import annotations

import pytest

from pyrelay.ir.equality import alpha_equal
from pyrelay.ir.expr import Call, Flavour, Function, If, LetBlock, Match
from pyrelay.ir.normal_form import to_anf
from pyrelay.passes.normalise.flavours import with_flavours
from tests.unit.passes.programs import (
    ARGUMENTS,
    bindings_of,
    blocks_of,
    body_of,
    end_of,
    evaluate,
    normal,
    program,
    typed,
)


def test_operands_are_bound_from_left_to_right() -> None:
    module = normal("def @main(%x: float32) { exp(%x) * (sin(%x) + cos(%x)) }")
    assert [b.value.callee.name for b in bindings_of(module)] == [
        "exp",
        "sin",
        "cos",
        "add",
        "multiply",
    ]


def test_effects_of_operands_keep_their_order() -> None:
    module = normal("""
        def @next(%r: ref(int64)) -> int64 {
          let %n = ref_read(%r); ref_write(%r, %n * 10 + 1); %n
        }
        def @main() { let %r = ref(1); (@next(%r), @next(%r), ref_read(%r)) }
    """)
    assert [int(v) for v in evaluate(module, "main", ())] == [1, 11, 111]


def test_nested_let_blocks_become_one() -> None:
    module = normal("""
        def @main(%x: float32) {
          let %a = { let %b = exp(%x); let %c = { let %d = sin(%b); %d + 1.0 }; %c * %b };
          %a
        }
    """)
    assert [b.var.name for b in bindings_of(module)] == ["b", "d", "c", "a"]
    assert blocks_of(module) == [(Flavour.PURE, 4)]


def test_calls_branches_and_matches_in_tail_position_stay_there() -> None:
    assert isinstance(end_of(normal("def @main(%n: int64) -> int64 { @main(%n + 1) }")), Call)
    module = normal("""
        def @main(%b: bool, %x: float32) -> float32 {
          if (%b) { match (%x > 0.0) { True => @main(False, %x), _ => %x } } else { exp(%x) }
        }
    """)
    end = end_of(module)
    assert isinstance(end, If)
    assert isinstance(end.then, LetBlock)
    assert isinstance(end.then.body, Match)
    assert isinstance(end.otherwise, LetBlock), "a call of an operator is bound"


def test_what_is_not_in_tail_position_is_bound() -> None:
    module = normal(
        "def @main(%n: int64) -> int64 { if (%n > 0) { @main(%n - 1) + 1 } else { 0 } }"
    )
    end = end_of(module)
    assert isinstance(end, If)
    assert isinstance(end.then, LetBlock)
    assert [type(b.value) for b in end.then.bindings] == [Call, Call, Call]


def test_a_constructor_call_is_bound_even_at_the_end() -> None:
    module = normal("type T { Box(float32) } def @main(%x: float32) { Box(%x) }")
    assert body_of(module) == "let %box: T = Box(%x);\n%box"


def test_a_recursive_block_stays_a_block_of_its_own() -> None:
    module = normal("""
        def @main(%n: int64) {
          let %a = %n + 1;
          let rec %f = fn (%i: int64) -> int64 { if (%i > 9) { %i } else { %f(%i + %a) } };
          let %b = %f(%a);
          %b
        }
    """)
    assert blocks_of(module) == [(Flavour.PURE, 1), (Flavour.REC, 1), (Flavour.PURE, 1)]


def test_a_guard_ends_in_an_atom() -> None:
    module = normal("""
        def @big(%x: float32) -> bool { %x > 3.0 }
        def @main(%x: float32) -> float32 { match (%x) { %y if @big(%y) => 1.0, _ => 0.0 } }
    """)
    end = end_of(module)
    assert isinstance(end, Match)
    assert isinstance(end.clauses[0].guard, LetBlock)


def test_a_lambda_as_operand_is_bound() -> None:
    module = normal("""
        def @main(%x: float32) { (fn (%y: float32) { %y * %x })(%x) }
    """)
    assert [type(b.value) for b in bindings_of(module)] == [Function]
    assert isinstance(end_of(module), Call)


@pytest.mark.parametrize("name", ARGUMENTS)
def test_a_module_in_normal_form_is_given_back(name: str) -> None:
    module = program(name)
    assert to_anf(module) is module
    flavoured = with_flavours(module)
    assert to_anf(flavoured) is flavoured


def test_names_are_the_same_every_time() -> None:
    text = "def @main(%x: float32) { sin(sin(%x)) + sin(%x) }"
    assert body_of(normal(text)) == body_of(normal(text))
    assert alpha_equal(to_anf(typed(text)), to_anf(typed(text)))
