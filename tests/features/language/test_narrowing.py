"""Types that tests and assertions narrow: the same values as plain Python, in both executors."""

from __future__ import annotations

import inspect
import sys
import textwrap
import types
from typing import Any

import pytest
import torch

from pyrelay import CheckError, RunError, relay
from pyrelay.decorators import RelayFunction
from tests.features.language import narrowing_programs as programs


def plain() -> types.ModuleType:
    """Return the same programs as Python runs them."""
    text = inspect.getsource(programs).replace("@relay\n", "")
    module = types.ModuleType("plain_narrowing_programs")
    sys.modules[module.__name__] = module  # where dataclasses look for their annotations
    exec(compile(text, "plain", "exec"), module.__dict__)
    return module


PLAIN = plain()


def trees(m: Any) -> list[Any]:
    """Return trees of a module's classes."""
    leaf, node, empty = m.Leaf, m.Node, m.Empty
    return [
        leaf(3.0),
        node(leaf(1.0), empty()),
        empty(),
        node(node(leaf(2.0), empty()), leaf(1.0)),
        node(empty(), leaf(0.5)),
    ]


def records(m: Any) -> list[Any]:
    """Return records of a module's classes."""
    return [
        m.Record(t, maybe, (other, 0.25))
        for t, maybe, other in zip(
            trees(m), [None, 2.0, -1.0, 4.0, None], reversed(trees(m)), strict=True
        )
    ]


ARGUMENTS: dict[str, Any] = {
    "field_of_a_record": records,
    "field_of_a_field": lambda m: [m.Outer(r) for r in records(m)],
    "place_in_a_tuple": records,
    "place_in_a_list": lambda m: [[], trees(m), trees(m)[1:]],
    "results_of_calls": lambda _: [2.0],
    "constructed": lambda _: [1.0, 3.0],
    "rebuilt": lambda _: [1.5],
    "closure": records,
    "matched_field": records,
    "optional_of_a_union": lambda m: [None, *trees(m)],
    "asserted": trees,
    "asserted_twice": trees,
    "asserted_with_more": records,
    "asserted_there": lambda _: [None, 3.0],
    "asserted_field_there": records,
    "asserted_not": trees,
    "asserted_several": trees,
    "asserted_after_a_loop": trees,
    "asserted_in_a_loop": lambda m: [[], trees(m)[:1] * 2, trees(m)],
    "asserted_of_a_call": lambda _: [2.0],
    "rebound_after_a_test": records,
    "assigned_on_both_arms": lambda _: [1.0, 3.0],
    "assigned_by_an_expression": lambda _: [1.0, 3.0],
    "narrowed_on_both_arms": trees,
    "tested_on_both_arms": records,
    "joined_by_match": trees,
    "after_a_refusal": trees,
    "after_a_raise": trees,
    "after_a_loop": trees,
    "excluded_on_both_arms": trees,
    "learnt_of_a_part": records,
    "told_by_a_guard": records,
    "tested_for_a_union": trees,
}


def outcome(run: Any, arg: Any) -> float | str:
    """Return what a program gives, or the words with which it stops."""
    try:
        return float(run(arg))
    except (AssertionError, ValueError, TypeError, RunError) as error:
        words = error.diagnostics[0].title if isinstance(error, RunError) else str(error)
        return words.split(": ")[-1] or "the assertion does not hold"


@pytest.mark.parametrize("name", ARGUMENTS)
def test_what_a_test_has_told_holds_after_it(name: str) -> None:
    function = getattr(programs, name)
    pairs = zip(ARGUMENTS[name](programs), ARGUMENTS[name](PLAIN), strict=True)
    for mine, theirs in pairs:
        wanted = outcome(getattr(PLAIN, name), theirs)
        assert outcome(function, mine) == wanted
        assert outcome(function.interpret, mine) == wanted


def test_an_assertion_holds_where_it_stands() -> None:
    leaf = programs.Leaf(3.0)
    assert float(programs.asserted_in_a_branch(leaf, 2.0)) == 6.0
    assert float(programs.asserted_in_a_branch(programs.Empty(), -2.0)) == -2.0
    with pytest.raises(RunError):
        programs.asserted_in_a_branch(programs.Empty(), 2.0)


def test_an_assertion_finds_the_sizes_of_a_value() -> None:
    rows = torch.arange(6.0).reshape(3, 2)
    found = programs.asserted_size(programs.Rows(rows))
    assert torch.allclose(found, (rows @ rows.T).sum())


def test_what_was_in_a_cell_is_tested_under_a_name() -> None:
    cell = relay.ref(programs.Leaf(4.0))
    assert float(programs.content_of_a_cell(cell)) == 4.0
    assert isinstance(cell.value, programs.Empty)


def test_gradients_flow_through_what_is_asserted() -> None:
    found = relay.grad(programs.asserted_twice)(
        programs.Node(programs.Leaf(2.0), programs.Leaf(1.0))
    )
    assert float(found.left.value) == 1.0
    assert float(found.right.value) == 0.0


@pytest.mark.parametrize(
    "body",
    [
        # the content of a cell may change between the test and its use
        "def f(c: Ref[Tree]) -> Float:\n"
        "    return c.value.value if isinstance(c.value, Leaf) else 0.0",
        # another call may give another value
        "def f(x: Float) -> Float:\n"
        "    return doubled(x).left.value if isinstance(doubled(x), Leaf) else 0.0",
        # another name, and another place
        "def f(r: Record) -> Float:\n    assert isinstance(r.tree, Leaf)\n"
        "    r = Record(Empty(), None, r.pair)\n    return r.tree.value",
        "def f(p: tuple[Tree, Tree]) -> Float:\n"
        "    return p[1].value if isinstance(p[0], Leaf) else 0.0",
        "def f(x: Float) -> Float:\n    us = [Leaf(x), Empty(), Node(Leaf(x), Empty())]\n"
        "    if isinstance(us[0], Leaf):\n        us[0] = Empty()\n        return us[0].value\n"
        "    return 0.0",
    ],
)
def test_what_may_be_another_value_is_not_told(body: str, tmp_path: Any) -> None:
    file = tmp_path / "refused.py"
    text = "from tests.features.language.narrowing_programs import *\n\n\n@relay\n"
    file.write_text(text + textwrap.dedent(body) + "\n")
    module = types.ModuleType("refused")
    exec(compile(file.read_text(), str(file), "exec"), module.__dict__)
    with pytest.raises(CheckError) as caught:
        module.f.check()
    assert caught.value.codes == ("RL157",)


def test_every_program_is_tested() -> None:
    names = {n for n, f in vars(programs).items() if isinstance(f, RelayFunction)}
    here = {"asserted_in_a_branch", "asserted_size", "content_of_a_cell", "doubled"}
    here |= {"sizes_of_both"}
    assert names == ARGUMENTS.keys() | here


def test_a_class_known_on_both_arms_keeps_its_sizes() -> None:
    rows = torch.arange(6.0).reshape(3, 2)
    for flag, scale in ((True, 1.0), (False, 2.0)):
        found = programs.sizes_of_both(programs.Rows(rows), flag)
        assert torch.allclose(found, scale * (rows @ rows.T).sum())
    assert float(programs.sizes_of_both(programs.NoRows(), True)) == 0.0
    with pytest.raises(RunError, match="the assertion does not hold"):
        programs.sizes_of_both(programs.NoRows(), False)


@pytest.mark.parametrize(
    "name", ["narrowed_on_both_arms", "after_a_loop", "excluded_on_both_arms", "joined_by_match"]
)
def test_gradients_flow_through_what_both_arms_know(name: str) -> None:
    function = getattr(programs, name)
    tree = programs.Node(programs.Leaf(2.0), programs.Empty())
    bigger = programs.Node(programs.Leaf(2.125), programs.Empty())
    slope = (float(function(bigger)) - float(function(tree))) / 0.125
    found = relay.grad(function, wrt="t")(tree)
    assert float(found.left.value) == pytest.approx(slope)


def test_what_one_arm_alone_knows_is_not_told(tmp_path: Any) -> None:
    text = (
        "from tests.features.language.narrowing_programs import *\n\n\n@relay\n"
        "def f(t: Tree, x: Float) -> Float:\n"
        "    if x > 0.0:\n        assert isinstance(t, Leaf)\n"
        "    else:\n        assert isinstance(t, (Leaf, Node))\n"
        "    return t.value\n"
    )
    file = tmp_path / "one_arm.py"
    file.write_text(text)
    module = types.ModuleType("one_arm")
    exec(compile(text, str(file), "exec"), module.__dict__)
    with pytest.raises(CheckError):
        module.f.check()
