"""Errors of texts: their codes, their places, and the help with them."""

from __future__ import annotations

import pytest

from pyrelay.diagnostics.diagnostic import CheckError
from pyrelay.text.parser import parse_module


def error(text: str) -> tuple[str, str]:
    """Return the code of the error in a text, and the characters it points at."""
    with pytest.raises(CheckError) as caught:
        parse_module(text)
    (found,) = caught.value.diagnostics
    assert found.primary is not None
    return found.code, found.primary.span.text


@pytest.mark.parametrize(
    ("text", "code", "where"),
    [
        ("def @f() { 1 ", "RL600", ""),
        ("def @f() { let x = 1; x }", "RL600", "x"),
        ("def @f() { let @x = 1; 1 }", "RL600", "@x"),
        ("def @f() { 1 2 }", "RL600", "2"),
        ("def @f() { $ }", "RL600", "$"),
        ("def @f() { (1, 2 }", "RL600", "}"),
        ("def f() { 1 }", "RL600", "f"),
        ('#[pyrelay = "99"]', "RL601", '#[pyrelay = "99"]'),
        ('#[pyrelay = "1", fast]', "RL601", '#[pyrelay = "1", fast]'),
        ("def @f(%count) { %conut }", "RL602", "%conut"),
        ("def @f() { @g() }", "RL603", "@g"),
        ("def @f() { adds(1, 2) }", "RL604", "adds"),
        ("def @f() { gradd{}(@f) }", "RL604", "gradd"),
        ("type T { A } def @f(%x: T) { match (%x) { B => 1 } }", "RL605", "B"),
        ("type T { A } def @f() { T::B }", "RL605", "T::B"),
        ("type T { A } type U { A } def @f() { A }", "RL606", "A"),
        ("def @f(%x: Tree) { %x }", "RL607", "Tree"),
        ("def @f(%x: 3) { %x }", "RL608", "3"),
        ("def @f(%x: Tensor[(3,)]) { %x }", "RL608", "Tensor[(3,)]"),
        ("def @f(%x: Tensor[3, float32]) { %x }", "RL608", "3"),
        ("def @f(%x: Tensor[(N // 0,), float32]) { %x }", "RL608", "N // 0"),
        ("def @f(%x: Tensor[(4 % (N - N),), float32]) { %x }", "RL608", "4 % (N - N)"),
        ("def @f(%x: Tensor[(3,), float23]) { %x }", "RL608", "float23"),
        ('def @f(%x: Tensor[("a",), float32]) { %x }', "RL608", '"a"'),
        ("def @f[N: Size]() { 1 }", "RL608", "N: Size"),
        ("def @f() { grad{with=1}(@f) }", "RL608", "grad{with=1}(@f)"),
        ("type T { A(x: str, str) }", "RL608", "A(x: str, str)"),
        ("def @f() { 1 } def @f() { 2 }", "RL609", "@f"),
        ("type T { } type T { }", "RL609", "T"),
        ("type T { A, A }", "RL609", "A"),
        ("def @f(%x, %x) { 1 }", "RL609", "%x"),
        ("def @f() { sum(1, dim=0, dim=1) }", "RL609", "dim"),
        ("def @f() { match (1) { (%x, %x) => 1 } }", "RL609", "%x"),
        ("def @f() { 1q }", "RL610", "1q"),
        ("def @f() { 1.5size }", "RL610", "1.5size"),
        ("def @f() { 1.5i64 }", "RL610", "1.5i64"),
        ("def @f() { 300i8 }", "RL610", "300i8"),
        ("def @f() { @f(a=1) }", "RL611", "a"),
        ('def @f() { "\\q" }', "RL610", '"\\q"'),
        ("def @f() { tensor[(2,), int64][1] }", "RL610", "tensor[(2,), int64][1]"),
        ("def @f() { tensor[(1,), int8][300] }", "RL610", "tensor[(1,), int8][300]"),
        ("def @f() { tensor[(1,), int8][1.5] }", "RL610", "tensor[(1,), int8][1.5]"),
        ('def @f() { tensor[(1,), int8]"?" }', "RL610", 'tensor[(1,), int8]"?"'),
        ("def @f() { add(1) }", "RL611", "add(1)"),
        ("def @f() { tanh(1, 2) }", "RL611", "tanh(1, 2)"),
        ('#[pyrelay = "1", typed] def @f() -> int64 { size(d=1) }', "RL611", "d"),
        ("def @f() { tanh }", "RL612", "tanh"),
        ("def @f() { let rec %x = 1; %x }", "RL613", "1"),
        ("def @f(%x) { (%x : int64) }", "RL614", "(%x : int64)"),
        ("def @f() { 1@[0:0:1] }", "RL615", "@[0:0:1]"),
    ],
)
def test_an_error_is_at_its_place(text: str, code: str, where: str) -> None:
    assert error(text) == (code, where)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("def @f(%count) { %conut }", "did you mean `%count`?"),
        ("def @train() { @tran() }", "did you mean `@train`?"),
        ("def @f() { conv2(1, 2) }", "did you mean `conv2d`?"),
        ("type Tree { Leaf } def @f(%x: Tre) { 1 }", "did you mean `Tree`?"),
        (
            "type Tree { Leaf } def @f(%x: Tree) { match (%x) { Laef => 1 } }",
            "did you mean `Leaf`?",
        ),
        ("type T { A } type U { A } def @f() { A }", "write `T::A` or `U::A`"),
        ("def @f() { tanh }", "pass a function that calls it; its signature is `tanh(input)`"),
    ],
)
def test_an_error_has_help(text: str, hint: str) -> None:
    with pytest.raises(CheckError) as caught:
        parse_module(text)
    assert caught.value.diagnostics[0].help == hint


def test_expected_tokens_are_named() -> None:
    with pytest.raises(CheckError) as caught:
        parse_module("def @f() { add(1, ; }")
    primary = caught.value.diagnostics[0].primary
    assert primary is not None
    assert primary.text == "expected `)` or an expression"
