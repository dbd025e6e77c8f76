"""What a match covers: Relay's own cases, then every small match against all its values."""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from pyrelay.analysis.coverage import BUDGET, LISTED, Coverage, coverage
from pyrelay.diagnostics.source import NOWHERE
from pyrelay.infer import infer
from pyrelay.infer.explanations.cases import case_text
from pyrelay.ir.expr import (
    BindPattern,
    Clause,
    Constant,
    ConstructorPattern,
    LiteralPattern,
    Match,
    Pattern,
    TuplePattern,
    Var,
    Wildcard,
)
from pyrelay.ir.module import AdtDef, ConstructorDef
from pyrelay.ir.traverse import post_order
from pyrelay.ir.types import BOOL, INT, AdtType, TupleType, Type
from pyrelay.text.parser import parse_module
from tests.steps import calls_of

DATA = """
    type List[A] { Nil, Cons(A, List[A]) }
    type Box[A] { Box(A) }
    type Colour { Red, Green, Blue(int64) }
    type Many { A, B, C, D, E, F, G, H }
    type Void {}
"""
ANY = Wildcard(span=NOWHERE)


def covered(clauses: str, ty: str) -> Coverage:
    """Return what clauses cover of a type."""
    text = f"{DATA} def @main(%x: {ty}) -> int64 {{ match? (%x) {{ {clauses} }} }}"
    module = infer(parse_module(text))
    (match,) = (n for n in post_order(module.functions["main"]) if isinstance(n, Match))
    return coverage(match, module.adts)


def missing(clauses: str, ty: str) -> set[str]:
    """Return the cases that clauses leave out."""
    return {case_text(p, is_python=False) for p in covered(clauses, ty).missing}


LIST, BOXES = "List[int64]", "List[Box[int64]]"


@pytest.mark.parametrize(
    ("clauses", "ty", "left_out"),
    [
        ("_ => 0", LIST, set[str]()),
        ("%x => 0", LIST, set[str]()),
        ("Box(Box(_)) => 0", "Box[Box[int64]]", set[str]()),
        ("Cons(_, Cons(_, _)) => 0", LIST, {"Nil", "Cons(_, Nil)"}),
        (
            "Cons(_, Nil) => 1, Cons(_, Cons(_, Nil)) => 2, Nil => 0, Cons(_, Cons(_, _)) => 3",
            LIST,
            set[str](),
        ),
        (
            "Cons(_, Nil) => 1, Nil => 0, Cons(_, Cons(_, Cons(_, _))) => 3",
            LIST,
            {"Cons(_, Cons(_, Nil))"},
        ),
        ("Box(Cons(_, _)) => 0", f"Box[{LIST}]", {"Box(Nil)"}),
        ("Cons(_, _) => 0", BOXES, {"Nil"}),
        (
            "Nil => 0, Cons(Box(%y), Nil) => 1, Cons(Box(_), Cons(Box(_), Nil)) => 2,"
            "Cons(_, Cons(_, Cons(Box(_), _))) => 3, Cons(_, Cons(_, _)) => 4",
            BOXES,
            set[str](),
        ),
        ("(_, %y) => 0", "(int64, bool)", set[str]()),
    ],
)
def test_the_cases_of_relays_own_tests(clauses: str, ty: str, left_out: set[str]) -> None:
    assert missing(clauses, ty) == left_out


def test_a_match_without_clauses_leaves_out_everything() -> None:
    value = Var("x", AdtType("T"), span=NOWHERE)
    constructors = (ConstructorDef("One", ()),)
    for found, left_out in (((), ()), (constructors, (ANY,))):
        adt = AdtDef("T", (), found, NOWHERE)
        texts = [
            case_text(p, is_python=False)
            for p in coverage(Match(value, (), span=NOWHERE), {"T": adt}).missing
        ]
        assert texts == ["_"] * len(left_out)


@pytest.mark.parametrize(
    ("clauses", "ty", "left_out"),
    [
        ("True => 1", "bool", {"False"}),
        ("0 => 1, 1 => 2, 7 => 3", "int64", {"2"}),
        ("0.5 => 1, 0.0 => 2", "float32", {"1.0"}),
        ('"" => 1, "b" => 2', "str", {"'a'"}),
        ("Red => 1, Green if True => 2, Blue(0) => 3", "Colour", {"Green", "Blue(1)"}),
        ("(True, _) => 1, (_, Red) => 2", "(bool, Colour)", {"(False, Green)", "(False, Blue(_))"}),
        ("(_, ((True, %a) as %b)) => 1", "(int64, (bool, bool))", {"(_, (False, _))"}),
        ("() => 1", "()", set[str]()),
    ],
)
def test_a_case_that_is_missing_is_concrete(clauses: str, ty: str, left_out: set[str]) -> None:
    assert missing(clauses, ty) == left_out


def test_a_long_list_of_missing_cases_is_cut() -> None:
    found = covered("A => 1", "Many").missing
    assert [case_text(p, is_python=False) for p in found] == ["B", "C", "D", "E", "F", "G"]
    assert len(found) == LISTED + 1


def test_python_writes_a_case_without_fields_as_a_call() -> None:
    inner = ConstructorPattern("T", "Leaf", (), span=NOWHERE)
    pattern = ConstructorPattern(
        "T", "Node", (inner, TuplePattern((ANY,), span=NOWHERE)), span=ANY.span
    )
    assert case_text(pattern, is_python=True) == "Node(Leaf(), (_,))"
    assert case_text(pattern, is_python=False) == "Node(Leaf, (_,))"


@pytest.mark.parametrize(
    ("clauses", "ty", "found"),
    [
        ("_ => 1, Red => 2", "Colour", {1: (0,)}),
        ("True => 1, False => 2, _ => 3", "bool", {2: (0, 1)}),
        ("1 => 1, 2 => 1, 1 => 2, _ => 3", "int64", {2: (0,)}),
        ("1 if True => 1, 1 => 2, _ => 3", "int64", {}),
        ("1 => 1, 1 if True => 2, _ => 3", "int64", {1: (0,)}),
        ("Cons(_, Nil) => 1, Cons(1, Nil) => 2, _ => 3", LIST, {1: (0,)}),
        ("%x if True => 1, Nil => 2, _ => 3", LIST, {}),
        ("(Red, _) => 1, (_, Red) => 2, (Red, Red) => 3, _ => 4", "(Colour, Colour)", {2: (0,)}),
    ],
)
def test_a_clause_that_never_wins_is_found_with_those_that_do(
    clauses: str, ty: str, found: dict[int, tuple[int, ...]]
) -> None:
    assert covered(clauses, ty).unreachable == found


# Every small match.

TREE = AdtType("Tree")
ADTS: Mapping[str, AdtDef] = {
    "Tree": AdtDef(
        "Tree",
        (),
        (
            ConstructorDef("Leaf", ()),
            ConstructorDef("Mark", (BOOL,)),
            ConstructorDef("Node", (TREE, TREE)),
        ),
        NOWHERE,
    )
}
PAIR = TupleType((TREE, BOOL, INT))
Value = tuple[Any, ...] | bool | int


def values(ty: Type, depth: int) -> list[Value]:
    """Return all values of a type whose trees nest at most so deep; ints stand for more."""
    match ty:
        case TupleType(fields):
            return list(itertools.product(*(values(f, depth) for f in fields)))
        case AdtType(name):
            found: list[Value] = []
            for constructor in ADTS[name].constructors:
                if depth > 0 or constructor.name != "Node":
                    parts = [values(f, depth - 1) for f in constructor.fields]
                    found += [(constructor.name, *fields) for fields in itertools.product(*parts)]
            return found
        case _:
            return [True, False] if ty == BOOL else [0, 1, 2, 3]


def matches(pattern: Pattern, value: Any) -> bool:
    """Return whether a pattern matches a value, by what patterns mean."""
    match pattern:
        case BindPattern(inner=inner):
            return inner is None or matches(inner, value)
        case ConstructorPattern(name=name, fields=fields):
            return value[0] == name and all(map(matches, fields, value[1:]))
        case TuplePattern(fields):
            return all(map(matches, fields, value))
        case LiteralPattern(literal):
            return value == literal
        case Wildcard():
            return True


def random_pattern(draw: random.Random, ty: Type, depth: int) -> Pattern:
    """Return a pattern for a type that nests at most so deep."""
    if draw.random() < 0.3:
        return draw.choice([ANY, BindPattern(Var("x", ty, span=NOWHERE), span=NOWHERE)])
    match ty:
        case TupleType(fields):
            return TuplePattern(tuple(random_pattern(draw, f, depth) for f in fields), span=NOWHERE)
        case AdtType(name):
            constructors = ADTS[name].constructors
            found = draw.choice(constructors if depth else constructors[:2])
            parts = tuple(random_pattern(draw, f, depth - 1) for f in found.fields)
            made: Pattern = ConstructorPattern(name, found.name, parts, span=NOWHERE)
        case _:
            literal = draw.choice([True, False]) if ty == BOOL else draw.choice([0, 1, 2])
            made = LiteralPattern(literal, span=NOWHERE)
    if draw.random() < 0.2:
        return BindPattern(Var("y", ty, span=NOWHERE), made, span=NOWHERE)
    return made


def winner(clauses: Sequence[Clause], value: Value) -> int | None:
    """Return the first unguarded clause that matches a value."""
    for place, clause in enumerate(clauses):
        if clause.guard is None and matches(clause.pattern, value):
            return place
    return None


def can_win(clauses: Sequence[Clause], place: int, every: Sequence[Value]) -> bool:
    """Return whether a clause matches a value that no unguarded clause before it does."""
    pattern = clauses[place].pattern
    return any(matches(pattern, v) and winner(clauses[:place], v) is None for v in every)


@pytest.mark.parametrize(
    ("ty", "depth"),
    [(TREE, 1), (PAIR, 1), (TupleType((TREE, TREE)), 0)],
    ids=["tree", "mixed", "two"],
)
@pytest.mark.parametrize("seed", range(60))
def test_every_answer_is_right_for_all_values(ty: Type, depth: int, seed: int) -> None:
    draw = random.Random(seed)
    every = values(ty, depth + 1)
    guard = Constant(True, BOOL, span=NOWHERE)
    clauses = tuple(
        Clause(random_pattern(draw, ty, depth), guard, guard if draw.random() < 0.15 else None)
        for _ in range(draw.randint(1, 8))
    )
    match = Match(Var("v", ty, span=NOWHERE), clauses, span=NOWHERE)
    found = coverage(match, ADTS)
    assert found.is_complete
    wins = [winner(clauses, v) for v in every]
    assert bool(found.missing) == (None in wins)
    for pattern in found.missing:
        assert {w for v, w in zip(every, wins, strict=True) if matches(pattern, v)} == {None}
    expected = {i for i in range(len(clauses)) if not can_win(clauses, i, every)}
    assert set(found.unreachable) == expected


# Sizes.


def numbered(size: int) -> Match:
    """Return a match with one clause for each of many numbers."""
    clauses = [*(Clause(LiteralPattern(n, span=NOWHERE), ANY_BODY) for n in range(size)), REST]
    return Match(NUMBER, tuple(clauses), span=NOWHERE)


def test_the_work_for_thousands_of_clauses_grows_with_their_number() -> None:
    small, large = numbered(1_000), numbered(5_000)
    assert coverage(large, {}) == Coverage((), {})
    assert calls_of(lambda: coverage(large, {})) < 6 * calls_of(lambda: coverage(small, {}))


def test_patterns_nest_as_deep_as_you_like() -> None:
    pattern: Pattern = ANY
    for _ in range(20_000):
        pattern = ConstructorPattern("Tree", "Node", (ANY, pattern), span=NOWHERE)
    found = coverage(
        Match(Var("t", TREE, span=NOWHERE), (Clause(pattern, ANY_BODY),), span=NOWHERE), ADTS
    )
    assert len(found.missing) == LISTED + 1
    texts = [case_text(p, is_python=True) for p in found.missing]
    assert texts[:3] == ["Leaf()", "Mark(_)", "Node(_, Leaf())"]
    assert case_text(pattern, is_python=True).startswith("Node(_, Node(_, Node(")
    assert "..." in case_text(pattern, is_python=True)


def diagonal(size: int) -> Match:
    """Return a match with one clause for each of many flags."""
    rows: list[list[Pattern]] = [[ANY] * size for _ in range(size)]
    for place, row in enumerate(rows):
        row[place] = LiteralPattern(True, span=NOWHERE)
    clauses = (Clause(TuplePattern(tuple(r), span=NOWHERE), ANY_BODY) for r in rows)
    return Match(NUMBER, (*clauses, REST), span=NOWHERE)


def test_clauses_that_each_look_at_another_part_are_no_problem() -> None:
    assert coverage(diagonal(60), {}) == Coverage((), {})


def tangled(rest: Sequence[Clause]) -> Match:
    """Return a match for which the question is an unsatisfiable formula of many variables."""
    draw = random.Random(0)
    clauses: list[Clause] = []
    for _ in range(700):
        row: list[Pattern] = [ANY] * 120
        for place in draw.sample(range(120), 3):
            row[place] = LiteralPattern(draw.random() < 0.5, span=NOWHERE)
        clauses.append(Clause(TuplePattern(tuple(row), span=NOWHERE), ANY_BODY))
    return Match(NUMBER, (*clauses, *rest), span=NOWHERE)


def test_a_question_that_takes_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    match = tangled(())
    monkeypatch.setattr("pyrelay.analysis.coverage.PER_PATTERN", 0)
    found: list[Coverage] = []

    def calls(budget: int) -> int:
        monkeypatch.setattr("pyrelay.analysis.coverage.BUDGET", budget)
        return calls_of(lambda: found.append(coverage(match, {})))

    assert calls(20_000) < 3 * calls(10_000)
    assert not any(each.is_complete or each.unreachable for each in found)
    assert BUDGET <= 1_000_000


ANY_BODY = Constant(0, INT, span=NOWHERE)
REST = Clause(ANY, ANY_BODY)
NUMBER = Var("n", INT, span=NOWHERE)
