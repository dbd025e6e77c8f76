"""What Relay's own tests of type inference, kinds, parser and printer state, where no other file
here has it.

| behaviour of Relay | where |
|---|---|
| types of lets, operators, tuples, cells, closures | below; unit/passes/infer/test_infer |
| a function without types gets them from its call | below; unit/passes/infer/test_open_functions |
| polymorphic functions as arguments and results | below |
| constructors are functions; instances of a data type differ | below; seed |
| a pattern's annotation decides the parameter's type | unit/passes/infer/test_cases |
| lets are polymorphic | test_programs, test_evaluation |
| unknown sizes: convolutions; a loop that grows a tensor | below |
| operators of a user's own, with a rule that refuses | tests/ops, unit/translate |
| the solver: chains, from results to operands, what cannot be one type | below |
| kinds: what a type may be applied to, and to how much | below |
| cases that are left out, clauses that never win | unit/passes/test_coverage |
| a variable is bound once | unit/ir/test_verify; below |
| words, numbers, signs, precedence, bindings, calls, types, data types, metadata | test_text |
| mistakes of texts, rendered | test_mistakes; unit/ir/test_parser |
| how constants, attributes, spans and types print | unit/ir/test_printer |
| 90,000 bindings print | scale |
| branches, constructors, attributes, names with slashes print | below |
"""

from __future__ import annotations

import pytest
import torch

from pyrelay import CheckError, RunError, relay
from pyrelay.ir.equality import alpha_equal
from pyrelay.ir.types import FnType, show
from tests.relay.reading import HEADER
from tests.seed.values import agree

BOX = "type Box[A] { Box(A) } type Other[A] { Other(A) } type Pair[A, B] { Pair(A, B) }"
F = "float32"


def type_of(body: str, params: str = "", before: str = "") -> str:
    """Return the type that inference finds for the result of `@main`."""
    text = f"{HEADER}{BOX}{before} def @main({params}) {{ {body} }}"
    ty = relay.parse(text).typed.ir.functions["main"].ty
    assert isinstance(ty, FnType)
    return show(ty.result)


def refused(body: str, params: str = "", before: str = "") -> tuple[str, ...]:
    with pytest.raises(CheckError) as caught:
        type_of(body, params, before)
    return caught.value.codes


@pytest.mark.parametrize(
    ("body", "params", "expected"),
    [
        ("let %x = 1.0f64; %x", "", "float64"),
        ("log(%x)", "%x: float32", "Float"),
        (
            "add(%x, %y)",
            "%x: Tensor[(10, 4), float32], %y: Tensor[(5, 10, 1), float32]",
            "Tensor[Float, (5, 10, 4)]",
        ),
        ("let %y = log(%x); add(%y, %y)", "%x: Tensor[(2), float32]", "Tensor[Float, (2,)]"),
        ("equal(%x, %x)", "%x: Tensor[(3), float32]", "Tensor[Bool, (3,)]"),
        ("(%x, (1, True))", "%x: float32", "tuple[Float, tuple[int32, Bool]]"),
        ("let %r = ref(%x); ref_write(%r, %x)", "%x: float32", "None"),
        ("let %r = ref(%x); (%r, ref_read(%r))", "%x: float32", "tuple[Ref[Float], Float]"),
        ("let %f = fn (%x) { %x + 1 }; (%f(2), %f)", "", "tuple[int32, Fn[[int32], int32]]"),
        ("(Box(()), Box(1f))", "", "tuple[Box[None], Box[Float]]"),
        ("Box(Box(%x))", "%x: (int32, bool)", "Box[Box[tuple[int32, Bool]]]"),
        ("fn (%x: float32) { Box(%x) }", "", "Fn[[Float], Box[Float]]"),
        ("(@id(1), @id(()), @id(@id)(2f))", "", "tuple[int32, None, Float]"),
        (
            "argmax(broadcast_to(%x, shape=[4, 3]), axis=1)",
            "%x: Tensor[(3), float32]",
            "Tensor[int32, (4,)]",
        ),
    ],
)
def test_an_expression_has_its_type(body: str, params: str, expected: str) -> None:
    assert type_of(body, params) == expected


def test_recursion_finds_its_result() -> None:
    before = """
    def @f(%n: int32, %data: float32) {
      if (%n == 0) { %data } else { @f(%n - 1, log(%data)) }
    }
    """
    assert type_of("@f(2, 10000f)", "", before) == "Float"


def test_polymorphic_functions_are_taken_and_given() -> None:
    before = """
    def @twice[A](%f: fn (A) -> A) -> fn (A) -> A { fn (%x: A) -> A { %f(%f(%x)) } }
    def @both[A, B](%f: fn (A) -> B, %x: A) -> (B, B) { (%f(%x), %f(%x)) }
    def @wrap[A](%x: A) -> Box[A] { Box(%x) }
    """
    assert type_of("@twice(@twice(@id))(1f)", "", before) == "Float"
    assert type_of("@both(@wrap, 1)", "", before) == "tuple[Box[int32], Box[int32]]"
    assert type_of("@both(Box, @both(Box, 1).0).1", "", before) == "Box[Box[int32]]"
    assert type_of("@compose(@wrap, @twice(@id))(2f)", "", before) == "Box[Float]"


# What cannot be one type.


@pytest.mark.parametrize(
    ("body", "params"),
    [
        ("@same((1, 2), (1, 2, 3))", ""),
        ("fn (%f) { %f(%f) }", ""),
        ("let %f = fn (%x) { %f }; %f", ""),
        ("@same(Box(1), Other(1))", ""),
        ("@same(Box(1), Box(1f))", ""),
        ("@same(Pair(1, 2f), Pair(1f, 2))", ""),
        ("@same(%f, %g)", "%f: fn (int32) -> int32, %g: fn (int32, int32) -> int32"),
        ("@same(%x, ref(%x))", "%x: int32"),
        ("@same(%x, %y)", "%x: Tensor[(2), float32], %y: Tensor[(3), float32]"),
        ("@same(%x, %y)", "%x: Tensor[(2), float32], %y: Tensor[(2, 1), float32]"),
    ],
)
def test_two_types_that_differ_are_not_one(body: str, params: str) -> None:
    before = "def @same[A](%x: A, %y: A) -> A { %x }"
    assert refused(body, params, before)
    assert type_of("@same(Pair(1, 2f), Pair(2, 1f))", "", before) == "Pair[int32, Float]"


def test_shapes_are_found_from_results_to_operands() -> None:
    text = f"""{HEADER}
    def @main(%x: Tensor[(10, 20), {F}], %y: Tensor[(10, 1, 20), {F}]) {{
      let %f = fn (%a, %b) {{ let %c = add(%a, %b); let %d = copy(%c); add(%d, %a) }};
      %f(%x, %y)
    }}
    def @back(%w: _) -> Tensor[(2, 3), {F}] {{ %w }}
    """
    functions = relay.parse(text).typed.ir.functions
    assert show(functions["main"].ty) == (
        "Fn[[Tensor[Float, (10, 20)], Tensor[Float, (10, 1, 20)]], Tensor[Float, (10, 10, 20)]]"
    )
    assert show(functions["back"].ty) == "Fn[[Tensor[Float, (2, 3)]], Tensor[Float, (2, 3)]]"


@pytest.mark.parametrize(
    "annotation",
    [
        "Box",
        "Box[int32, int32]",
        "Pair[int32]",
        "Numbers[int32]",
        "Unknown",
        "A",
        "ref(int32, int32)",
        "Tensor[(2), Box]",
        "fn (int32)",
    ],
)
def test_a_type_that_is_no_type_is_refused(annotation: str) -> None:
    with pytest.raises(CheckError) as caught:
        relay.parse(
            f"{HEADER}{BOX} type Numbers {{ One }} def @f(%x: {annotation}) {{ 1 }}"
        ).check()
    assert all(code.startswith("RL6") for code in caught.value.codes)


# Sizes that are not known.


def growing(rows: str) -> str:
    kind = f"Tensor[({rows}, 1), int32]"
    return f"""{HEADER}
    def @grow(%i: int32, %x: {kind}) -> {kind} {{
      if (%i < 10) {{
        @grow(%i + 1, concatenate((%x, reshape(%i, newshape=[1, 1])), axis=0))
      }} else {{ %x }}
    }}
    def @main(%x: {kind}) {{
      let %y = @grow(7, %x);
      let %z = @grow(9, %x);
      (%y, %z, zeros_like(%y), zeros_like(%z))
    }}
    """


def test_a_loop_grows_a_tensor_whose_size_is_no_size_in_particular() -> None:
    main = relay.parse(growing("?"))["main"]
    y, z, *zeros = agree(main, torch.tensor([[5], [6]], dtype=torch.int32))
    assert y == [[5], [6], [7], [8], [9]]
    assert z == [[5], [6], [9]]
    assert zeros == [[[0]] * 5, [[0]] * 3]


def test_a_loop_that_grows_a_tensor_of_a_known_size_is_refused() -> None:
    with pytest.raises(CheckError, match="2 is not 1"):
        relay.parse(growing("1")).check()


def test_sizes_that_do_not_fit_are_found_when_the_program_runs() -> None:
    text = "def @main(%x: Tensor[(?), float32], %y: Tensor[(?), float32]) { add(%x, %y) }"
    main = relay.parse(HEADER + text)["main"]
    assert agree(main, torch.ones(3), torch.ones(3)) == [2.0, 2.0, 2.0]
    for call in (main, main.interpret):
        with pytest.raises(RunError):
            call(torch.ones(3), torch.ones(2))


def test_a_convolution_of_unknown_sizes_has_a_type() -> None:
    text = """
    def @main(%x: Tensor[(?, ?, ?, ?), float32], %w: Tensor[(8, 3, 3, 3), float32]) {
      nn.conv2d(%x, %w, padding=[1, 1, 1, 1], channels=8, kernel_size=[3, 3])
    }
    """
    x, w = torch.rand(2, 3, 5, 7), torch.rand(8, 3, 3, 3)
    expected = torch.nn.functional.conv2d(x, w, padding=1)
    torch.testing.assert_close(relay.parse(HEADER + text)["main"](x, w), expected)


# How it prints.


def printed(text: str) -> str:
    """Return the text of a module, which reads back."""
    module = relay.parse(HEADER + text)
    assert alpha_equal(relay.parse(str(module)).ir, module.ir)
    return str(module)


def test_branches_print_with_one_pair_of_braces_each() -> None:
    text = printed("def @main(%c: bool) { if (%c) { let %x = 1; %x } else { 2 } }")
    assert text.count("{") == 3


def test_a_constructor_that_is_not_applied_prints_as_its_name() -> None:
    assert "@foldr(Cons, Nil" in printed("def @main(%x: List[int32]) { @foldr(Cons, Nil, %x) }")


def test_attributes_that_have_their_default_do_not_print() -> None:
    before = "def @main(%x: Tensor[(2, 3), float32])"
    assert "softmax(%x, dim=0)" in printed(f"{before} {{ nn.softmax(%x, axis=0) }}")
    assert "clip(%x, min=None" not in printed(f"{before} {{ clip(%x, a_min=0f, a_max=1f) }}")


def test_names_with_slashes_print() -> None:
    text = printed("def @main(%base/x: int32) { let %base/y = %base/x; %base/y }")
    assert "base/x" in text


@pytest.mark.parametrize(
    "text",
    [
        "def @main() -> (fn () -> int32, fn () -> int32) {"
        " %1 = fn () { 1 }; %2 = fn () { 2 }; (%1, %2,) }",
        "def @main(%c: bool) { %0 = if (%c) { 1 } else { 2 }; add(%0, %0) }",
        "def @main(%x: Tensor[(1, 4), float32], %w: Tensor[(3, 4), float32],"
        " %b: Tensor[(3), float32]) { %0 = nn.dense(%x, %w, units=3);"
        " %1 = nn.bias_add(%0, %b, axis=-1); %2 = nn.relu(%1); nn.softmax(%2) }",
        "def @main() { (1f16, 1f, 1f64, 1i16, 1, 1i64) }",
    ],
)
def test_a_program_reads_back(text: str) -> None:
    assert printed(text)
