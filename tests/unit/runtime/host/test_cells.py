"""Cells in text: when effects happen, in which order, and what cells may hold."""

from __future__ import annotations

from typing import Any

import pytest

from pyrelay.diagnostics.diagnostic import CheckError
from pyrelay.infer import infer
from pyrelay.ir.module import Module
from pyrelay.ir.normal_form import to_anf
from pyrelay.ir.verify import Stage, verify
from pyrelay.passes.closures import first_order
from pyrelay.passes.normalise.flavours import with_flavours
from pyrelay.passes.simplify.cse import share
from pyrelay.passes.simplify.dce import remove_dead
from pyrelay.passes.simplify.inline import inline
from pyrelay.passes.simplify.simplify import simplify
from pyrelay.runtime.compile.evaluator import evaluate
from pyrelay.runtime.host import compile_module
from pyrelay.text.parser import parse_module
from tests.unit.runtime.host.programs import CPU, assert_same

LIST = "type List[T] { Nil, Cons(T, List[T]) }\n"
COUNT = """def @next(%r: ref(int64)) -> int64 {
  let! %_ = ref_write(%r, ref_read(%r) + 1); ref_read(%r) }
def @log(%r: ref(int64), %digit: int64) -> int64 {
  let! %_ = ref_write(%r, ref_read(%r) * 10 + %digit); %digit }
"""

PROGRAMS: dict[str, tuple[str, Any]] = {
    "made and read": ("let! %r = ref(1); ref_read(%r)", 1),
    "a write gives unit": ("let! %r = ref(1); ref_write(%r, 2)", ()),
    "written by another name": (
        "let! %r = ref(1); let %s = %r; let %a = ref_read(%r); let! %_ = ref_write(%s, 2); "
        "(%a, ref_read(%r))",
        (1, 2),
    ),
    "two cells are two": (
        "let! %r = ref(1); let! %s = ref(1); let! %_ = ref_write(%r, 5); "
        "(ref_read(%r), ref_read(%s))",
        (5, 1),
    ),
    "one expression, a cell each time": (
        "let %make = fn () { ref(1) }; let! %r = %make(); let! %s = %make(); "
        "let! %_ = ref_write(%r, 5); (ref_read(%r), ref_read(%s))",
        (5, 1),
    ),
    "only the taken branch has effects": (
        "let! %r = ref(0); let %a = if (True) { ref_write(%r, 1) } else { ref_write(%r, 2) }; "
        "ref_read(%r)",
        1,
    ),
    "only the chosen clause has effects": (
        "let! %r = ref(0); let %a = match (Cons(1, Nil())) { "
        "Nil => { ref_write(%r, 1) }, Cons(_, _) => { ref_write(%r, 2) } }; ref_read(%r)",
        2,
    ),
    "what is matched is evaluated once": (
        "let! %r = ref(0); let %a = match (@next(%r)) { 5 => { 50 }, 6 => { 60 }, _ => { 70 } }; "
        "(%a, ref_read(%r))",
        (70, 1),
    ),
    "guards run until one holds": (
        "let! %r = ref(0); let %a = match (0) { "
        "_ if { @log(%r, 1) == 2 } => { 10 }, _ if { @log(%r, 2) == 2 } => { 20 }, "
        "_ if { @log(%r, 3) == 3 } => { 30 }, _ => { 40 } }; (%a, ref_read(%r))",
        (20, 12),
    ),
    "a tuple from left to right": (
        "let! %r = ref(0); (@next(%r), @next(%r), @next(%r), @next(%r), @next(%r))",
        (1, 2, 3, 4, 5),
    ),
    "operands from left to right": (
        "let! %r = ref(0); let %a = @next(%r) - @next(%r) * @next(%r); (%a, ref_read(%r))",
        (-5, 3),
    ),
    "arguments from left to right, the callee first": (
        "let! %r = ref(0); let %choose = fn (%d: int64) -> (fn (int64, int64) -> int64) { "
        "let! %_ = @log(%r, %d); fn (%a: int64, %b: int64) { %a - %b } }; "
        "let %v = %choose(1)(@log(%r, 2), @log(%r, 3)); (%v, ref_read(%r))",
        (-1, 123),
    ),
    "fields from left to right": (
        "let! %r = ref(0); match (Cons(@next(%r), Cons(@next(%r), Nil()))) { "
        "Cons(%a, Cons(%b, _)) => { (%a, %b) }, _ => { (0, 0) } }",
        (1, 2),
    ),
    "the cell before what is written": (
        "let! %r = ref(0); let! %s = ref(7); let %cell = fn () { let! %_ = @log(%r, 1); %s }; "
        "let! %_ = ref_write(%cell(), @log(%r, 2)); (ref_read(%r), ref_read(%s))",
        (12, 2),
    ),
    "nested lets in a tuple": (
        "let! %r = ref(1); (if (True) { let %a = @next(%r); %a } else { 0 }, "
        "if (True) { let %a = @next(%r); %a } else { 0 }, @next(%r))",
        (2, 3, 4),
    ),
    "a value is read when it is read": (
        "let! %r = ref(1); let %a = ref_read(%r); let! %_ = ref_write(%r, 2); "
        "let %b = ref_read(%r); (%a, %b, %a + %b)",
        (1, 2, 3),
    ),
    "equal reads are two reads": (
        "let! %r = ref(1); let %a = ref_read(%r) * 2; let! %_ = ref_write(%r, 5); "
        "let %b = ref_read(%r) * 2; (%a, %b)",
        (2, 10),
    ),
    "a closure over a cell": (
        "let! %r = ref(0); let %bump = fn (%by) { let! %_ = ref_write(%r, ref_read(%r) + %by); "
        "ref_read(%r) }; (%bump(1), %bump(10), ref_read(%r))",
        (1, 11, 11),
    ),
    "counters of their own": (
        "let %counter = fn () { let! %r = ref(0); fn () { @next(%r) } }; "
        "let %a = %counter(); let %b = %counter(); (%a(), %a(), %b(), %a())",
        (1, 2, 1, 3),
    ),
    "closures share a cell": (
        "let! %r = ref(0); let %put = fn (%v: int64) { ref_write(%r, %v) }; "
        "let %get = fn () { ref_read(%r) }; let! %_ = %put(4); %get()",
        4,
    ),
    "a closure in a cell": (
        "let! %r = ref(fn (%x: int64) { %x + 1 }); let! %f = ref_read(%r); "
        "let! %_ = ref_write(%r, fn (%x: int64) { %f(%f(%x)) }); let! %g = ref_read(%r); %g(1)",
        3,
    ),
    "recursion through a cell": (
        "let! %r = ref(fn (%n: int64) { %n }); "
        "let! %_ = ref_write(%r, fn (%n: int64) { if (%n < 1) { 0 } else { "
        "let! %f = ref_read(%r); %n + %f(%n - 1) } }); let! %f = ref_read(%r); %f(10)",
        55,
    ),
    "a cell in a tuple": (
        "let! %r = ref(1); let %p = (%r, 5); let! %_ = ref_write(%p.0, 2); ref_read(%r) + %p.1",
        7,
    ),
    "a cell in data": (
        "let! %r = ref(1); let %l = Cons(%r, Cons(%r, Nil())); match (%l) { "
        "Cons(%a, Cons(%b, _)) => { let! %_ = ref_write(%a, 9); ref_read(%b) }, _ => { 0 } }",
        9,
    ),
    "a cell in a cell": (
        "let! %r = ref(1); let! %c = ref(%r); let! %_ = ref_write(ref_read(%c), 2); "
        "let! %_ = ref_write(%c, ref(30)); (ref_read(%r), ref_read(ref_read(%c)))",
        (2, 30),
    ),
    "a list in a cell": (
        "let! %r = ref(Nil()); let! %_ = ref_write(%r, Cons(1, ref_read(%r))); "
        "let! %_ = ref_write(%r, Cons(2, ref_read(%r))); match (ref_read(%r)) { "
        "Cons(%a, Cons(%b, Nil)) => { (%a, %b) }, _ => { (0, 0) } }",
        (2, 1),
    ),
    "a cell from a polymorphic function": (
        "let %a = @fresh(1); let %b = @fresh(True); let! %_ = ref_write(%a, 2); "
        "(ref_read(%a), ref_read(%b))",
        (2, True),
    ),
    "a loop": (
        "let! %r = ref(0); let rec %loop = fn (%i: int64) -> () { if (%i < 5) { "
        "let! %_ = ref_write(%r, ref_read(%r) * 2 + %i); %loop(%i + 1) } else { () } }; "
        "let! %_ = %loop(0); ref_read(%r)",
        26,
    ),
    "a loop that stops by its cell": (
        "let! %r = ref(0); let rec %loop = fn () -> int64 { "
        "if (@next(%r) < 5) { %loop() } else { ref_read(%r) * 10 } }; %loop()",
        50,
    ),
    "recursion, before and after": (
        "let! %r = ref(0); let rec %down = fn (%n: int64) -> () { if (%n < 1) { () } else { "
        "let! %_ = @log(%r, %n); let! %_ = %down(%n - 1); let! %_ = @log(%r, %n); () } }; "
        "let! %_ = %down(3); ref_read(%r)",
        321123,
    ),
    "an unused effect stays": (
        "let! %r = ref(0); let %unused = @next(%r); let %pure = 3 * 4; ref_read(%r)",
        1,
    ),
    "effects of an argument that is ignored": (
        "let! %r = ref(0); let %first = fn (%a: int64, %b: int64) { %a }; "
        "let %v = %first(1, @next(%r)); (%v, ref_read(%r))",
        (1, 1),
    ),
    "both arms of what is the same": (
        "let! %r = ref(1); let %f = if (ref_read(%r) < 2) { fn () { @next(%r) } } "
        "else { fn () { @next(%r) * 10 } }; (%f(), %f())",
        (2, 3),
    ),
}


def module_of(body: str) -> Module:
    """Return a program in A-normal form whose `main` has a body."""
    fresh = "def @fresh[T](%x: T) -> ref(T) { ref(%x) }\n"
    return to_anf(infer(parse_module(f"{LIST}{COUNT}{fresh}def @main() {{ {body} }}")))


def _value(module: Module, entry: str) -> Any:
    return evaluate(module, entry, ())


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_means_what_it_says_at_every_stage(name: str) -> None:
    body, expected = PROGRAMS[name]
    module = module_of(body)
    stages = [
        module,
        share(module),
        remove_dead(module, "main"),
        inline(module, "main"),
        first_order(module, "main"),
        simplify(module, "main", _value),
        simplify(first_order(module, "main"), "main", _value),
    ]
    for stage in stages:
        final = with_flavours(stage)
        verify(final, Stage.FLAVOURED)
        assert_same(evaluate(stage, "main", ()), expected)
        assert_same(compile_module(final, "main", CPU)(), expected)


@pytest.mark.parametrize(
    "body",
    [
        "let! %r = ref(fn (%x) { %x }); let! %f = ref_read(%r); (%f(1), %f(True))",
        "let %id = fn (%x) { %x }; let! %r = ref(%id); let! %f = ref_read(%r); (%f(1), %f(True))",
        "let! %r = ref(Nil()); let! %_ = ref_write(%r, Cons(1, Nil())); "
        "ref_write(%r, Cons(True, Nil()))",
        "let! %r = ref(1); ref_write(%r, True)",
        "ref_read(1)",
        "ref_write((1, 2), 3)",
    ],
)
def test_a_cell_has_one_type(body: str) -> None:
    with pytest.raises(CheckError) as caught:
        module_of(body)
    assert "?" not in str(caught.value).split("\n", 1)[0]
