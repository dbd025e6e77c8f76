"""The networks of the introduction to data types, on vectors. The rest of it is in tests/seed."""

from __future__ import annotations

from typing import Any

import torch

from pyrelay import api
from tests.relay.reading import HEADER

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


def value(text: str, *args: Any) -> Any:
    main = api.parse(HEADER + text)["main"]
    found = main(*args)
    torch.testing.assert_close(main.interpret(*args), found)
    return found


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
