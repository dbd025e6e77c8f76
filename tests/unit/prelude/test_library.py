"""The prelude as IR: it parses, every function has a type, and programs get what they reach."""

from __future__ import annotations

import pytest

from pyrelay.diagnostics.source import NOWHERE
from pyrelay.infer import infer
from pyrelay.ir.expr import Function, GlobalVar
from pyrelay.ir.module import EMPTY, Module
from pyrelay.ir.names import Names
from pyrelay.ir.types import show
from pyrelay.prelude.library import library, link, qualified
from pyrelay.text.parser import parse_module
from pyrelay.text.printer import to_text

TYPES = {
    "append": "Fn[[list[A], A], list[A]]",
    "compose": "Fn[[Fn[[B], C], Fn[[A], B]], Fn[[A], C]]",
    "concat": "Fn[[list[A], list[A]], list[A]]",
    "filter": "Fn[[Fn[[A], Bool], list[A]], list[A]]",
    "flip": "Fn[[Fn[[A, B], C]], Fn[[B, A], C]]",
    "foldl": "Fn[[Fn[[A, B], A], A, list[B]], A]",
    "foldr": "Fn[[Fn[[A, B], B], B, list[A]], B]",
    "foldr1": "Fn[[Fn[[A, A], A], list[A]], A]",
    "hd": "Fn[[list[A]], A]",
    "id": "Fn[[A], A]",
    "iterate": "Fn[[Fn[[A], A], Int], Fn[[A], A]]",
    "length": "Fn[[list[A]], Int]",
    "map": "Fn[[Fn[[A], B], list[A]], list[B]]",
    "map_accuml": "Fn[[Fn[[A, B], tuple[A, C]], A, list[B]], tuple[A, list[C]]]",
    "map_accumr": "Fn[[Fn[[A, B], tuple[A, C]], A, list[B]], tuple[A, list[C]]]",
    "nat_add": "Fn[[Nat, Nat], Nat]",
    "nat_double": "Fn[[Nat], Nat]",
    "nat_iterate": "Fn[[Fn[[A], A], Nat], Fn[[A], A]]",
    "nat_nth": "Fn[[list[A], Nat], A]",
    "nat_update": "Fn[[list[A], Nat, A], list[A]]",
    "nth": "Fn[[list[A], Int], A]",
    "rev": "Fn[[list[A]], list[A]]",
    "size": "Fn[[Tree[A]], Int]",
    "sum": "Fn[[list[Int]], Int]",
    "tl": "Fn[[list[A]], list[A]]",
    "tmap": "Fn[[Fn[[A], B], Tree[A]], Tree[B]]",
    "unfoldl": "Fn[[Fn[[A], tuple[A, B] | None], A], list[B]]",
    "unfoldr": "Fn[[Fn[[A], tuple[A, B] | None], A], list[B]]",
    "update": "Fn[[list[A], Int, A], list[A]]",
    "zip": "Fn[[list[A], list[B]], list[tuple[A, B]]]",
}
"""The functions that programs are promised, in the types of the original prelude."""


@pytest.fixture(scope="module")
def typed() -> Module:
    return infer(library())


@pytest.mark.parametrize("name", TYPES)
def test_functions_have_the_promised_types(name: str, typed: Module) -> None:
    ty = typed.functions[qualified(name)].ty
    assert ty is not None
    assert show(ty) == TYPES[name]


def mentioning(*names: str) -> Module:
    fresh = Names()
    functions = {
        fresh.fresh("f"): Function((), GlobalVar(qualified(n), span=NOWHERE), span=NOWHERE)
        for n in names
    }
    return Module(functions, {})


def test_a_module_gets_what_it_reaches_and_no_more() -> None:
    linked = link(mentioning("map"))
    assert set(linked.functions) == {"f"} | {qualified(n) for n in ("map", "map_onto")} | {
        qualified(n) for n in ("rev", "rev_onto")
    }
    assert list(linked.adts) == [qualified("List")]


def test_linking_is_done_once() -> None:
    linked = link(mentioning("tmap"))
    assert link(linked) is linked
    assert link(EMPTY) is EMPTY


def test_data_types_bring_those_in_their_fields() -> None:
    module = parse_module("def @f(%x: float32) { %x }")
    assert link(module) is module
    assert set(link(mentioning("size")).adts) == {qualified("List"), qualified("Tree")}


def test_the_linked_prelude_prints_and_reads_back(typed: Module) -> None:
    text = to_text(typed)
    assert to_text(parse_module(text)) == text
