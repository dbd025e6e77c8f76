"""The check that is generated for a data type finds what the careful walk finds."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, Final

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pyrelay import Float, Int, RunError, relay
from pyrelay.runtime.border.plain import Plain, UnfitError
from pyrelay.runtime.values.structure import listed


@dataclass(frozen=True)
class Label:
    """Neither data nor floats in it: it is not rebuilt."""

    name: str
    count: Int


@dataclass(frozen=True)
class Bag:
    weight: Float
    numbers: list[Float]
    pairs: tuple[tuple[Int, Float | None], ...]
    nested: list[list[Int]] | None
    corner: tuple[Float, tuple[Label, list[str]]]
    bags: list[Bag]
    box: Box | None


@dataclass(frozen=True)
class Box:
    """A data type that has the other one in it, which has it."""

    labels: list[Label | None]
    inside: tuple[Bag, ...]


@relay
def same(bag: Bag) -> Bag:
    return bag


Seven = list[list[list[list[list[list[list[Float]]]]]]]
Fourteen = list[list[list[list[list[list[list[Seven]]]]]]]


@dataclass(frozen=True)
class Deep:
    rows: list[list[list[list[list[list[list[Fourteen]]]]]]]


@relay
def depth(deep: Deep) -> int:
    return len(deep.rows)


FLOATS: Final = st.one_of(
    st.floats(-9, 9, width=16), st.builds(torch.tensor, st.floats(-9, 9, width=16))
)
INTS: Final = st.one_of(
    st.integers(-(2**63), 2**63 - 1), st.builds(torch.tensor, st.integers(0, 9))
)
ODD: Final = st.sampled_from([True, 2**64, "text", None, (), 1e300, torch.ones(2)])
"""Leaves that the generated check leaves to the walk of `arguments.py`, which converts or refuses
them."""
LABELS: Final = st.builds(Label, st.text("ab", max_size=2), INTS)


def lists(element: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Return lists of each class that scripts may give."""
    found = st.lists(element, max_size=3)
    return st.one_of(found, found.map(tuple), found.map(lambda items: listed(*items)))


def bags_of(
    floats: st.SearchStrategy[Any], inner: st.SearchStrategy[Any]
) -> st.SearchStrategy[Any]:
    """Return bags, with other bags in them, some of them twice."""
    corner = st.tuples(floats, st.tuples(LABELS, lists(st.text(max_size=1))))
    boxes = st.builds(Box, lists(st.none() | LABELS), lists(inner))
    inside = lists(inner) | inner.map(lambda bag: [bag, bag])
    pairs = lists(st.tuples(INTS, st.none() | floats))
    nested = st.none() | lists(lists(INTS))
    return st.builds(Bag, floats, lists(floats), pairs, nested, corner, inside, st.none() | boxes)


def trees_of(floats: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Return bags in bags."""
    least = st.builds(
        Bag,
        floats,
        lists(floats),
        st.just(()),
        st.none(),
        st.tuples(floats, st.tuples(LABELS, st.just([]))),
        st.just(()),
        st.none(),
    )
    return st.recursive(least, lambda inner: bags_of(floats, inner), max_leaves=4)


@relay
def same_list(bags: list[Bag]) -> list[Bag]:
    return bags


def outcome(value: Any) -> str:
    """Return the text of a value that was taken and given back, or the mistake in it."""
    try:
        return repr(same(value) if isinstance(value, Bag) else same_list(value))
    except RunError as error:
        return str(error)


def careful(value: Any) -> str:
    """Return the outcome of the careful walk."""

    def unfit(*_: Any) -> None:
        raise UnfitError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Plain, "take", unfit)
        return outcome(value)


@pytest.fixture
def walks(monkeypatch: pytest.MonkeyPatch) -> list[Plain]:
    """Return the walks of the generated functions that have come to an end."""
    found: list[Plain] = []
    take = Plain.take

    def noted(walk: Plain, value: Any, plan: Any) -> Any:
        try:
            host = take(walk, value, plan)
        except UnfitError:
            pytest.fail("a value is left to the careful walk")
        found.append(walk)
        return host

    monkeypatch.setattr(Plain, "take", noted)
    return found


@settings(max_examples=40)
@given(trees_of(FLOATS) | lists(trees_of(FLOATS)))
def test_values_are_as_the_careful_walk_has_them(value: Any) -> None:
    expected = careful(copy.deepcopy(value))
    assert outcome(value) == expected
    assert outcome(value) == expected


@settings(max_examples=40)
@given(trees_of(FLOATS | ODD) | lists(trees_of(FLOATS | ODD)))
def test_mistakes_are_those_of_the_careful_walk(value: Any) -> None:
    assert outcome(copy.deepcopy(value)) == careful(value)


def test_no_value_that_fits_needs_the_careful_walk(walks: list[Plain]) -> None:
    corner = (2.0, (Label("a", 1), ["b"]))
    few: Any = (3.0,)
    inner = Bag(1.0, few, (), None, corner, [], None)
    box = Box([None, Label("c", 2)], (inner,))
    numbers: Any = listed(4.0, 5.0)
    whole = Bag(torch.tensor(6.0), numbers, ((7, None), (8, 9.0)), [[1], []], corner, [inner], box)
    result = same(whole)
    assert walks  # how many depends on whether a call has compiled
    assert [float(x) for x in result.numbers] == [4.0, 5.0]
    assert result.bags[0].numbers[0] == 3.0
    assert result.pairs[1] == (8, 9.0)
    assert result.box is not None
    assert result.box.inside[0].corner[0] == 2.0
    assert float(same_list([whole, inner])[1].weight) == 1.0


def test_lists_in_more_lists_than_python_nests_loops_are_taken() -> None:
    rows: Any = [1.0]
    for _ in range(20):
        rows = [rows]
    assert depth(Deep(rows)) == 1


@dataclass(frozen=True)
class Link:
    weight: Float
    name: str
    rest: tuple[Chain, Chain | None]


@dataclass(frozen=True)
class End:
    weight: Float


Chain = Link | End


@relay
def chained(chain: Chain) -> Chain:
    return chain


@relay
def weight(chain: Chain) -> Float:
    match chain:
        case Link(weight, _, _):
            return weight
        case End(weight):
            return weight


def chain_of(length: int, weight: Any) -> Any:
    """Return a chain whose links are in two places each."""
    found: Any = End(weight())
    for _ in range(length):
        found = Link(weight(), "link", (found, found))
    return found


@pytest.mark.parametrize("weight_of", [lambda: 0.5, lambda: torch.tensor(0.5)])
def test_deep_instances_need_no_careful_walk(walks: list[Plain], weight_of: Any) -> None:
    chain = chain_of(1050, weight_of)
    assert float(weight(chain)) == 0.5
    result: Any = chained(chain)
    assert len({id(tensor) for walk in walks for tensor in walk.tensors}) in {0, 1051}
    for _ in range(1049):
        assert result.rest[0] is result.rest[1]
        result = result.rest[0]
    assert float(result.rest[0].weight) == 0.5


@pytest.mark.parametrize("length", [1, 99, 100, 101, 350])
def test_instances_that_contain_themselves_are_refused_at_any_depth(length: int) -> None:
    last = chain_of(0, lambda: 0.5)
    first = Link(0.5, "first", (last, last))
    chain: Any = first
    for _ in range(length):
        chain = Link(0.5, "link", (chain, None))
    object.__setattr__(first, "rest", (chain, None))
    with pytest.raises(RunError, match="contains itself"):
        weight(chain)
