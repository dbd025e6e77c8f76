"""Programs made first-order mean the same and hold no functions."""

from __future__ import annotations

import pytest

from pyrelay.ir.equality import structural_hash
from pyrelay.ir.expr import Call, GlobalVar, If, Match, Transform
from pyrelay.ir.module import Module
from pyrelay.ir.traverse import post_order, spine
from pyrelay.ir.types import FLOAT, AdtType
from pyrelay.ir.verify import Stage, verify
from pyrelay.passes.closures import NotFirstOrder, first_order
from pyrelay.passes.closures.units import MAX_KNOWN
from tests.unit.passes.programs import (
    ARGUMENTS,
    bindings_of,
    body_of,
    evaluate,
    normal,
    program,
    value,
)

LIST = "type List[a] { Nil, Cons(a, List[a]) }\n"
MAP = (
    LIST
    + """
    def @map[a, b](%f: fn (a) -> b, %xs: List[a]) -> List[b] {
      match (%xs) { Nil() => Nil(), Cons(%h, %t) => Cons(%f(%h), @map(%f, %t)) }
    }
    def @sum(%xs: List[float32]) -> float32 {
      match (%xs) { Nil() => 0.0, Cons(%h, %t) => %h + @sum(%t) }
    }
    """
)


def converted(text: str) -> Module:
    module = first_order(normal(text), "main")
    verify(module, Stage.FIRST_ORDER)
    return module


def result(module: Module, *args: float) -> float:
    return float(evaluate(module, "main", tuple(args)))


@pytest.mark.parametrize("name", ARGUMENTS)
def test_a_program_keeps_its_meaning(name: str) -> None:
    module = program(name)
    made = first_order(module, "main")
    verify(made, Stage.FIRST_ORDER)
    assert value(made, name).equal(value(module, name))


@pytest.mark.parametrize("name", ARGUMENTS)
def test_two_conversions_give_the_same_program(name: str) -> None:
    first, second = (first_order(program(name), "main") for _ in range(2))
    assert structural_hash(first) == structural_hash(second)
    assert list(first.functions) == list(second.functions)


def test_a_loop_becomes_a_function_whose_calls_stay_tail_calls() -> None:
    module = first_order(program("loop"), "main")
    assert list(module.functions) == ["main", "main.for_loop"]
    assert body_of(module) == "@main.for_loop[N](%n, %x, 0i64, %x)"
    loop = module.functions["main.for_loop"]
    _, end = spine(loop.body)
    assert isinstance(end, If)
    _, tail = spine(end.then)
    assert isinstance(tail, Call)
    assert isinstance(tail.callee, GlobalVar)
    assert tail.callee.name == "main.for_loop"
    assert [p.name for p in loop.type_params] == ["N"]


def test_only_what_the_entry_reaches_is_kept() -> None:
    module = converted("""
        def @unused() { 1.0 }
        def @used(%x: float32) { %x }
        def @main(%x: float32) { @used(%x) }
    """)
    assert list(module.functions) == ["main", "used"]


def test_a_callee_is_specialised_to_the_function_it_is_passed() -> None:
    module = converted(
        MAP
        + """
        def @main(%x: float32, %y: float32) {
          @sum(@map(fn (%a: float32) { %a * %y }, Cons(%x, Cons(%y, Nil()))))
        }
        """
    )
    assert not any(name.startswith("apply") for name in module.functions)
    assert "Fn" not in module.adts
    (specialised,) = (f for n, f in module.functions.items() if n.startswith("map"))
    assert [p.name for p in specialised.params] == ["y", "xs"]
    assert result(module, 2.0, 3.0) == 15.0


def test_types_are_fixed_per_use_and_sizes_stay_parameters() -> None:
    module = converted(
        MAP
        + """
        def @main[N: Dim](%x: Tensor[(N,), float32]) {
          let %means = @map(fn (%t: Tensor[(N,), float32]) { mean(%t) }, Cons(%x, Nil()));
          @sum(@map(fn (%t: float32) { %t + 1.0 }, %means))
        }
        """
    )
    of_map = [f for n, f in module.functions.items() if n.startswith("map")]
    assert [[p.name for p in f.type_params] for f in of_map] == [["N"], []]


def test_a_function_chosen_by_a_condition_becomes_data() -> None:
    module = converted("""
        def @main(%b: float32, %x: float32) {
          let %f = if (%b > 0.0) { fn (%a: float32) { %a * %x } } else { fn (%a: float32) { %a } };
          %f(3.0) + %f(4.0)
        }
    """)
    assert [len(c.fields) for c in module.adts["Fn"].constructors] == [1, 0]
    apply = module.functions["apply.Fn"]
    assert isinstance(apply.body, Match)
    assert len(apply.body.clauses) == 2
    assert result(module, 1.0, 10.0) == 70.0
    assert result(module, -1.0, 10.0) == 7.0


def test_functions_of_types_that_differ_only_in_sizes_share_a_data_type() -> None:
    module = converted("""
        def @twice[N: Dim](%p: (fn (Tensor[(N,), float32]) -> Tensor[(N,), float32], int64),
                           %x: Tensor[(N,), float32]) { let %f = %p.0; %f(%f(%x)) }
        def @main(%s: float32) {
          let %two = full(size=(2,), fill_value=1.0, dtype=float32);
          let %three = full(size=(3,), fill_value=1.0, dtype=float32);
          let %a = @twice((fn (%t: Tensor[(2,), float32]) { %t * %s }, 1), %two);
          let %b = @twice((fn (%t: Tensor[(3,), float32]) { %t + %s }, 1), %three);
          sum(%a) + sum(%b)
        }
    """)
    assert [n for n in module.adts if n.startswith("Fn")] == ["Fn"]
    assert result(module, 2.0) == 8.0 + 15.0


def test_a_recursive_closure_can_be_stored() -> None:
    module = converted("""
        def @main(%x: float32, %n: float32) {
          let rec %down = fn (%k: float32) -> float32 {
            if (%k <= 0.0) { %x } else { %down(%k - 1.0) * 2.0 }
          };
          let %stored = (%down, 1.0);
          let %f = %stored.0;
          %f(%n)
        }
    """)
    assert result(module, 3.0, 4.0) == 48.0


def test_a_closure_that_captures_closures_can_be_given_back() -> None:
    module = converted("""
        def @add(%a: float32) -> fn (float32) -> float32 { fn (%b: float32) { %a + %b } }
        def @compose(%f: fn (float32) -> float32, %g: fn (float32) -> float32)
            -> fn (float32) -> float32 { fn (%x: float32) { %f(%g(%x)) } }
        def @main(%x: float32) {
          let %h = @compose(@add(1.0), @compose(@add(10.0), fn (%y: float32) { %y * %x }));
          %h(2.0)
        }
    """)
    assert result(module, 3.0) == 17.0


def test_functions_in_cells_become_data() -> None:
    module = converted("""
        def @main(%x: float32) {
          let %r = ref(fn (%y: float32) -> float32 { %y });
          let %before = ref_read(%r)(%x);
          ref_write(%r, fn (%y: float32) -> float32 { %y * %before * 10.0 });
          ref_read(%r)(%x)
        }
    """)
    assert result(module, 3.0) == 90.0


def test_a_constructor_and_a_polymorphic_function_can_be_values() -> None:
    module = converted(
        MAP
        + """
        type Box[a] { Box(a) }
        def @open[a](%b: Box[a]) -> a { match (%b) { Box(%v) => %v } }
        def @main(%x: float32) {
          let %made = (Box, @open);
          let %box = %made.0;
          let %open = %made.1;
          @sum(@map(@open, @map(Box, Cons(%x, Nil())))) + %open(%box(%x))
        }
        """
    )
    assert result(module, 4.0) == 8.0


def test_a_data_type_with_functions_in_it_is_copied_without() -> None:
    module = first_order(program("lazy_stream"), "main")
    assert "Stream" not in module.adts
    assert module.adts["Stream_1"].constructor("Next").fields == (FLOAT, AdtType("Fn"))


def test_a_loop_that_wraps_a_function_each_round_ends() -> None:
    module = first_order(program("growing_closures"), "main")
    assert len(module.functions) < 20


def test_instances_for_known_functions_are_bounded() -> None:
    calls = " + ".join(
        f"@apply(fn (%y: float32) {{ %y + {i}.0 }}, %x)" for i in range(MAX_KNOWN + 10)
    )
    module = converted(
        "def @apply(%f: fn (float32) -> float32, %x: float32) -> float32 { %f(%f(%x)) }\n"
        f"def @main(%x: float32) {{ {calls} }}"
    )
    made = [n for n in module.functions if n.split(".")[0] == "apply" and n != "apply.Fn"]
    assert len(made) == MAX_KNOWN + 1
    count = MAX_KNOWN + 10
    assert result(module, 0.0) == count * (count - 1)


def test_a_size_that_only_the_code_of_a_closure_needs_is_captured() -> None:
    module = first_order(program("found_sizes"), "main")
    closure = module.functions["main.f"]
    assert [p.name for p in closure.params] == ["size", "k"]


def test_a_transform_of_a_known_function_becomes_one_of_a_global_function() -> None:
    module = converted("""
        def @slope(%f: fn (float32) -> float32, %x: float32) -> float32 {
          grad{wrt=(0,), single=True}(%f)(%x)
        }
        def @main(%x: float32, %y: float32) { @slope(fn (%a: float32) { %a * %y }, %x) }
    """)
    (name,) = (n for n in module.functions if n.startswith("slope"))
    (binding,) = bindings_of(module, name)
    assert isinstance(binding.value, Transform)
    assert (binding.value.options.wrt, binding.value.captures) == ((0,), 1), "y is in front"
    assert isinstance(binding.value.function, GlobalVar)


def test_a_transform_of_a_transform_of_a_known_function_keeps_both() -> None:
    module = converted("""
        def @main(%x: float32, %y: float32) {
          let %f = fn (%a: float32) -> float32 { %a * %a * %y };
          grad(grad(%f))(%x)
        }
    """)
    first, second = (b.value for b in bindings_of(module))
    assert isinstance(first, Transform)
    assert isinstance(second, Transform)
    assert first.options.wrt == second.options.wrt == (0,)
    assert first.captures == second.captures == 1
    assert second.function is bindings_of(module)[0].var


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("def @main(%f: fn () -> float32) -> float32 { %f() }", "functions go into"),
        ("def @main(%x: float32) -> fn () -> float32 { fn () { %x } }", "functions go into"),
        ("def @main[a](%x: a) -> a { %x }", "has type variables"),
        (
            "def @f(%x: float32) -> float32 { %x }\ndef @main(%x: float32) { vjp(@f)(%x).0 }",
            "a pullback is a function",
        ),
        (
            "type Pair[a] { Pair(a, a) }\n"
            "def @grow[a](%x: a, %n: int64) -> int64 {\n"
            "  if (%n == 0) { 0 } else { @grow(Pair(%x, %x), %n - 1) } }\n"
            "def @main(%n: int64) { @grow(1.0, %n) }",
            "ever new types",
        ),
        (
            "def @double[a](%x: a, %n: int64) -> int64 {\n"
            "  if (%n == 0) { 0 } else { @double((%x, %x), %n - 1) } }\n"
            "def @main(%n: int64) { @double(1.0, %n) }",
            "ever new types",
        ),
    ],
)
def test_what_cannot_be_first_order_is_refused(text: str, why: str) -> None:
    module = normal(text)
    with pytest.raises(NotFirstOrder, match=why):
        first_order(module, "main")


def test_names_of_cases_are_plain() -> None:
    module = first_order(program("stored_functions"), "main")
    for constructor in module.adts["Fn"].constructors:
        assert constructor.name.isidentifier()
    for function in module.functions.values():
        assert all(node.span is not None for node in post_order(function))
