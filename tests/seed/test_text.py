"""The introduction to algebraic data types as Relay's text: `adts.relay`, with the values that are
stated there, or where it states none, those that Relay gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pyrelay import CheckError, relay
from pyrelay.ir import builders
from pyrelay.ir.equality import alpha_equal
from pyrelay.text.printer import to_text

from .values import agree

FILE = Path(__file__).parent / "adts.relay"
TEXT = FILE.read_text(encoding="utf-8")

USES = """
def @sums() { (@sum(Empty()), @sum(Single(3)), @sum(Pair(5, 6))) }

def @int[a](%o: Optional[int32]) -> int32 { match (%o) { Some(%x) => { %x }, None => { -1 } } }
def @digits(%xs: List[int32]) -> int32 { @foldl(fn (%a, %x) { %a * 10 + %x }, 0, %xs) }
def @floats(%xs: List[float32]) -> float32 { @foldl(fn (%a, %x) { %a * 100f + %x }, 0f, %xs) }
def @pairs(%xs: List[(float32, float32)]) {
  (@floats(@map(fn (%p: (float32, float32)) { %p.0 }, %xs)),
   @floats(@map(fn (%p: (float32, float32)) { %p.1 }, %xs)))
}
def @inputs() { Cons(1f, Cons(2f, Cons(3f, Nil()))) }

def @firsts() {
  let %none: List[int32] = Nil();
  (@int(@first(Cons(4, Cons(5, Nil())))), @int(@first(%none)))
}
def @seconds() {
  let %nil: List[int32] = Nil();
  let %none: Optional[List[int32]] = None();
  (@int(@second_opt(Some(Cons(1, Nil())))), @int(@second_opt(Some(Cons(1, Cons(2, Nil()))))),
   @int(@second_opt(Some(%nil))), @int(@second_opt(%none)))
}
def @ordered() { @digits(@match_order_beware(Cons(1, Cons(2, Nil())))) }
def @list_sums() { @list_sum(Cons(1, Cons(2, Cons(3, Nil())))) }
def @doubles() {
  let %xs = Cons(1, Cons(2, Nil()));
  (@digits(@double(%xs)), @digits(@double_by_map(%xs)))
}
def @concats() {
  let %xs = Cons(1, Cons(2, Nil()));
  let %ys = Cons(3, Nil());
  (@digits(@concat(%xs, %ys)), @digits(@concat_by_foldr(%xs, %ys)))
}
def @flattened() {
  let %xss = Cons(Cons(1, Cons(2, Nil())), Cons(Cons(3, Nil()), Nil()));
  (@digits(@flatten(%xss)), @digits(@flatten_by_foldl(%xss)))
}

def @trained() { @trained_cell((2f, 1f), (0f, 1f)) }
def @leaky(%s: float32, %x: float32) -> (float32, float32) { (%s + %x, %s + 10f) }
def @cell() { @trained()(3f, 4f) }
def @encoded() {
  (@encode(@trained(), @inputs(), 3f), @encode(@leaky, @inputs(), 3f))
}
def @generated() {
  @floats(@generator(@leaky, fn (%s: float32) {
    if (%s < 5f) { Some(%s + 1f) } else { None() }
  }, 1f))
}
def @accumulated() {
  let %right = @map_accumr(@leaky, 0f, @inputs());
  let %left = @map_accuml(@leaky, 0f, @inputs());
  let %plain = @map_accumr_plain(@leaky, 0f, @inputs());
  let %rnn = @general_rnn(@leaky, 0f, @inputs());
  ((%right.0, @floats(%right.1)), (%left.0, @floats(%left.1)),
   (%plain.0, @floats(%plain.1)), (%rnn.0, @floats(%rnn.1)))
}
def @trained_rnn() {
  let %rnn = @general_rnn(@trained(), 3f, @inputs());
  (%rnn.0, @floats(%rnn.1))
}
def @both() { @pairs(@bidirectional_rnn(@leaky, @trained(), 0f, 3f, @inputs())) }
def @zipped() {
  @pairs(@zip(@inputs(), Cons(7f, Cons(8f, Nil()))))
}
"""


@pytest.fixture(scope="module")
def programs() -> Any:
    """The module of the text and the uses of its functions."""
    return relay.parse(TEXT + USES, "adts.relay")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("sums", (0, 3, 11)),
        ("main", (2, 1)),
        ("list_sums", 6),
        ("firsts", (4, -1)),
        ("seconds", (-1, 2, -1, -1)),
        ("ordered", 12),
        ("doubles", (24, 24)),
        ("concats", (123, 123)),
        ("flattened", (123, 123)),
        ("cell", (3.0, 12.0)),
        ("encoded", (3.0, 9.0)),
        # States 1, 3, 7; outputs 11, 13.
        ("generated", 1113.0),
        # From the right the states before 3, 2, 1 are 0, 3, 5; from the left those before 1, 2, 3
        # are 0, 1, 3. `map_accuml` gives its outputs last first.
        ("accumulated", ((6.0, 151310.0), (6.0, 131110.0), (6.0, 101113.0), (6.0, 151310.0))),
        # 2x + (3 + 1)
        ("trained_rnn", (3.0, 60810.0)),
        ("both", (151310.0, 100806.0)),
        ("zipped", (102.0, 708.0)),
    ],
)
@pytest.mark.filterwarnings("ignore:.*never")
def test_a_program_gives_the_value_that_is_stated(programs: Any, name: str, value: Any) -> None:
    assert agree(programs[name]) == value


def test_the_text_is_checked_as_a_whole_and_read_back(programs: Any) -> None:
    module = programs
    # Only the two cases that stand there to show that they are never reached.
    assert [w.code for w in module.check().warnings] == ["RL233", "RL233"]
    assert alpha_equal(relay.parse(str(module)).ir, module.ir)
    assert alpha_equal(relay.parse(str(module.typed)).ir, module.typed.ir)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("@sum(Empty2())", "this is Numbers2"),
        (
            "let %big: Optional[Tensor[(10, 10), float32]] = Some(ones(shape=[10, 10], "
            'dtype="float32")); @inc_scalar(%big)',
            r"`opt` is Optional\[int32\]",
        ),
    ],
)
def test_a_program_that_is_wrong_is_refused_with_the_reason(body: str, reason: str) -> None:
    with pytest.raises(CheckError, match=reason):
        relay.parse(f"{TEXT} def @wrong() {{ {body} }}")["wrong"].check()


EITHER = """#[version = "0.0.5"]
type Either[A, B] { Left(A), Right(B) }
def @total(%xs: List[Either[int32, List[int32]]]) -> int32 {
  @foldl(fn (%n, %x) {
    match (%x) { Left(%i) => { %n + %i }, Right(%more) => { %n + @sum(%more) } }
  }, 0, %xs)
}
def @main() {
  @total(Cons(Left(1), Cons(Right(Cons(2, Cons(3, Nil))), Cons(Left(4), Nil))))
}
"""


def test_either_holds_one_of_two_types() -> None:
    assert agree(relay.parse(EITHER)["main"]) == 10


def test_either_is_built_as_data() -> None:
    a, b = builders.type_var("A"), builders.type_var("B")
    built = builders.module({}, builders.data("Either", [a, b], Left=[a], Right=[b]))
    assert "type Either[A, B] {\n  Left(A),\n  Right(B),\n}" in to_text(built)
    either = built.adts["Either"]
    alone = relay.parse(EITHER).ir.adts["Either"]
    assert (either.type_params, either.constructors) == (alone.type_params, alone.constructors)
