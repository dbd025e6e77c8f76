"""Relay's texts have nodes, blocks, calls and attributes in places where ours have none."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pyrelay import api
from pyrelay.diagnostics.diagnostic import CheckError
from pyrelay.ir.expr import Call
from pyrelay.ir.traverse import post_order
from pyrelay.operators.primitive.arithmetic import multiply
from tests.relay.reading import HEADER, module
from tests.relay.test_programs import run

THREE = torch.tensor(3, dtype=torch.int32)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("if (%x < 0) { %1 = %x * %x; %1 } else { %1 }", 9),
        ("if (%x < 0) { %0 = %x + 1; %1 = %0 * %0; %1 } else { %1 + %0 }", 20),
        ("%2 = fn (%y: int32) { %1 = %x * %y; %1 + %x }; %3 = %x * %x; %2(%1)", None),
        ("%2 = fn () { %1 = %x * %x; %1 }; %2() + %1", 18),
    ],
)
def test_a_node_is_computed_again_in_another_branch_or_function(text: str, expected: Any) -> None:
    program = f"def @main(%x: int32) {{ {text} }}"
    if expected is not None:
        assert run(program, THREE) == expected
        return
    with pytest.raises(CheckError, match="`%y` is not bound here"):
        api.parse(HEADER + program)


def test_a_node_is_one_in_another_function_however_often_it_is_mentioned() -> None:
    nodes = "".join(f"%{n} = %{n - 1} * %{n - 1}; " for n in range(1, 40))
    text = f"def @f(%x: int32) {{ %0 = %x + 1; {nodes} %39 }} def @g(%x: int32) {{ %39 }}"
    functions = module(text).functions
    for name in ("f", "g"):
        calls = [n for n in post_order(functions[name]) if isinstance(n, Call)]
        assert sum(call.callee is multiply for call in calls) == 39


def test_an_arm_binds_nodes_without_braces() -> None:
    text = (
        "type L { Nil, C(int32, L) } def @main(%l: int32) { match (C(%l, Nil)) {"
        " C(%h, _) => %0 = fn (%x: int32) { %x + %h }; %0(1), Nil => 0, } }"
    )
    assert run(text, THREE) == 4


def test_a_field_of_a_tuple_binds_names() -> None:
    text = "def @main(%x: int32) { (let %y = %x + 1; %y, %x, let %z = 2; %z * %z) }"
    assert run(text, THREE) == (4, 3, 4)


def test_a_pattern_in_brackets_is_a_tuple_of_one() -> None:
    assert run("def @main(%x: int32) { match ((%x,)) { (%y) => { %y } } }", THREE) == 3
    text = "type A { X } def @main() { match (X) { (X) => { 1 } } }"
    with pytest.raises(CheckError, match="this matches a tuple of 1, the value is A"):
        api.parse(HEADER + text).check()


@pytest.mark.parametrize(
    "text", ["add(1, 2)", "// a sum\nadd(1, 2)", "1 + 2", "{ %0 = 1; %0 + 2 }"]
)
def test_a_text_may_be_one_expression(text: str) -> None:
    assert api.parse(HEADER + text)["main"]() == 3


def test_a_text_that_is_no_call_is_expected_to_define_something() -> None:
    with pytest.raises(CheckError, match="`deff` cannot stand here"):
        api.parse(f"{HEADER}deff @main() {{ 1 }}")


def test_attributes_of_calls_of_functions_mean_nothing() -> None:
    text = (
        'def @f(%x: int32) { %x + 1 } def @main(%x: int32) { @f(%x, attrs_type_key="relay.attrs.'
        'TIRCallAttrs", metadata=[1, "a"]) * sum(%x, attrs_type_key="relay.attrs.ReduceAttrs") }'
    )
    assert run(text, THREE) == 12
