"""Relay's text: what its parser took, and what each piece of it means here."""

from __future__ import annotations

import pytest

from pyrelay.diagnostics.diagnostic import CheckError
from pyrelay.ir.equality import alpha_equal
from pyrelay.ir.expr import Flavour, LetBlock
from pyrelay.ir.types import DTYPES, RefType, TensorType, Type, bool_, float32, int32
from pyrelay.text.parser import parse_module
from pyrelay.text.printer import to_text
from tests.relay.reading import HEADER, mistake, module, operators, relay, same

# Names and bindings.


def test_a_slash_may_stand_in_a_name() -> None:
    assert same("let %base/x = 1; %base/x", "let %y = 1; %y")
    assert same("let %x = 1; %x / %x", "let %x = 1; divide(%x, %x)")
    assert same("let %x = 1; %x/%x", "let %x = 1; divide(%x, %x)")


def test_lets_nest_and_a_semicolon_throws_a_value_away() -> None:
    assert same("let %x = 1; let %y = 2; ()", "let %a = 1; let %b = 2; ()")
    assert isinstance(relay("(); ()"), LetBlock)
    found = relay("let %x = { let %y = 1; %y }; %x")
    assert isinstance(found, LetBlock)
    assert isinstance(found.bindings[0].value, LetBlock)


def test_a_let_may_stand_in_brackets() -> None:
    assert same("%0 = ( let %x = 1; %x ); %0", "let %a = { let %x = 1; %x }; %a")


def test_numbered_names_may_start_anywhere_and_be_projected() -> None:
    assert same("%0 = (); %1 = 1; (%0, %0, %1)", "let %a = (); let %b = 1; (%a, %a, %b)")
    assert same("%7 = (); %7", "let %a = (); %a")
    assert same("%0 = (1, 2); %0.1", "let %a = (1, 2); %a.1")


def test_a_let_of_a_function_may_call_itself() -> None:
    recursive = relay("let %f = fn (%n: int32) -> int32 { %f(%n) }; %f(1)")
    plain = relay("let %f = fn (%n: int32) -> int32 { %n }; %f(1)")
    assert isinstance(recursive, LetBlock)
    assert isinstance(plain, LetBlock)
    assert (recursive.flavour, plain.flavour) == (Flavour.REC, Flavour.PURE)


def test_a_let_of_a_value_means_the_outer_name() -> None:
    assert same("let %a = 1; let %a = %a + 1; %a", "let %a = 1; let %b = %a + 1; %b")


# Functions, calls, tuples, control.


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("fn (%x: int32) -> int32 { %x }", "def @main(%x: int32) -> int32 { %x }"),
        ("%0 = 1; %0", "def @main() { %0 = 1; %0 }"),
        ("add(1, 2) + 3", "def @main() { add(1, 2) + 3 }"),
        ("free_var %x: int32;\n%x + 1", "def @main(%x: int32) { %x + 1 }"),
        ("let %f = fn (%x) { %x }; %f(1)", "def @main() { let %f = fn (%x) { %x }; %f(1) }"),
        ("free_var %x: int32; fn () { %x }", "def @main(%x: int32) { fn () { %x } }"),
        ("%1 = 1; %2 = %1; fn (%x) { %x + %2 }", "def @main(%x) { %1 = 1; %2 = %1; %x + %2 }"),
        ("let %x = 1; fn (%x) { %x }", "def @main() { let %x = 1; fn (%x) { %x } }"),
    ],
)
def test_an_expression_alone_is_main(text: str, meaning: str) -> None:
    found = parse_module(HEADER + text)
    assert alpha_equal(found, parse_module(HEADER + meaning))
    assert alpha_equal(parse_module(to_text(found)), found)


def test_a_mistake_in_an_expression_alone_is_the_expressions() -> None:
    for text, at in (("let %x = ; 1", ";"), ("fn (%x) { %y }", "%y"), ("] + 1", "]")):
        with pytest.raises(CheckError) as caught:
            parse_module(HEADER + text)
        (mistake,) = caught.value.diagnostics
        assert mistake.primary is not None
        assert mistake.primary.span.text == at


def test_tuples_and_projections_are_read() -> None:
    for text in ("()", "(0,)", "(0, 1)", "(0, 1, 2)", "(0, 1,)"):
        assert relay(text)
    assert same("(1,).0", "(1,).0")
    assert same("let %x = (1,); %x.0", "let %y = (1,); (%y).0")


def test_functions_and_calls_are_read() -> None:
    assert relay("fn () -> _ { 1 }")
    assert relay("fn (%x: int32, %y) -> int32 { %x + %y }")
    assert same("fn (%x) { %x }(1)", "let %f = fn (%x) { %x }; %f(1)") is False
    assert relay("free_var %f: fn (int32) -> fn (int32) -> int32; %f(0)(0)")
    assert same('fn (%x, Primitive=1, Compiler="c") { %x }', "fn (%x) { %x }")
    assert same("fn (Primitive=1) { 1 }", "fn () { 1 }")
    assert same("10 * fn (%x) { %x }(10)", "multiply(10, fn (%x) { %x }(10))")


def test_conditionals_may_be_chained() -> None:
    assert relay("free_var %c: bool; if (%c) { 1 } else { 0 }")
    assert relay("free_var %c: bool; if (%c) { 1 } else if (%c) { 2 } else { 0 }")
    assert same("if (True) { () } else { () }", "if (True) { { () } } else { () }")


def test_references_are_read_and_written() -> None:
    found = module("def @main(%x: float32) { %0 = ref(%x); ref_write(%0, 1f); ref_read(%0) }")
    assert to_text(found).count("ref_") == 2


# Data types.


def test_data_types_of_every_form_are_read() -> None:
    found = module(
        """
        extern type Storage
        type Empty { }
        type Unit { U }
        type List[A] { Cons(A, List[A]), Nil, }
        type Either[A, B] { Left(A), Right(B) }
        type Sized { Sized(Tensor[(?, 2), float32]) }
        """
    )
    assert [len(adt.constructors) for adt in found.adts.values()] == [0, 0, 1, 2, 2, 1]


def test_a_constructor_without_fields_is_a_value() -> None:
    found = module("type U { U } def @f() { U } def @g() { U() }").functions
    assert alpha_equal(found["f"], found["g"])


def test_matches_complete_and_partial() -> None:
    text = """
        type List[A] { Cons(A, List[A]), Nil }
        def @length[A](%xs: List[A]) -> int32 {
          match (%xs) {
            Cons(_, %rest: List[A]) => { (); 1 + @length(%rest) },
            Nil => { 0 },
          }
        }
        def @head[A](%xs: List[A]) -> A { match? %xs { Cons(%x, _) => %x } }
        def @both[A](%a: List[A], %b: List[A]) -> bool {
          match ((%a, %b)) { (Nil, Nil()) => { True }, _ => { False } }
        }
        def @pair[A](%a: List[A], %b: List[A]) -> bool {
          match (%a, %b) { (Nil, Nil) => { True }, %other => { False } }
        }
    """
    assert len(module(text).functions) == 4


# Attributes.


def test_attributes_of_every_kind() -> None:
    found = module(
        """
        def @f(%x: Tensor[(1, 8, 8, 3), float32], %w: Tensor[(3, 3, 3, 4), float32]) {
          %0 = nn.conv2d(%x, %w, padding=[1, 1, 1, 1], channels=4, kernel_size=[3, 3],
                         data_layout="NHWC", kernel_layout="HWIO", out_dtype="");
          %1 = clip(%0, a_min=0f, a_max=6f);
          %2 = nn.leaky_relu(%1, alpha=1e-1f);
          %3 = nn.dense(nn.batch_flatten(%2), %2, units=None);
          clip(%3, a_min=-inff, a_max=inff)
        }
        """
    )
    assert operators(found.functions["f"]).count("permute") == 3


# Types.


@pytest.mark.parametrize("name", sorted(DTYPES))
def test_dtypes_are_types_of_scalars(name: str) -> None:
    assert parameter(name) == TensorType((), DTYPES[name])
    assert parameter(f"Tensor[(), {name}]") == TensorType((), DTYPES[name])


def parameter(text: str) -> Type | None:
    found = module(f"type List[A] {{ Nil }} def @f[A](%x: {text}) {{ %x }}")
    return found.functions["f"].params[0].ty


def test_types_of_every_form_are_read() -> None:
    assert parameter("int") == parameter("int32") == TensorType((), int32)
    assert parameter("float") == TensorType((), float32)
    assert parameter("uint1") == TensorType((), bool_)
    assert str(parameter("Tensor[(1), float32]")) == str(parameter("Tensor[(1,), float32]"))
    assert isinstance(parameter("ref(int32)"), RefType)
    for text in (
        "_",
        "()",
        "(int32,)",
        "(int32, bool)",
        "List[A]",
        "List[(A, int32)]",
        "fn () -> int32",
        "fn (A, int32) -> (A,)",
        "fn [B](B) -> B",
        "Tensor[(2, 3, 4), float16]",
    ):
        assert parameter(text) is not None


def test_dtypes_that_no_operator_takes_may_be_named() -> None:
    assert to_text(module("type Any { Any(Tensor[(?), uint16]) }")).count("uint16") == 1


def test_an_unknown_dim_is_any_dim() -> None:
    found = module("def @f(%x: Tensor[(?, ?), float32]) { %x }").functions["f"].params[0].ty
    assert isinstance(found, TensorType)
    assert found.shape[0] != found.shape[1]
    assert not any(dim.has_holes() for dim in found.shape)


def test_a_type_may_be_named_like_a_dtype() -> None:
    assert module("type float { Half } def @f(%x: float) -> float { %x }").adts["float"]


# All of it.


def test_what_is_read_is_printed_in_our_own_text_and_reads_back() -> None:
    found = module(
        """
        type List[A] { Cons(A, List[A]), Nil }
        def @main(%x: Tensor[(?, 3), float32], %r: ref(int32), %c: bool) {
          let %f = fn (%n: int32) { if (%n == 0) { 0 } else { %f(%n - 1) } };
          ref_write(%r, %f(3));
          %0 = nn.softmax(%x) / 2f;
          %1 = match? (Cons(%0, Nil)) { Cons(%h, _) => { %h } };
          (%1, add, -1f, inff)
        }
        """
    )
    again = parse_module(to_text(found))
    assert alpha_equal(again, found)
    assert again.strict_dtypes


# Mistakes.


@pytest.mark.parametrize(
    ("text", "code", "at"),
    [
        ("def @main() { let @x = 1; @x }", "RL600", "@x"),
        ("def @main() { let x = 1; x }", "RL600", "x"),
        ("def @main(%c: bool) { if (%c) { let %x = 1; %x } else { %x } }", "RL602", "%x"),
        ("def @main() { %1 }", "RL602", "%1"),
        ("type A { X } type A { Y }", "RL609", "A"),
        ("type A { X } type B { X }", "RL609", "X"),
        ("type A { X, X }", "RL609", "X"),
        ("type A { B } type B { C }", "RL609", "B"),
        ("type A { C } type B { A }", "RL609", "A"),
        ("def @f(%c: bool) { if (%c) { %1 = %1; %1 } else { %1 } }", "RL602", "%1"),
        ("def @f() { 1 } def @f() { 2 }", "RL609", "@f"),
        ("type A { X } def @f(%a: A) { match (%a) { Z => { 1 } } }", "RL605", "Z"),
        ("def @f() { Z }", "RL604", "Z"),
        ("def @f() { @g() }", "RL603", "@g"),
        ("def @f() { meta[relay.Constant][0] }", "RL618", "meta[relay.Constant][0]"),
        ("def @f(%x: Tensor[(1), float8]) { %x }", "RL608", "float8"),
        ("def @f(%x: int8x4) { %x }", "RL607", "int8x4"),
        ("def @f(%x) { nn.dense(%x) }", "RL611", "nn.dense(%x)"),
        ("def @f(%x) { nn.softmax(%x, axes=1) }", "RL611", "axes"),
        ("def @f(%x) { nn.conv3d_transpose(%x, %x) }", "RL617", "nn.conv3d_transpose"),
        ("def @f(%x) { take(%x, %x, batch_dims=1) }", "RL617", "take(%x, %x, batch_dims=1)"),
        ("def @f(%x) { nn.denze(%x, %x) }", "RL604", "nn.denze"),
    ],
)
def test_mistakes_are_pointed_at(text: str, code: str, at: str) -> None:
    assert mistake(text) == (code, at)


def test_another_version_is_refused() -> None:
    with pytest.raises(CheckError) as caught:
        parse_module('#[version = "0.0.4"]\ndef @main() { () }')
    assert caught.value.diagnostics[0].code == "RL601"


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("def @f() { match (1) { foo => 1 } }", "a variable that takes any value is `%foo`"),
        ("def @f(%x: int8x4) { 1 }", r"write a dim, `Tensor\[\(..., 4\), int8\]`"),
    ],
)
def test_mistakes_say_what_to_write(text: str, advice: str) -> None:
    with pytest.raises(CheckError, match=advice):
        parse_module(HEADER + text)
