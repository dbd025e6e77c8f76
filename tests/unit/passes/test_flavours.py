"""The effect analysis knows what calls may do; flavours are its result."""

from __future__ import annotations

import pytest

from pyrelay.ir.effect import Effects
from pyrelay.ir.expr import Flavour
from pyrelay.ir.op import Effect
from pyrelay.ir.verify import Stage, verify
from pyrelay.passes.normalise.flavours import with_flavours
from tests.unit.passes.programs import ARGUMENTS, blocks_of, normal, program, value


def effect(text: str, function: str = "main") -> Effect:
    return Effects(normal(text)).of_call(function)


def test_arithmetic_has_no_effect() -> None:
    assert effect("def @main(%x: float32) { exp(%x) + 1.0 }") is Effect.NONE


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("ref(1.0)", Effect.STATE),
        ("ref_read(%r)", Effect.STATE),
        ("ref_write(%r, 2.0)", Effect.STATE),
        ("print((1,))", Effect.IO),
        ("check(%b)", Effect.FAIL),
        ("match? (%b) { True => 1 }", Effect.FAIL),
        ("if (%b) { ref_write(%r, 2.0) } else { check(%b) }", Effect.STATE | Effect.FAIL),
        ("fn () { ref_read(%r) }", Effect.NONE),
        ("(fn () { ref_read(%r) })()", Effect.STATE),
    ],
)
def test_an_effect_is_that_of_what_runs(body: str, expected: Effect) -> None:
    assert effect(f"def @main(%r: ref(float32), %b: bool) {{ {body} }}") == expected


def test_effects_pass_through_calls_and_recursion() -> None:
    text = """
        def @even(%n: int64, %r: ref(int64)) -> bool {
          if (%n == 0) { True } else { @odd(%n - 1, %r) }
        }
        def @odd(%n: int64, %r: ref(int64)) -> bool {
          ref_write(%r, %n);
          if (%n == 0) { False } else { @even(%n - 1, %r) }
        }
        def @pure(%n: int64) -> int64 { if (%n == 0) { 0 } else { @pure(%n - 1) } }
        def @main(%n: int64) { @even(%n, ref(0)) }
    """
    for name in ("even", "odd", "main"):
        assert effect(text, name) is Effect.STATE
    assert effect(text, "pure") is Effect.NONE


def test_an_unknown_function_may_be_any_that_escapes() -> None:
    text = """
        def @call(%f: fn () -> float32) -> float32 { %f() }
        def @main(%r: ref(float32)) { @call(fn () { READ }) }
    """
    assert effect(text.replace("READ", "ref_read(%r)"), "call") is Effect.STATE
    assert effect(text.replace("READ", "1.0"), "call") is Effect.NONE


def test_a_function_that_is_only_called_does_not_escape() -> None:
    text = """
        def @call(%f: fn () -> float32) -> float32 { %f() }
        def @main(%r: ref(float32)) {
          let %read = fn () -> float32 { ref_read(%r) };
          %read() + @call(fn () -> float32 { 1.0 })
        }
    """
    assert effect(text, "call") is Effect.NONE
    assert effect(text, "main") is Effect.STATE


def test_an_alias_of_a_function_escapes() -> None:
    text = """
        def @main(%r: ref(float32)) {
          let %read = fn () -> float32 { ref_read(%r) };
          let %same = %read;
          %same()
        }
    """
    assert effect(text) is Effect.STATE


def test_blocks_become_longest_runs_of_one_flavour() -> None:
    module = normal("""
        def @main(%x: float32) {
          let %a = %x + 1.0;
          let %r = ref(%a);
          let %v = ref_read(%r);
          let %b = %v * 2.0;
          let %c = %b * 2.0;
          ref_write(%r, %c);
          %c
        }
    """)
    assert blocks_of(module) == [(Flavour.PURE, 5), (Flavour.IMPURE, 1)]
    assert blocks_of(with_flavours(module)) == [
        (Flavour.PURE, 1),
        (Flavour.IMPURE, 2),
        (Flavour.PURE, 2),
        (Flavour.IMPURE, 1),
    ]


def test_a_recursive_block_is_split_into_what_really_recurs() -> None:
    module = normal("""
        def @main(%n: int64) {
          let rec %f = fn (%i: int64) -> int64 { if (%i == 0) { 0 } else { %g(%i - 1) } }
          and %g = fn (%i: int64) -> int64 { %f(%h(%i)) }
          and %h = fn (%i: int64) -> int64 { %i * 2 };
          %f(%n)
        }
    """)
    assert blocks_of(module) == [(Flavour.REC, 3)]
    assert blocks_of(with_flavours(module)) == [(Flavour.PURE, 1), (Flavour.REC, 2)]


def test_a_local_loop_with_effects_is_an_impure_call() -> None:
    module = with_flavours(program("cells"))
    assert (Flavour.REC, 1) in blocks_of(module)
    assert Effects(module).of_call("main") is Effect.STATE


@pytest.mark.parametrize("name", ARGUMENTS)
def test_flavours_are_found_once_and_keep_the_meaning(name: str) -> None:
    module = program(name)
    flavoured = with_flavours(module)
    verify(flavoured, Stage.FLAVOURED)
    assert with_flavours(flavoured) is flavoured
    assert value(flavoured, name).equal(value(module, name))
