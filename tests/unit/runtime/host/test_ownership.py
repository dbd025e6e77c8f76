"""Storage is written in place where the program owns it, and only there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import pyrelay
from pyrelay import Dim, Float, Tensor, relay
from pyrelay.config import options
from tests.unit.runtime.host.programs import compiled, run_both

N = Dim("N")
PUT = 'set_at(BASE, (PLACE,), 5f32, spec=(("int", 0),))'


def text(source: str) -> str:
    """Return a program with `put(a, i)` written out: the tensor with 5 at a place."""
    parts = source.split("put(")
    found = parts[0]
    for part in parts[1:]:
        (base, place), rest = part.split(")", 1)[0].split(", "), part.split(")", 1)[1]
        found += PUT.replace("BASE", base).replace("PLACE", place) + rest
    return found


def writes(source: str) -> int:
    """Return how many calls of a program write into an operand."""
    return compiled(source).source.count("_in_place(")


X = "%x: Tensor[(4,), float32]"

HELD = {
    "an argument": f"def @main({X}) {{ put(%x, 1i64) }}",
    "a value that is read again": f"""def @main({X}) {{
      let %a = zeros(size=(4,));
      let %b = put(%a, 1i64);
      add(%a, %b)
    }}""",
    "the base of a view": f"""def @main({X}) {{
      let %a = zeros(size=(4,));
      let %v = reshape(%a, shape=(2, 2));
      let %b = put(%a, 1i64);
      (%v, %b)
    }}""",
    "the base of a view of a view": f"""def @main({X}) {{
      let %a = zeros(size=(4,));
      let %v = reshape(%a, shape=(2, 2));
      let %w = transpose(%v, dim0=0, dim1=1);
      let %b = put(%a, 1i64);
      let %s = sum(%w);
      (%s, %b)
    }}""",
    "the base of the view that is added": f"""def @main({X}) {{
      let %a = arange(start=4, dtype=float32);
      let %r = reshape(%a, shape=(4,));
      index_accumulate(%a, (), %r, spec=(("slice", None, None, -1),))
    }}""",
    "a view": f"""def @main({X}) {{
      let %v = reshape(%x, shape=(4,));
      put(%v, 1i64)
    }}""",
    "a field that a tuple keeps": f"""def @main({X}) {{
      let %a = zeros(size=(4,));
      let %t = (%a, %x);
      let %b = put(%a, 1i64);
      let %c = %t.0;
      add(%c, %b)
    }}""",
    "a field that is taken twice": f"""def @pair() {{ let %a = zeros(size=(4,)); (%a, 1f32) }}
    def @main({X}) {{
      let %t = @pair();
      let %a = %t.0;
      let %b = put(%a, 1i64);
      let %c = %t.0;
      add(%c, %b)
    }}""",
    "one tensor given twice": """def @both(%a: Tensor[(4,), float32], %b: Tensor[(4,), float32]) {
      let %c = put(%a, 1i64);
      add(%b, %c)
    }
    def @main(%x: Tensor[(4,), float32]) {
      let %a = zeros(size=(4,));
      @both(%a, %a)
    }""",
    "what a cell holds": f"""def @main({X}) {{
      let %a = zeros(size=(4,));
      let %r = ref(%a);
      let %b = put(%a, 1i64);
      let %c = ref_read(%r);
      add(%c, %b)
    }}""",
    "what a closure captures": f"""def @main({X}) {{
      let %a = zeros(size=(4,));
      let %s = sum(%x);
      let %f = if (less(%s, 0f32)) {{
        fn (%y: Tensor[(4,), float32]) {{ add(%y, %a) }}
      }} else {{
        fn (%y: Tensor[(4,), float32]) {{ %y }}
      }};
      let %b = put(%a, 1i64);
      %f(%b)
    }}""",
    "what data holds": f"""type Box {{ Box(Tensor[(4,), float32]) }}
    def @main({X}) {{
      let %a = zeros(size=(4,));
      let %box = Box::Box(%a);
      let %b = put(%a, 1i64);
      match (%box) {{ Box::Box(%c) => {{ add(%c, %b) }} }}
    }}""",
    "what data gave": f"""type Box {{ Box(Tensor[(4,), float32]) }}
    def @main({X}) {{
      let %a = zeros(size=(4,));
      let %box = Box::Box(%a);
      let %b = match (%box) {{ Box::Box(%c) => {{ put(%c, 1i64) }} }};
      match (%box) {{ Box::Box(%d) => {{ add(%d, %b) }} }}
    }}""",
    "what every round of a loop starts from": f"""
    def @loop(%i: int64, %base: Tensor[(4,), float32], %total: Tensor[(4,), float32])
        -> Tensor[(4,), float32] {{
      if (less(%i, 3i64)) {{
        let %b = put(%base, %i);
        let %t = add(%total, %b);
        @loop(add(%i, 1i64), %base, %t)
      }} else {{ %total }}
    }}
    def @main({X}) {{
      let %a = zeros(size=(4,));
      @loop(0i64, %a, %x)
    }}""",
    "what a loop in place starts from, each round": f"""def @main({X}) {{
      let %a = zeros(size=(4,));
      let rec %loop = fn (%i, %total) {{
        if (less(%i, 3i64)) {{
          let %b = put(%a, %i);
          let %t = add(%total, %b);
          %loop(add(%i, 1i64), %t)
        }} else {{ %total }}
      }};
      %loop(0i64, %x)
    }}""",
    "what one arm writes and code after both reads": f"""def @main({X}) {{
      let %a = zeros(size=(4,));
      let %s = sum(%x);
      let %b = if (less(%s, 0f32)) {{ put(%a, 1i64) }} else {{ %x }};
      add(%a, %b)
    }}""",
}


@pytest.mark.parametrize("what", HELD)
def test_what_is_held_elsewhere_is_never_written(what: str) -> None:
    x = -torch.arange(1.0, 5.0)
    before = x.clone()
    run_both(text(HELD[what]), x)
    assert torch.equal(x, before)
    assert writes(text(HELD[what])) == 0


LOOP = """def @fill(%a: Tensor[(4,), float32], %n: int64) -> (Tensor[(4,), float32], int64) {
  if (less(%n, 4i64)) {
    let %b = put(%a, %n);
    @fill(%b, add(%n, 1i64))
  } else { (%a, %n) }
}
"""

HANDED_OVER = {
    "to what follows": (
        f"""def @main({X}) {{
          let %a = zeros(size=(4,));
          let %b = put(%a, 1i64);
          index_accumulate(%b, (2i64,), 3f32, spec=(("int", 0),))
        }}""",
        2,
    ),
    "to an arm": (
        f"""def @main({X}) {{
          let %a = zeros(size=(4,));
          let %s = sum(%x);
          if (less(%s, 0f32)) {{ put(%a, 1i64) }} else {{ add(%a, %x) }}
        }}""",
        1,
    ),
    "by either arm": (
        f"""def @main({X}) {{
          let %s = sum(%x);
          let %a = if (less(%s, 0f32)) {{ zeros(size=(4,)) }} else {{ ones(size=(4,)) }};
          put(%a, 1i64)
        }}""",
        1,
    ),
    "to a loop and back, in a tuple": (
        f"""{LOOP} def @main({X}) {{
          let %a = zeros(size=(4,));
          let %t = @fill(%a, 0i64);
          let %b = %t.0;
          put(%b, 1i64)
        }}""",
        2,
    ),
    "as a copy made on entry": (
        f"""{LOOP} def @main({X}) {{
          let %t = @fill(%x, 1i64);
          let %y = %t.0;
          add(%x, %y)
        }}""",
        1,
    ),
    "as two copies of one tensor": (
        f"""{LOOP} def @main({X}) {{
          let %a = zeros(size=(4,));
          let %t = @fill(%a, 1i64);
          let %u = @fill(%a, 2i64);
          let %y = %t.0;
          let %z = %u.0;
          (%y, %z, %a)
        }}""",
        1,
    ),
    "after a view of it was read": (
        f"""def @main({X}) {{
          let %a = zeros(size=(4,));
          let %v = reshape(%a, shape=(2, 2));
          let %s = sum(%v);
          index_accumulate(%a, (2i64,), %s, spec=(("int", 0),))
        }}""",
        1,
    ),
}


@pytest.mark.parametrize("how", HANDED_OVER)
def test_what_is_handed_over_is_written_in_place(how: str) -> None:
    source, count = HANDED_OVER[how]
    x = -torch.arange(1.0, 5.0)
    before = x.clone()
    run_both(text(source), x)
    assert torch.equal(x, before)
    assert writes(text(source)) == count


VECTOR = "Tensor[(4,), float32]"
MADE = f"""type Box {{ Box({VECTOR}) }}
def @same(%a: {VECTOR}) {{ reshape(%a, shape=(4,)) }}
def @both(%a: {VECTOR}, %b: {VECTOR}) {{ let %c = put(%a, 0i64); let %s = add(%b, %c); (%c, %s) }}
"""

PASSED_ON = (
    "let %v{k} = reshape(%{a}, shape=(4,));",
    "let %v{k} = flip(%{a}, dims=(0,));",
    "let %v{k} = @same(%{a});",
    "let %t{k} = (%{a}, %{b}); let %v{k} = %t{k}.0;",
    "let %t{k} = @both(%{b}, %{a}); let %v{k} = %t{k}.1;",
    "let %r{k} = ref(%{a}); let %v{k} = ref_read(%r{k});",
    "let %b{k} = Box::Box(%{a}); let %v{k} = match (%b{k}) {{ Box::Box(%c) => {{ %c }} }};",
    "let %v{k} = if (less(%s, {i}f32)) {{ %{a} }} else {{ %{b} }};",
    "let %v{k} = add(%{a}, %{b});",
)
WRITTEN = (
    "let %v{k} = put(%{a}, {i}i64);",
    'let %v{k} = index_accumulate(%{a}, ({i}i64,), 2f32, spec=(("int", 0),));',
    'let %v{k} = index_accumulate(%{a}, (), %{b}, spec=(("slice", None, None, -1),));',
    "let %t{k} = @fill(%{a}, {i}i64); let %v{k} = %t{k}.0;",
    "let %t{k} = @both(%{a}, %{b}); let %v{k} = %t{k}.0;",
    "let %v{k} = if (less(%s, {i}f32)) {{ put(%{a}, {i}i64) }} else {{ %{b} }};",
    "let %v{k} = if (less(%s, {i}f32)) {{ put(%{a}, 1i64) }} else {{ put(%{a}, 2i64) }};",
)


@st.composite
def programs(draw: st.DrawFn) -> str:
    """Return a program that makes vectors, passes them on, changes them, and gives some of them."""
    names = ["x", "y"]
    lines: list[str] = []

    def step(forms: tuple[str, ...], base: str) -> str:
        other, place = draw(st.sampled_from(names[-4:])), draw(st.integers(0, 3))
        form, k = draw(st.sampled_from(forms)), len(lines)
        lines.append(form.format(k=k, a=base, b=other, i=place))
        names.append(f"v{k}")
        return names[-1]

    for _ in range(draw(st.integers(1, 3))):
        is_made = draw(st.booleans())
        base = step(("let %v{k} = zeros(size=(4,));",), "") if is_made else names[-1]
        for forms in draw(st.permutations([PASSED_ON, WRITTEN])):
            step(forms, base)
    given = draw(st.lists(st.sampled_from(names[2:]), max_size=2))
    results = ", ".join(f"%{n}" for n in (*given, *names[-2:]))
    body = "\n  ".join(lines)
    head = f"def @main(%x: {VECTOR}, %y: {VECTOR}) {{\n  let %s = sum(%x);"
    return text(LOOP + MADE + f"{head}\n  {body}\n  ({results},)\n}}")


@settings(max_examples=200, deadline=None)
@given(programs())
def test_any_program_gives_the_values_of_the_evaluator(source: str) -> None:
    x, y = torch.tensor([1.0, -2.0, 3.0, -0.5]), torch.arange(4.0)
    before = x.clone(), y.clone()
    run_both(source, x, y)
    assert torch.equal(x, before[0])
    assert torch.equal(y, before[1])


class Allocated(TorchDispatchMode):
    """Counts the bytes of the tensors that operators make."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        leaves = tree_leaves((args, kwargs or {}))
        given = {a.untyped_storage().data_ptr() for a in leaves if isinstance(a, torch.Tensor)}
        out = func(*args, **(kwargs or {}))
        for made in tree_leaves(out):
            if isinstance(made, torch.Tensor):
                storage = made.untyped_storage()
                self.bytes += 0 if storage.data_ptr() in given else storage.nbytes()
        return out


def decayed(x: Tensor[Float, (N,)]) -> Float:
    total = 0.0
    for i in range(x.shape[0]):
        total = total * 0.5 + x[i] * x[i]
    return total


def doubled_rows(x: Tensor[Float, (N,)]) -> Float:
    total = 0.0
    for row in relay.stack([x, x * 2.0], dim=1):
        for j in range(2):
            total = total + row[j] * row[j]
    return total


def nested(x: Tensor[Float, (N,)]) -> Float:
    total = x.sum()
    for i in range(x.shape[0]):
        for j in range(2):
            total = total + x[i] * x[j]
    return total


def filled(x: Tensor[Float, (N,)]) -> Float:
    y = x * 1.0
    for i in range(x.shape[0]):
        y[i] = x[i] * 3.0
    return (y * y).sum()


@relay
def marked(x: Tensor[Float, (N,)]) -> Tensor[Float, (N,)]:
    zeros = x * 0.0
    rows = zeros
    for i in range(len(x)):
        rows = relay.set_at(rows, i, relay.set_at(zeros, i, 1.0).sum())
    return rows


def test_what_a_loop_reads_is_not_overwritten_where_it_starts_from_the_same_value() -> None:
    with pyrelay.options(lowering="torch"):
        assert marked(torch.ones(4)).tolist() == [1.0, 1.0, 1.0, 1.0]


def in_torch(program: Callable[..., Any], x: torch.Tensor) -> torch.Tensor:
    if program is doubled_rows:
        return 5 * (x * x).sum()
    if program is filled:
        return 9 * (x * x).sum()
    return program(x)


@pytest.mark.parametrize("program", [decayed, doubled_rows, nested, filled])
def test_a_loop_over_elements_makes_bytes_in_proportion_to_them(
    program: Callable[..., Any],
) -> None:
    gradient = relay.grad(relay(program))
    made: list[int] = []
    for size in (128, 512):
        x = torch.randn(size, generator=torch.Generator().manual_seed(0))
        leaf = x.clone().requires_grad_()
        (expected,) = torch.autograd.grad(in_torch(program, leaf), leaf)
        torch.testing.assert_close(gradient(x), expected)
        with options(lowering="torch"), Allocated() as counted:
            gradient(x)
        made.append(counted.bytes)
    assert made[1] < 6 * made[0]
