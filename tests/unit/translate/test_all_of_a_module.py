"""Whatever a module may hold has words in Python, and reads back."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyrelay import relay
from pyrelay.ir.normal_form import to_anf
from pyrelay.to_python.file import File
from pyrelay.to_python.sayable import sayable
from tests.python_text import assert_reads_back

pytestmark = pytest.mark.host("prints programs and compiles them again")
pytest.importorskip("typing_extensions")

VOID = "type V { }\n"
PROGRAMS = {
    # Data types without constructors.
    "never": "def @f(%x: V) -> float32 { match (%x) { } }",
    "never_unused": "type W { }\ndef @f(%x: V, %y: W, %z: float32) -> float32 { %z }",
    "never_of_types": "type W[A] { }\ndef @f(%x: W[float32], %y: W[V]) -> int64 { match (%x) { } }",
    "never_of_sizes": "type W[n: Dim] { }\ndef @f[n: Dim](%x: W[n], %y: W[3]) -> W[n] { %x }",
    "never_in_a_field": """type R { Ok(float32), Err(V) }
def @f(%x: R) -> float32 { match (%x) { Ok(%v) => %v, Err(%e) => match (%e) { } } }""",
    "never_joined": """type R { Ok(float32), Err(V) }
def @f(%x: R) -> float32 {
  let %y: float32 = match (%x) { Ok(%v) => %v, Err(%e) => match (%e) { } };
  tanh(%y)
}""",
    "never_in_both_arms": """def @f(%x: float32, %v: V) -> float32 {
  let %y: float32 = if (%x > 0.0f32) { match (%v) { } } else { match (%v) { } };
  tanh(%y)
}""",
    "never_bound": "def @f(%v: V) -> float32 { let %y: float32 = match (%v) { }; tanh(%y) }",
    "never_unit": "def @f(%v: V, %x: float32) -> float32 { let %u: () = match (%v) { }; %x }",
    "never_a_function": """def @f(%v: V, %x: float32) -> float32 {
  let %g: fn (float32) -> float32 = match (%v) { };
  %g(%x)
}""",
    "never_a_condition": """def @f(%v: V) -> float32 {
  if (match (%v) { }) { 1.0f32 } else { 2.0f32 }
}""",
    "never_in_a_guard": """def @f(%l: (V, float32), %x: float32) -> float32 {
  match (%l) { (%v, _) if (match (%v) { }) => %x, _ => %x }
}""",
    "never_optional": """def @f(%x: prelude.Option[V]) -> float32 {
  match (%x) { Some(%e) => match (%e) { }, None => 0.0f32 }
}""",
    "never_where_there_is_one": """def @f(%x: prelude.Option[V], %y: float32) -> float32 {
  match (%x) { None => %y, Some(%e) => match (%e) { } }
}""",
    "never_in_a_cell": "def @f(%x: float32, %y: ref(V)) -> float32 { %x }",
    "never_any": "def @f(%v: V) -> float32 { match (%v) { _ => 1.0f32 } }",
    "never_partial": "def @f(%v: V) -> float32 { match? (%v) { } }",
    "never_in_a_closure": """def @f(%x: float32) -> fn (V) -> float32 {
  fn (%e: V) -> float32 { match (%e) { } }
}""",
    "never_by_its_name": """type Never { }
def @assert_never(%x: Never) -> float32 { match (%x) { } }
def @f(%Never: V, %TypeAliasType: Never) -> float32 { @assert_never(%TypeAliasType) }""",
    # Sizes of data types, which no field shows, or shows in arithmetic only.
    "size_nowhere": """type Tag[n: Dim] { Tag(float32) }
def @f[n: Dim](%x: Tag[n], %y: Tag[3]) -> Tag[2*n + 1] { Tag(1.0f32) }""",
    "size_in_a_sum": """type Box[n: Dim] { Box(Tensor[(2*n,), float32]) }
def @f[n: Dim](%b: Box[n]) -> Tensor[(2*n,), float32] { match (%b) { Box(%v) => %v } }""",
    "size_in_a_maximum": """type Box[n: Dim, m: Dim] { Box(Tensor[(max(n, m) + n % 3,), float32]) }
def @f[n: Dim](%b: Box[n, 2]) -> Box[n, 2] { %b }""",
    "size_alone": """type Box[n: Dim] { Box(Size[n], Tensor[(n,), float32]) }
def @f[n: Dim](%b: Box[n]) -> int64 { match (%b) { Box(%v, _) => %v } }""",
    "size_passed_on": """type In[n: Dim] { In(Tensor[(n,), float32]) }
type Out[n: Dim] { Out(In[2*n]), Other(In[3]) }
def @f[n: Dim](%b: Out[n]) -> Out[n] { %b }""",
    # Integers that are known.
    "number": "def @f(%n: Size[3], %m: Size[-1]) -> int64 { %n + %m }",
    "number_in_data": """type Box { Box(Size[3]) }
def @f(%n: (Size[3], Box), %l: prelude.List[Size[4]]) -> prelude.List[Size[4]] { %l }""",
    "number_of_a_closure": """def @f(%x: float32) -> int64 {
  let %g = fn (%n: Size[3]) -> int64 { %n };
  %g(3)
}""",
    # The rest.
    "wide_integers": "def @f(%x: Tensor[(3,), uint16], %y: uint64) -> Tensor[(3,), uint16] { %x }",
    "open_sizes_of_a_function": """
def @g[n: Dim, m: Dim](%x: Tensor[(n*m,), float32]) -> Tensor[(n*m,), float32] { %x }
def @h(%g: fn (Tensor[(6,), float32]) -> Tensor[(6,), float32], %x: Tensor[(6,), float32])
  -> Tensor[(6,), float32] { %g(%x) }
def @f(%x: Tensor[(6,), float32]) -> Tensor[(6,), float32] { @h(@g, %x) }""",
    "fails": """def @f(%x: float32) -> float32 {
  let %y: float32 = fail(message="no");
  let %z: float32 = fail(message="no");
  tanh(%y)
}""",
    "guard_that_makes_data": """type G[A] { E, F(A) }
def @empty[A](%g: G[A]) -> bool { match (%g) { E => True, _ => False } }
def @f(%l: (float32, float32), %x: float32) -> float32 {
  match (%l) { (%v, _) if (@empty[int64](E())) => %v, _ => %x }
}""",
    "guard_that_is_long": f"""def @f(%l: float32, %x: float32) -> float32 {{
  match (%l) {{ %v if ({" + ".join(["%v"] * 30)} > %x) => %v, _ => %x }}
}}""",
    "guard_that_is_longer": f"""def @f(%l: float32, %x: float32) -> float32 {{
  match (%l) {{ %v if ({" + ".join(["%v"] * 90)} > %x) => %v, _ => %x }}
}}""",
    "guard_that_normalises": """
def @f(%l: Tensor[(2, 3), float32], %w: Tensor[(3,), float32], %x: float32) -> float32 {
  match (%l) {
    %v if (any(batch_norm(%v, %w, %w, training=False).0 > %x)) => %x,
    _ => 0.0f32,
  }
}""",
    "types_called_as_iterators": """type Iterable { Iterable(float32) }
type Iterator { Iterator(float32), X }
def @f(%x: Iterable, %y: Iterator) -> float32 { match (%x) { Iterable(%v) => %v } }""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_it_reads_back(name: str, tmp_path: Path) -> None:
    typed = relay.parse(f'#[pyrelay = "1"]\n{VOID}{PROGRAMS[name]}')["f"].module
    entry = File(sayable(to_anf(typed))).functions["f"]
    assert assert_reads_back(typed, entry, tmp_path)
