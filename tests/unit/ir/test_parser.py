"""Reading programs from text: expressions, literals, types, modules, and depth."""

from __future__ import annotations

from typing import Any

import pytest

from pyrelay.diagnostics.diagnostic import CheckError
from pyrelay.diagnostics.source import NOWHERE, SourceFile
from pyrelay.infer import infer
from pyrelay.ir.bounds import maximum
from pyrelay.ir.dims import Dim, DimHole, DimVar
from pyrelay.ir.equality import alpha_equal
from pyrelay.ir.expr import (
    Binding,
    Call,
    Constant,
    Differentiation,
    Expr,
    Flavour,
    Function,
    GlobalVar,
    If,
    LetBlock,
    Match,
    RefCreate,
    TensorData,
    Transform,
    Tuple,
    TupleGet,
    Var,
)
from pyrelay.ir.module import Module
from pyrelay.ir.normal_form import to_anf
from pyrelay.ir.traverse import post_order, spine
from pyrelay.ir.types import (
    BOOL,
    FLOAT,
    INT,
    UNKNOWN,
    AdtType,
    DTypeHole,
    DTypeKind,
    FnType,
    RefType,
    SizeType,
    TensorType,
    TupleType,
    Type,
    TypeHole,
    TypeVar,
    bfloat16,
    float32,
    float64,
    int32,
)
from pyrelay.operators.table import BY_NAME
from pyrelay.text.parser import parse_expr, parse_module
from pyrelay.text.printer import to_text

N = Dim.of("N")


def same(left: str, right: str) -> bool:
    """Return whether two expressions without free variables are read as the same program."""
    return alpha_equal(parse_expr(left), parse_expr(right))


def type_of_parameter(text: str) -> Type | None:
    module = parse_module(
        f"type Tree[T, N: Dim] {{ }} def @f[N: Dim, T](%x: {text}) {{ %x }} type Leaf {{ }}"
    )
    return module.functions["f"].params[0].ty


# Expressions


@pytest.mark.parametrize(
    ("short", "long"),
    [
        ("1 + 2 * 3", "add(1, multiply(2, 3))"),
        ("(1 + 2) * 3", "multiply(add(1, 2), 3)"),
        ("1 - 2 - 3", "subtract(subtract(1, 2), 3)"),
        ("8 / 4 / 2", "divide(divide(8, 4), 2)"),
        ("1 * 1 + 1 < 1 == 1", "equal(less(add(multiply(1, 1), 1), 1), 1)"),
        ("1 == 1 < 1 + 1 * 1", "equal(1, less(1, add(1, multiply(1, 1))))"),
        ("1 != 2", "not_equal(1, 2)"),
        ("1 >= 2", "greater_equal(1, 2)"),
        ("1-1", "subtract(1, 1)"),
        ("2 * -3", "multiply(2, -3)"),
        ("--10", "10"),
        ("---10", "-10"),
        ("-(1 + 2)", "negative(add(1, 2))"),
        ("-add(1, 2) * 3", "multiply(negative(add(1, 2)), 3)"),
        ("((1))", "1"),
        ("{ { 1 } }", "1"),
    ],
)
def test_signs_are_calls_of_operators(short: str, long: str) -> None:
    assert same(short, long)


def test_a_statement_is_a_binding_with_effects() -> None:
    assert same("ref(1); 2", "let! %_ = ref(1); 2")


def test_items_of_one_flavour_share_a_block_unless_they_are_parted() -> None:
    blocks, _ = spine(
        parse_expr("let %a = 1; let %b = 2;; let %c = 3; let! %d = 4; let! %e = 5; 6")
    )
    assert [(b.flavour, len(b.bindings)) for b in blocks] == [
        (Flavour.PURE, 2),
        (Flavour.PURE, 1),
        (Flavour.IMPURE, 2),
    ]


def test_a_binding_may_use_the_older_variable_of_its_name() -> None:
    (block,), result = spine(parse_expr("free_var %x; let %x = %x + 1; %x"))
    value = block.bindings[0].value
    assert isinstance(value, Call)
    assert value.args[0] is not block.bindings[0].var
    assert result is block.bindings[0].var


def test_a_variable_of_an_inner_block_is_gone_after_it() -> None:
    with pytest.raises(CheckError) as caught:
        parse_expr("if (True) { let %x = 1; %x } else { %x }")
    assert caught.value.codes == ("RL602",)


def test_recursive_functions_see_each_other() -> None:
    block = parse_expr("let rec %f = fn () { %g() } and %g = fn () { %f() }; %f")
    assert isinstance(block, LetBlock)
    assert block.flavour is Flavour.REC
    calls = [node.callee for node in post_order(block) if isinstance(node, Call)]
    assert calls == [block.bindings[1].var, block.bindings[0].var]


def test_a_function_is_named_after_what_binds_it() -> None:
    (block,), _ = spine(parse_expr("let %double = fn (%x) { %x + %x }; 1"))
    assert isinstance(block.bindings[0].value, Function)
    assert block.bindings[0].value.name == "double"


def test_calls_and_fields_chain() -> None:
    expr = parse_expr("free_var %f; %f(1)(2).0.1")
    assert isinstance(expr, TupleGet)
    assert expr.index == 1
    assert to_text(expr) == "free_var %f;\n%f(1)(2).0.1\n"


def test_a_transform_may_be_written_like_a_call() -> None:
    assert same("grad(fn (%x) { %x })", "grad{}(fn (%x) { %x })")
    found = parse_expr("vjp{wrt=(0, 2), single=False, has_aux=True, captures=1}(fn (%x) { %x })")
    assert isinstance(found, Transform)
    assert found.options == Differentiation((0, 2), single=False, has_aux=True)
    assert found.captures == 1


def test_operands_left_out_are_units() -> None:
    call = parse_expr("linear(1, 2)")
    assert isinstance(call, Call)
    assert len(call.args) == 3
    assert isinstance(call.args[2], Tuple)


def test_several_matched_values_are_a_tuple() -> None:
    assert same("match (1, 2) { (%a, _) => %a, }", "match ((1, 2)) { (%a, _) => { %a } }")


def test_patterns_nest_and_guard() -> None:
    text = "match (1) { (-1, ('_', True)) as %x: int64 if %x == 1 => 1, _ => 2 }".replace("'", '"')
    found = parse_expr(text)
    assert isinstance(found, Match)
    assert found.clauses[0].guard is not None
    assert alpha_equal(parse_expr(to_text(found)), found)


@pytest.mark.parametrize("text", ["match (1) { _ => 2 }", "match? (1) { 1 => 2 }"])
def test_a_match_that_may_fail_is_marked(text: str) -> None:
    found = parse_expr(text)
    assert isinstance(found, Match)
    assert found.partial is text.startswith("match?")


# Literals


@pytest.mark.parametrize(
    ("text", "value", "ty"),
    [
        ("42", 42, None),
        ("42i64", 42, INT),
        ("42i32", 42, TensorType((), int32)),
        ("3f32", 3.0, FLOAT),
        ("1e-1f32", 0.1, FLOAT),
        ("1.5bf16", 1.5, TensorType((), bfloat16)),
        ("1.5e300f64", 1.5e300, TensorType((), float64)),
        ("7size", 7, SizeType(Dim.of(7))),
        ("inff32", float("inf"), FLOAT),
        ("-inf", float("-inf"), None),
        ("-3size", -3, SizeType(Dim.of(-3))),
        ("(3 : Size[N])", 3, SizeType(N)),
        ("True", True, None),
        ('"a\\n\\u00e9\\""', 'a\né"', None),
    ],
)
def test_a_literal_has_its_value_and_type(text: str, value: Any, ty: Type | None) -> None:
    constant = parse_expr(text)
    assert isinstance(constant, Constant)
    assert type(constant.value) is type(value)
    assert (constant.value, constant.ty) == (value, ty)


def test_tensors_are_read_from_lists_and_from_base64() -> None:
    listed = parse_expr("tensor[(2,), float32][1, -2.5]")
    encoded = parse_expr('tensor[(2,), float32]"AACAPwAAIMA="')
    assert isinstance(listed, Constant)
    assert isinstance(listed.value, TensorData)
    assert alpha_equal(listed, encoded)


# Types and attributes


@pytest.mark.parametrize(
    ("text", "ty"),
    [
        ("float32", FLOAT),
        ("Tensor[(3), float32]", TensorType((Dim.of(3),), float32)),
        ("Tensor[(), float32]", FLOAT),
        ("Tensor[(N // 2, -N + 3, max(N, 3), N % 4), int32]", None),
        ("Tensor[(?4,), ?2int]", None),
        ("Size[2 * N + 1]", SizeType(2 * N + 1)),
        ("()", TupleType(())),
        ("(int64,)", TupleType((INT,))),
        ("(int64)", INT),
        ("ref(ref(float32))", RefType(RefType(FLOAT))),
        ("fn (int64) -> fn () -> T", FnType((INT,), FnType((), TypeVar("T")))),
        ("fn [M: Dim, U](Tensor[(M,), float32]) -> U", None),
        ("Tree[T, N + 1]", AdtType("Tree", (TypeVar("T"), N + 1))),
        ("Tree[Leaf, K]", AdtType("Tree", (AdtType("Leaf"), Dim.of("K")))),
        ("Tree[float32, (N)]", AdtType("Tree", (FLOAT, N))),
        ("Tree[(int64,), 1*T]", AdtType("Tree", (TupleType((INT,)), Dim.of("T")))),
        ("'Other", TypeVar("Other")),
        ("_", UNKNOWN),
        ("?3", TypeHole(3)),
    ],
)
def test_a_type_is_read_by_its_place(text: str, ty: Type | None) -> None:
    special = {
        "Tensor[(N // 2, -N + 3, max(N, 3), N % 4), int32]": TensorType(
            (N // 2, 3 - N, maximum(N, Dim.of(3)), N % 4), int32
        ),
        "Tensor[(?4,), ?2int]": TensorType((Dim.atom(DimHole(4)),), DTypeHole(2, DTypeKind.INT)),
        "fn [M: Dim, U](Tensor[(M,), float32]) -> U": FnType(
            (TensorType((Dim.of("M"),), float32),), TypeVar("U"), (DimVar("M"), TypeVar("U"))
        ),
    }
    assert type_of_parameter(text) == (special[text] if ty is None else ty)


def test_attributes_keep_their_kind() -> None:
    text = (
        'def @f[T, N: Dim]() { sum(1, a=1, b=1.5, c=True, d=None, e="s", f=N + 1, g=Dim(1), '
        "h=float32, i=Type(float32), j=(1, (N,)), k={add(1, 2)}, l=-1, m=(2), n=(), "
        "o=Dim(float32)) }"
    )
    call = parse_module(text).functions["f"].body
    assert isinstance(call, Call)
    added = call.attrs["k"]
    assert isinstance(added, Call)
    assert {k: v for k, v in call.attrs.items() if k != "k"} == {
        "a": 1,
        "b": 1.5,
        "c": True,
        "d": None,
        "e": "s",
        "f": N + 1,
        "g": Dim.of(1),
        "h": float32,
        "i": FLOAT,
        "j": (1, (N,)),
        "l": -1,
        "m": 2,
        "n": (),
        "o": Dim.of("float32"),
    }
    assert alpha_equal(parse_module(to_text(parse_module(text))), parse_module(text))


# Modules


def test_definitions_stand_in_any_order() -> None:
    module = parse_module(
        "def @f(%x: B) { match (%x) { Two(%y) => @g(%y) } } type B { Two(A) } type A { One }"
        " def @g(%x: A) { %x }"
    )
    assert list(module.functions) == ["f", "g"]
    assert list(module.adts) == ["B", "A"]


def test_constructors_have_fields_with_names_or_without() -> None:
    module = parse_module("type P[N: Dim] { Point(x: Tensor[(N,), float32], y: str), Empty, }")
    point, empty = module.adts["P"].constructors
    assert point.field_names == ("x", "y")
    assert point.fields[0] == TensorType((N,), float32)
    assert empty.fields == ()


def test_a_typed_text_has_types_everywhere() -> None:
    text = "def @f(%x: float32) -> float32 { let %y = fn (%z) { (%z, 1).0 }; tanh(%y(%x)) }"
    typed = to_anf(infer(parse_module(text)))
    again = parse_module(to_text(typed))
    assert all(node.ty is not None for node in post_order(again.functions["f"]))
    assert alpha_equal(again, typed)


def test_the_type_of_a_call_of_a_polymorphic_function_is_implied() -> None:
    module = parse_module(
        '#[pyrelay = "1", typed] def @id[T](%x: T) -> T { %x }'
        " def @f(%x: int64) -> (int64, bool) { (@id[int64](%x), @id[bool](True)) }"
    )
    pair = module.functions["f"].body
    assert isinstance(pair, Tuple)
    call = pair.fields[1]
    assert isinstance(call, Call)
    assert isinstance(call.callee, GlobalVar)
    assert call.callee.ty == FnType((BOOL,), BOOL)


def test_written_spans_point_into_their_files() -> None:
    file = SourceFile("model.py", "y = x + 1\n")
    text = '#[source 3 = "model.py"]\ndef @f() { 1@[3:4:9 "gradient of `y`"] }'
    constant = parse_module(text, sources={"model.py": file}).functions["f"].body
    assert constant.span.text == "x + 1"
    assert constant.span.because == "gradient of `y`"


def test_spans_that_are_not_written_are_places_in_the_text() -> None:
    text = "def @f(%x) { if (%x) { ref(1) } else { -%x + 2 } }"
    branch = parse_module(text).functions["f"].body
    assert isinstance(branch, If)
    assert branch.span.text == "if (%x) { ref(1) } else { -%x + 2 }"
    assert isinstance(branch.then, RefCreate)
    assert branch.then.span.text == "ref(1)"
    assert branch.otherwise.span.text == "-%x + 2"


def test_comments_are_skipped() -> None:
    module = parse_module("// first\ndef @f() /* a\nb */ { 1 // one\n}")
    assert isinstance(module.functions["f"].body, Constant)


def test_operators_of_a_user_are_found_by_name() -> None:
    call = parse_expr("mine(1)", operators={"mine": BY_NAME["tanh"]})
    assert isinstance(call, Call)
    assert call.callee is BY_NAME["tanh"]


# Depth


@pytest.mark.parametrize("length", [5_000, pytest.param(90_000, marks=pytest.mark.slow)])
def test_a_long_chain_reads_back(length: int) -> None:
    x = Var("x", span=NOWHERE)
    bindings = [Binding(x, Constant(0, span=NOWHERE))]
    for _ in range(length):
        last = bindings[-1].var
        call = Call(BY_NAME["add"], (last, last), span=NOWHERE)
        bindings.append(Binding(Var("t", span=NOWHERE), call))
    body = LetBlock(tuple(bindings), bindings[-1].var, Flavour.PURE, span=NOWHERE)
    module = Module({"f": Function((), body, span=NOWHERE)}, {})
    assert alpha_equal(parse_module(to_text(module)), module)


NESTED = {
    "if": ("if (True) { ", "1", " } else { 2 }"),
    "else if": ("if (True) { 1 } else ", "{ 2 }", ""),
    "calls": ("tanh(", "1", ")"),
    "groups": ("(", "1", ")"),
    "blocks": ("{ let %x = ", "1", "; %x }"),
    "matches": ("match (1) { _ => ", "1", " }"),
    "functions": ("fn () { ", "1", " }"),
    "sums": ("1 + ", "1", ""),
    "minuses": ("-", "1", ""),
    "fields": ("", "()", ".0"),
}


@pytest.mark.parametrize("depth", [1_500, pytest.param(10_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", NESTED)
def test_what_is_nested_deep_reads_back(name: str, depth: int) -> None:
    before, inside, after = NESTED[name]
    expr: Expr = parse_expr(before * depth + inside + after * depth)
    again = parse_expr(to_text(expr))
    assert to_text(again) == to_text(expr)
