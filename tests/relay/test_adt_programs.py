"""The programs that introduced data types to Relay, as its text, with the values stated there."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pyrelay import api
from pyrelay.diagnostics.diagnostic import CheckError

HEADER = '#[version = "0.0.5"]\n'
NUMBERS = """
type Numbers { Empty, Single(int32), Pair(int32, int32) }
type Numbers2 { Empty2, Single2(int32), Pair2(int32, int32) }
def @sum_of(%n: Numbers) -> int32 {
  match (%n) { Empty => { 0 }, Single(%x) => { %x }, Pair(%x, %y) => { %x + %y } }
}
"""
LISTS = """
def @list_sum(%l: List[int32]) -> int32 {
  match (%l) { Nil => { 0 }, Cons(%h, %t) => { %h + @list_sum(%t) } }
}
def @first[A](%l: List[A]) -> Option[A] {
  match (%l) { Nil => { None }, Cons(%h, _) => { Some(%h) } }
}
def @second_opt[A](%ll: Option[List[A]]) -> Option[A] {
  match (%ll) { Some(Cons(_, Cons(%s, _))) => { Some(%s) }, _ => { None } }
}
def @beware[A](%l: List[A]) -> List[A] {
  match (%l) {
    %v => { %v },
    Cons(%h, %t) => { Cons(%h, @beware(%t)) },
    Nil => { Nil }
  }
}
def @double(%l: List[int32]) -> List[int32] {
  match (%l) { Nil => { Nil }, Cons(%h, %t) => { Cons(%h * 2, @double(%t)) } }
}
def @flatten[A](%ll: List[List[A]]) -> List[A] {
  match (%ll) { Cons(%h, %t) => { @concat(%h, @flatten(%t)) }, Nil => { Nil } }
}
def @digits(%xs: List[int32]) -> int32 {
  @foldl(fn (%a: int32, %x: int32) -> int32 { %a * 10 + %x }, 0, %xs)
}
def @or_zero(%o: Option[int32]) -> int32 { match (%o) { Some(%x) => { %x }, None => { 0 } } }
"""
ONE_TWO, THREE = "Cons(1, Cons(2, Nil))", "Cons(1, Cons(2, Cons(3, Nil)))"


def value(text: str, *args: Any) -> Any:
    main = api.parse(HEADER + text)["main"]
    found = main(*args)
    torch.testing.assert_close(main.interpret(*args), found)
    return found


def refused(text: str) -> str:
    with pytest.raises(CheckError) as caught:
        api.parse(HEADER + text).check()
    return str(caught.value)


@pytest.mark.parametrize(("made", "total"), [("Empty", 0), ("Single(3)", 3), ("Pair(5, 6)", 11)])
def test_numbers_of_three_kinds_are_summed(made: str, total: int) -> None:
    assert value(f"{NUMBERS} def @main() {{ @sum_of({made}) }}") == total


def test_data_types_that_look_alike_differ() -> None:
    found = refused(f"{NUMBERS} def @main() {{ @sum_of(Empty2) }}")
    assert "takes Numbers" in found
    assert "this is Numbers2" in found


def test_an_option_of_another_type_is_refused() -> None:
    text = """
    def @inc(%o: Option[int32]) -> int32 { match (%o) { None => { 1 }, Some(%s) => { %s + 1 } } }
    def @main() { (@inc(Some(1)), @inc(None)) }
    """
    assert tuple(map(int, value(text))) == (2, 1)
    big = 'full(1f, shape=[10, 10], dtype="float32")'
    assert "Option[int32]" in refused(f"{text} def @wrong() {{ @inc(Some({big})) }}")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (f"@list_sum({THREE})", 6),
        (f"@or_zero(@first({THREE}))", 1),
        ("@or_zero(@first(Nil))", 0),
        (f"@or_zero(@second_opt(Some({ONE_TWO})))", 2),
        ("@or_zero(@second_opt(Some(Cons(1, Nil))))", 0),
        ("@or_zero(@second_opt(Some(Nil)))", 0),
        ("@or_zero(@second_opt(None))", 0),
        (f"@digits(@beware({THREE}))", 123),
        (f"@digits(@double({THREE}))", 246),
        (f"@digits(@map(fn (%i: int32) -> int32 {{ %i * 2 }}, {THREE}))", 246),
        (
            f"@digits(@foldr(fn (%h: int32, %z: List[int32]) {{ Cons(%h, %z) }}, {ONE_TWO}, "
            f"{THREE}))",
            12312,
        ),
        (f"@digits(@flatten(Cons({THREE}, Cons({ONE_TWO}, Nil))))", 12312),
        (f"@digits(@foldl(@concat, Nil, Cons({THREE}, Cons({ONE_TWO}, Nil))))", 12312),
    ],
)
@pytest.mark.filterwarnings("ignore:.*never:pyrelay.diagnostics.diagnostic.RelayWarning")
def test_functions_on_lists(body: str, expected: int) -> None:
    assert value(f"{LISTS} def @main() -> int32 {{ {body} }}") == expected


VECTOR, WEIGHT = "Tensor[(1, 3), float32]", "Tensor[(3, 3), float32]"
CELL = f"""
def @linear(%x: {VECTOR}, %w: {WEIGHT}, %b: {VECTOR}) -> {VECTOR} {{ nn.dense(%x, %w) + %b }}
def @cell(%w: ({WEIGHT}, {WEIGHT}), %b: ({VECTOR}, {VECTOR}), %s: {VECTOR}, %x: {VECTOR})
    -> ({VECTOR}, {VECTOR}) {{
  let %x2 = @linear(%x, %w.0, %b.0);
  let %s2 = @linear(%s, %w.1, %b.1);
  (%s, nn.relu(%x2 + %s2))
}}
def @trained(%w: ({WEIGHT}, {WEIGHT}), %b: ({VECTOR}, {VECTOR})) {{
  fn (%s: {VECTOR}, %x: {VECTOR}) {{ @cell(%w, %b, %s, %x) }}
}}
def @encode[S, I, O](%cell: fn (S, I) -> (S, O), %input: List[I], %init: S) -> S {{
  @foldl(fn (%state: S, %in: I) -> S {{ %cell(%state, %in).0 }}, %init, %input)
}}
def @general_rnn[S, I, O](%cell: fn (S, I) -> (S, O), %init: S, %input: List[I]) -> (S, List[O]) {{
  @map_accumr(%cell, %init, %input)
}}
def @bidirectional[S, T, I, O, P](%one: fn (S, I) -> (S, O), %two: fn (T, I) -> (T, P),
    %s: S, %t: T, %input: List[I]) -> List[(O, P)] {{
  @zip(@map_accumr(%one, %s, %input).1, @map_accuml(%two, %t, %input).1)
}}
"""
ARGUMENTS = f"%w: ({WEIGHT}, {WEIGHT}), %b: ({VECTOR}, {VECTOR}), %s: {VECTOR}, %x: {VECTOR}"


def arguments() -> tuple[Any, ...]:
    torch.manual_seed(0)
    w, b = (torch.randn(3, 3), torch.randn(3, 3)), (torch.randn(1, 3), torch.randn(1, 3))
    return w, b, torch.randn(1, 3), torch.randn(1, 3)


def output(w: Any, b: Any, s: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return torch.relu(x @ w[0].T + b[0] + s @ w[1].T + b[1])


def test_a_network_encodes_a_list() -> None:
    w, b, s, x = arguments()
    text = f"{CELL} def @main({ARGUMENTS}) {{ @encode(@trained(%w, %b), Cons(%x, Nil), %s) }}"
    torch.testing.assert_close(value(text, w, b, s, x), s)


def test_a_network_has_an_output_for_every_input() -> None:
    w, b, s, x = arguments()
    body = "@nth(@general_rnn(@trained(%w, %b), %s, Cons(%x, Cons(%s, Nil))).1, 1)"
    found = value(f"{CELL} def @main({ARGUMENTS}) {{ {body} }}", w, b, s, x)
    torch.testing.assert_close(found, output(w, b, s, s))


def test_a_network_goes_in_both_directions_with_the_pairing_that_relay_has() -> None:
    w, b, s, x = arguments()
    body = (
        "@hd(@bidirectional(@trained(%w, %b), @trained(%w, %b), %s, %s, Cons(%x, Cons(%s, Nil))))"
    )
    one, two = value(f"{CELL} def @main({ARGUMENTS}) {{ {body} }}", w, b, s, x)
    torch.testing.assert_close(one, output(w, b, s, x))
    torch.testing.assert_close(two, output(w, b, s, s))


def test_a_network_generates_a_list_from_a_state() -> None:
    text = f"""
    {LISTS}
    def @cell(%n: int32, %state: int32) -> (int32, int32) {{ (%state - 1, %n * %state) }}
    def @next(%state: int32) -> Option[int32] {{ if (%state > 0) {{ Some(2) }} else {{ None }} }}
    def @gen(%state: int32) -> Option[(int32, int32)] {{
      match (@next(%state)) {{
        Some(%n) => {{ let %made = @cell(%n, %state); Some((%made.0, %made.1)) }},
        None => {{ None }}
      }}
    }}
    def @main() -> int32 {{ @digits(@unfoldr(@gen, 3)) }}
    """
    assert value(text) == 642
