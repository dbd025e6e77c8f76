"""The text of programs: its look, what it leaves out, and its size."""

from __future__ import annotations

import struct

import pytest

from pyrelay.diagnostics.source import NOWHERE, SourceFile, Span
from pyrelay.infer import infer
from pyrelay.ir.dims import Dim, DimHole, DimVar
from pyrelay.ir.equality import alpha_equal
from pyrelay.ir.expr import (
    Binding,
    Call,
    Constant,
    Constructor,
    Expr,
    Flavour,
    Function,
    GlobalVar,
    If,
    LetBlock,
    TensorData,
    Tuple,
    TupleGet,
    Var,
)
from pyrelay.ir.module import AdtDef, ConstructorDef, Module
from pyrelay.ir.normal_form import to_anf
from pyrelay.ir.types import (
    BOOL,
    FLOAT,
    INT,
    UNIT,
    UNKNOWN,
    AdtType,
    DTypeHole,
    DTypeKind,
    FnType,
    RefType,
    SizeType,
    StrType,
    TensorType,
    TupleType,
    Type,
    TypeHole,
    TypeVar,
    bfloat16,
    bool_,
    float32,
    float64,
    int32,
    int64,
    tensor_type,
)
from pyrelay.operators.table import BY_NAME
from pyrelay.text.parser import parse_module
from pyrelay.text.printer import to_text
from tests.golden import Golden

ADD = BY_NAME["add"]
N = Dim.of("N")

PROGRAM = """
type Tree[T] { Leaf(value: T), Node(left: Tree[T], right: Tree[T]) }
type Vector[N: Dim] { Vector(Tensor[(N,), float32]) }

def @total[N: Dim](%t: Tree[Tensor[(N,), float32]]) -> float32 {
  match (%t) {
    Leaf(%x) => sum(%x),
    Node(%l, %r) => @total(%l) + @total(%r),
  }
}

def @main[N: Dim, M: Dim](%x: Tensor[(N, 10), float32], %w: Tensor[(5, M), float32],
                          %b: Tensor[(5,), float32]) where M == 10 {
  let %h = tanh(linear(%x, %w, %b));
  let rec %loop = fn (%i: int64, %acc: Tensor[(N, 5), float32]) -> Tensor[(N, 5), float32] {
    if (%i < 3) { %loop(%i + 1, %acc * 0.5) } else if (%i == 7) { %acc + 1.0 } else { %acc }
  };
  let %twice = fn (%f, %v) { %f(%f(%v)) };
  let %out = %loop(0, %twice(fn (%z) { %z + 1 }, %h));
  let %cell = ref(0.0);
  ref_write(%cell, sum(%out));
  let %t = Node(Leaf(%b), Leaf(tensor[(5,), float32][1, 2, 3, 4, 5]));
  let %g = grad{wrt=(0,)}(fn (%q: Tensor[(5,), float32]) { sum(%q * %q) });
  let %n = match (%t) { Leaf(_) => 1, Node(Leaf(%y), _) as %z if sum(%y) > 0.0 => 2, _ => 3 };
  let %sums = (sum(%out, dim=0), reshape(%x, shape=N * 10));
  (ref_read(%cell), @total(%t), "a \\"b\\"", %g(%b), %n, %sums)
}
"""


def text_of(expr: Expr) -> str:
    return to_text(expr).removesuffix("\n")


def var(name: str, ty: Type | None = None) -> Var:
    return Var(name, ty, span=NOWHERE)


def typed_var_text(ty: Type) -> str:
    return text_of(var("x", ty)).split(";")[0].removeprefix("free_var %x: ")


def test_a_translated_program_prints(golden: Golden) -> None:
    golden("translated.relay", to_text(parse_module(PROGRAM)))


def test_a_typed_program_prints(golden: Golden) -> None:
    golden("typed.relay", to_text(infer(parse_module(PROGRAM))))


def test_a_program_in_normal_form_prints(golden: Golden) -> None:
    golden("anf.relay", to_text(to_anf(infer(parse_module(PROGRAM)))))


def test_spans_print_where_asked(golden: Golden) -> None:
    module = parse_module(PROGRAM, "program.relay")
    golden("spans.relay", to_text(to_anf(infer(module)), spans=True))


@pytest.mark.parametrize(
    ("ty", "text"),
    [
        (FLOAT, "float32"),
        (tensor_type(float32, 3), "Tensor[(3,), float32]"),
        (tensor_type(int32, "N", 10), "Tensor[(N, 10), int32]"),
        (TensorType((N // 2, 2 * N - 1, (N + 1) % 3), float32), None),
        (SizeType(N + 1), "Size[N + 1]"),
        (UNIT, "()"),
        (TupleType((INT,)), "(int64,)"),
        (TupleType((INT, BOOL)), "(int64, bool)"),
        (FnType((INT, FLOAT), BOOL), "fn (int64, float32) -> bool"),
        (
            FnType((TensorType((N,), float32),), TypeVar("T"), (DimVar("N"), TypeVar("T"))),
            "fn [N: Dim, T](Tensor[(N,), float32]) -> T",
        ),
        (RefType(FLOAT), "ref(float32)"),
        (AdtType("Tree", (INT, N, N + 1)), "Tree[int64, N, N + 1]"),
        (AdtType("Tree"), "Tree[]"),
        (AdtType("float32"), "`float32`[]"),
        (TypeVar("T"), "'T"),
        (StrType(), "str"),
        (UNKNOWN, "_"),
        (TypeHole(3), "?3"),
        (TensorType((), DTypeHole(2, None)), "Tensor[(), ?2]"),
        (TensorType((Dim.atom(DimHole(4)),), DTypeHole(2, DTypeKind.INT)), "Tensor[(?4,), ?2int]"),
    ],
)
def test_a_type_prints_in_one_way(ty: Type, text: str | None) -> None:
    assert typed_var_text(ty) == (text or "Tensor[(N // 2, 2*N - 1, (N + 1) % 3), float32]")


@pytest.mark.parametrize("bits", [0x7FC00000, 0xFFC00000, 0x7FC00001, 0x7F800001, 0x80000000])
def test_the_bits_of_a_tensor_read_back(bits: int) -> None:
    """There are many NaNs, and `nan` is one of them."""
    data = struct.pack("<If", bits, 1.0)
    ty = TensorType((Dim.of(2),), float32)
    constant = Constant(TensorData(float32, (2,), data), ty, span=NOWHERE)
    module = Module({"f": Function((), constant, name="f", span=NOWHERE)}, {})
    assert alpha_equal(parse_module(to_text(module)), module)


@pytest.mark.parametrize(
    ("value", "ty", "text"),
    [
        (1, None, "1"),
        (-1, None, "-1"),
        (1, INT, "1i64"),
        (1, TensorType((), int32), "1i32"),
        (3, SizeType(Dim.of(3)), "3size"),
        (3, SizeType(N), "(3 : Size[N])"),
        (0.1, None, "0.1"),
        (0.1, FLOAT, "0.1f32"),
        (1, FLOAT, "1f32"),
        (1e300, TensorType((), float64), "1e+300f64"),
        (float("inf"), FLOAT, "inff32"),
        (float("-inf"), None, "-inf"),
        (float("nan"), TensorType((), bfloat16), "nanbf16"),
        (-0.0, FLOAT, "-0.0f32"),
        (True, None, "True"),
        (True, INT, "(True : int64)"),
        ('say "é"\n', None, '"say \\"\\u00e9\\"\\n"'),
    ],
)
def test_a_constant_prints_exactly(value: bool | float | str, ty: Type | None, text: str) -> None:
    assert text_of(Tuple((Constant(value, ty, span=NOWHERE),), span=NOWHERE)) == f"({text},)"


def test_short_tensors_print_as_lists_and_long_ones_in_base64() -> None:
    short = TensorData(int64, (2,), b"\1" + b"\0" * 7 + b"\xff" * 8)
    long = TensorData(bool_, (32,), b"\1\0" * 16)
    odd = TensorData(bfloat16, (1,), b"\x80\x3f")
    texts = [text_of(Constant(d, span=NOWHERE)) for d in (short, long, odd)]
    assert texts == [
        "tensor[(2,), int64][1, -1]",
        'tensor[(32,), bool]"AQABAAEAAQABAAEAAQABAAEAAQABAAEAAQABAAEAAQA="',
        'tensor[(1,), bfloat16]"gD8="',
    ]


def test_a_tensor_whose_list_would_lose_bits_prints_in_base64() -> None:
    signalling = TensorData(float32, (1,), b"\x01\x00\xa0\x7f")
    assert '"' in text_of(Constant(signalling, span=NOWHERE))


def test_names_are_made_unique_in_the_order_they_come() -> None:
    x, y, z = var("x"), var("x"), var("x_1")
    body = Tuple((x, y, z), span=NOWHERE)
    function = Function((x, y, z), body, span=NOWHERE)
    text = "fn (%x, %x_1, %x_2) {\n  (%x, %x_1, %x_2)\n}"
    assert text_of(function) == text


def test_names_that_are_no_words_are_quoted() -> None:
    odd = Call(GlobalVar("f.<locals>.g", span=NOWHERE), (), span=NOWHERE)
    made = Call(Constructor("my type", "let", span=NOWHERE), (var("a b`"),), span=NOWHERE)
    assert text_of(odd) == "@`f.<locals>.g`()"
    assert text_of(made).endswith("`my type`::`let`(%`a b\\u0060`)")


def test_only_attributes_that_differ_from_their_default_print_in_a_typed_program() -> None:
    typed = infer(parse_module("def @f(%x: Tensor[(3,), float32]) { sum(%x, keepdim=True) }"))
    assert "sum(%x, keepdim=True)" in to_text(typed)
    plain = infer(parse_module("def @f(%x: Tensor[(3,), float32]) { sum(%x, keepdim=False) }"))
    assert "sum(%x)" in to_text(plain)


def test_blocks_that_follow_each_other_in_one_flavour_stay_apart() -> None:
    inner = LetBlock((_binding("b"),), var("r"), Flavour.PURE, span=NOWHERE)
    outer = LetBlock((_binding("a"),), inner, Flavour.PURE, span=NOWHERE)
    assert text_of(outer) == "free_var %r;\nlet %a = 1;;\nlet %b = 1;\n%r"


def _binding(name: str) -> Binding:
    return Binding(var(name), Constant(1, span=NOWHERE))


def test_a_block_in_the_place_of_an_operand_has_braces() -> None:
    block = LetBlock((_binding("a"),), Constant(2, span=NOWHERE), Flavour.PURE, span=NOWHERE)
    call = Call(ADD, (block, Constant(3, span=NOWHERE)), span=NOWHERE)
    assert text_of(call) == "add({\n  let %a = 1;\n  2\n}, 3)"


def test_what_is_applied_has_brackets_where_it_needs_them() -> None:
    function = Function((), Constant(1, span=NOWHERE), span=NOWHERE)
    get = TupleGet(Constant(1, span=NOWHERE), 0, span=NOWHERE)
    assert text_of(Call(function, (), span=NOWHERE)) == "(fn () {\n  1\n})()"
    assert text_of(TupleGet(get, 1, span=NOWHERE)) == "(1).0.1"


def test_a_constructor_that_two_types_have_is_named_with_its_type() -> None:
    adts = {
        name: AdtDef(name, (), (ConstructorDef("End", ()), ConstructorDef(name, ())), NOWHERE)
        for name in ("A", "B")
    }
    ends = Tuple(
        (Constructor("A", "End", span=NOWHERE), Constructor("B", "B", span=NOWHERE)), span=NOWHERE
    )
    module = Module({"f": Function((), ends, span=NOWHERE)}, adts)
    assert "(A::End, B)" in to_text(module)


def test_a_type_that_is_not_implied_is_written() -> None:
    wrong = Call(ADD, (Constant(1, INT, span=NOWHERE),) * 2, ty=FLOAT, span=NOWHERE)
    function = Function((), TupleGet(wrong, 0, FLOAT, span=NOWHERE), FLOAT, span=NOWHERE)
    assert "(add(1i64, 1i64) : float32).0" in to_text(Module({"f": function}, {}))


def test_ill_formed_calls_print_too() -> None:
    call = Call(BY_NAME["matmul"], (Constant(1, INT, span=NOWHERE),), ty=INT, span=NOWHERE)
    module = Module({"f": Function((), call, span=NOWHERE)}, {})
    assert "matmul(1i64)" in to_text(module)


def test_the_reason_of_a_derived_span_prints() -> None:
    span = Span(SourceFile("a.py", "x"), 0, 1).derived("gradient of `f`")
    module = Module({"f": Function((), Constant(1, span=span), span=NOWHERE)}, {})
    text = to_text(module, spans=True)
    assert '1@[1:0:1 "gradient of `f`"]' in text
    assert '#[source 1 = "a.py"]' in text


@pytest.mark.parametrize("length", [5_000, pytest.param(90_000, marks=pytest.mark.slow)])
def test_a_long_chain_prints_a_line_a_binding(length: int) -> None:
    x = var("x", INT)
    bindings: list[Binding] = []
    for _ in range(length):
        last = bindings[-1].var if bindings else x
        call = Call(ADD, (last, last), ty=INT, span=NOWHERE)
        bindings.append(Binding(var("t", INT), call))
    block = LetBlock(tuple(bindings), bindings[-1].var, Flavour.PURE, INT, span=NOWHERE)
    assert to_text(block).count("\n") == length + 2


def test_the_text_of_nested_branches_grows_with_their_number_only() -> None:
    flag = var("flag", BOOL)
    nested: Expr = flag
    sizes: list[int] = []
    for depth in range(1, 4_001):
        nested = If(flag, nested, flag, span=NOWHERE)
        if depth in {2_000, 4_000}:
            sizes.append(len(to_text(nested)))
    assert sizes[1] < 2.1 * sizes[0]
