"""Programs as JSON: nothing is lost, and what is no program is refused."""

from __future__ import annotations

import json

import pytest

from pyrelay.diagnostics.diagnostic import CheckError
from pyrelay.diagnostics.source import NOWHERE, SourceFile, Span
from pyrelay.infer import infer
from pyrelay.ir.dims import Dim
from pyrelay.ir.equality import alpha_equal
from pyrelay.ir.expr import Assumption, Constant, Expr, Function, If, TensorData, Tuple, Var
from pyrelay.ir.module import Module
from pyrelay.ir.types import BOOL, FLOAT, SizeType, bfloat16
from pyrelay.text.json import from_json, to_json
from pyrelay.text.parser import parse_module
from pyrelay.text.printer import to_text

PROGRAM = """
type Tree[T, N: Dim] { Leaf(value: T, size: Size[max(N, 3) % 2]), Node(Tree[T, N], Tree[T, N]) }
def @f[N: Dim, M: Dim](%x: Tensor[(N, M), float32], %n: int64) where N == M // 2 {
  let rec %loop = fn (%i: int64) -> int64 { if (%i < 3) { %loop(%i + 1) } else { %i } };
  let %cell = ref(tensor[(2,), float32][1, 2.5]);
  ref_write(%cell, ref_read(%cell) * 2.0);
  let %g = value_and_grad{wrt=(0,), single=False}(fn (%y: float32) { %y * %y });
  let %word = match (%n) { 0 => "a", %k if %k < 2 => "b", _ => "c" };
  (sum(%x, dim=(0, 1), keepdim=True), %loop(%n), %word)
}
"""


def test_a_program_comes_back_with_its_spans() -> None:
    module = infer(parse_module(PROGRAM, "program.relay"))
    again = from_json(to_json(module))
    assert isinstance(again, Module)
    assert alpha_equal(again, module)
    assert to_text(again, spans=True) == to_text(module, spans=True)
    assert again.functions["f"].params[1].span.text == "%n"


def test_writing_what_was_read_gives_the_same_text() -> None:
    text = to_json(parse_module(PROGRAM))
    assert to_json(from_json(text)) == text


def test_a_variable_stays_one_variable() -> None:
    x = Var("x", FLOAT, span=NOWHERE)
    again = from_json(to_json(Function((x,), Tuple((x, x), span=NOWHERE), span=NOWHERE)))
    assert isinstance(again, Function)
    assert isinstance(again.body, Tuple)
    assert again.body.fields == (again.params[0], again.params[0])


@pytest.mark.parametrize(
    "value",
    [
        True,
        1,
        1.0,
        -0.0,
        0.1,
        float("inf"),
        10**30,
        "a\n\ud800é",
        TensorData(bfloat16, (2, 1), b"\0\1\xff\x7f"),
    ],
)
def test_a_constant_comes_back_exactly(value: bool | float | str | TensorData) -> None:
    again = from_json(to_json(Constant(value, span=NOWHERE)))
    assert isinstance(again, Constant)
    assert type(again.value) is type(value)
    assert again.value == value
    assert repr(again.value) == repr(value)


def test_equal_parts_that_differ_in_their_span_stay_apart() -> None:
    file = SourceFile("a.py", "abc")
    found = [Assumption(Dim.of("N"), Dim.of("M"), Span(file, i, 3)) for i in range(2)]
    function = Function((), Tuple((), span=NOWHERE), assumptions=tuple(found), span=NOWHERE)
    again = from_json(to_json(function))
    assert isinstance(again, Function)
    assert [a.span.text for a in again.assumptions] == ["abc", "bc"]


def test_the_reason_of_a_derived_span_comes_back() -> None:
    constant = Constant(1, span=NOWHERE.derived("gradient of `f`"))
    assert from_json(to_json(constant)).span.because == "gradient of `f`"


def test_deep_programs_come_back() -> None:
    flag = Var("flag", BOOL, span=NOWHERE)
    nested: Expr = flag
    for _ in range(10_000):
        nested = If(flag, nested, flag, span=NOWHERE)
    text = to_json(nested)
    assert to_json(from_json(text)) == text


DOCUMENT = json.loads(to_json(Constant(1, FLOAT, span=NOWHERE)))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        json.dumps({**DOCUMENT, "format": "pyrelay-ir 999"}),
        json.dumps({**DOCUMENT, "nodes": []}),
        json.dumps({**DOCUMENT, "sources": None}),
        json.dumps({**DOCUMENT, "root": 0}),
        json.dumps({**DOCUMENT, "nodes": [["Unheard", 1]]}),
        json.dumps({**DOCUMENT, "nodes": [["Var", "x"]]}),
        json.dumps({**DOCUMENT, "nodes": [["Var", {"odd": 1}, None, {"span": [0, 0, 0]}]]}),
        json.dumps({**DOCUMENT, "nodes": [["Tuple", [{"at": 9}], None, {"span": [0, 0, 0]}]]}),
    ],
)
def test_what_is_no_program_is_refused(text: str) -> None:
    with pytest.raises(CheckError) as caught:
        from_json(text)
    assert caught.value.codes == ("RL640",)


@pytest.mark.parametrize(
    ("before", "after", "shown"),
    [
        ('"Constant", 1', '"Constant", {"odd": 1}', '["Constant", {"odd": 1}'),
        ('"nodes": [', '"nodes": [[],', "[]"),
        ('"root"', '"root', "n"),
    ],
)
def test_a_damaged_node_is_shown_where_it_stands(before: str, after: str, shown: str) -> None:
    text = to_json(Constant(1, FLOAT, span=NOWHERE))
    assert before in text
    with pytest.raises(CheckError) as caught:
        from_json(text.replace(before, after), "saved.json")
    (found,) = caught.value.diagnostics
    assert found.primary is not None
    assert found.primary.span.file.name == "saved.json"
    assert found.primary.span.text.startswith(shown)


def test_a_dtype_of_another_width_is_refused() -> None:
    text = to_json(Constant(1.0, FLOAT, span=NOWHERE)).replace('"float32"', '"float31"')
    with pytest.raises(CheckError, match="there is no dtype float31"):
        from_json(text)


@pytest.mark.parametrize("kind", ["floordiv", "mod"])
def test_a_size_that_is_divided_by_zero_is_refused(kind: str) -> None:
    size = Dim.of("N") // "M" if kind == "floordiv" else Dim.of("N") % "M"
    document = to_json(Constant(1, SizeType(size), span=NOWHERE))
    divisor = json.dumps(["Dim", [[[{"at": 2}], 1]]])
    assert divisor in document
    changed = document.replace(divisor, json.dumps(["Dim", []]))
    with pytest.raises(CheckError, match="a size that is divided by 0"):
        from_json(changed)
