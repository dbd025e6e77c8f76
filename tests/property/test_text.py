"""What is printed reads back to the same program, whatever the program and its stage."""

from __future__ import annotations

from hypothesis import given

from pyrelay.ir.equality import alpha_equal
from pyrelay.ir.module import Module
from pyrelay.ir.verify import Stage, verify
from pyrelay.text.json import from_json, to_json
from pyrelay.text.parser import parse_module
from pyrelay.text.printer import to_text
from tests.strategies import Program, programs
from tests.texts import modules
from tests.trees import as_trees


@given(programs(effects=True))
def test_a_program_in_normal_form_reads_back(program: Program) -> None:
    text = to_text(program.module)
    again = parse_module(text)
    assert alpha_equal(again, program.module)
    assert to_text(again) == text


@given(programs())
def test_a_tree_reads_back(program: Program) -> None:
    tree = as_trees(program.module)
    assert alpha_equal(parse_module(to_text(tree)), tree)


@given(programs(effects=True))
def test_spans_read_back(program: Program) -> None:
    text = to_text(program.module, spans=True)
    assert to_text(parse_module(text), spans=True) == text


@given(programs(effects=True))
def test_json_reads_back(program: Program) -> None:
    again = from_json(to_json(program.module))
    assert alpha_equal(again, program.module)
    assert to_json(again) == to_json(program.module)


@given(programs(effects=True))
def test_random_programs_are_well_formed(program: Program) -> None:
    verify(program.module, Stage.ANF)
    verify(parse_module(to_text(program.module)), Stage.ANF)


@given(modules())
def test_whatever_can_be_built_reads_back(module: Module) -> None:
    text = to_text(module)
    again = parse_module(text)
    assert alpha_equal(again, module)
    assert to_text(again) == text


@given(modules())
def test_whatever_can_be_built_keeps_its_spans(module: Module) -> None:
    text = to_text(module, spans=True)
    assert to_text(parse_module(text), spans=True) == text


@given(modules())
def test_whatever_can_be_built_goes_through_json(module: Module) -> None:
    text = to_json(module)
    again = from_json(text)
    assert alpha_equal(again, module)
    assert to_json(again) == text
