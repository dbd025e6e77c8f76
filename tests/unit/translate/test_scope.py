"""Captured names: looked up late, guarded, and never stale."""

from __future__ import annotations

import enum
import types
from dataclasses import dataclass
from typing import Any

import pytest

from pyrelay import Float, relay
from pyrelay.translate.program.guards import Check
from pyrelay.translate.source.scope import MISSING, Guard, Scope, is_data, nearest
from pyrelay.translate.translator import translate

RATE = 0.5
SIZES = (1, (2, True))


class Mode(enum.Enum):
    SLOW = 1
    FAST = 2


MODE = Mode.SLOW


@relay
def scaled(x: Float) -> Float:
    return x * RATE if MODE == Mode.SLOW else x


def test_a_guard_holds_until_the_captured_value_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    guards = translate(scaled.__relay__).guards
    assert {g.name for g in guards} >= {"RATE", "MODE", "Mode"}
    assert all(g.holds() for g in guards)
    monkeypatch.setitem(globals(), "RATE", float("0.5"))
    assert all(g.holds() for g in guards)
    monkeypatch.setitem(globals(), "RATE", 2)
    assert [g.name for g in guards if not g.holds()] == ["RATE"]


def test_a_changed_global_is_seen_at_the_next_call(monkeypatch: pytest.MonkeyPatch) -> None:
    assert scaled(4.0) == 2.0
    monkeypatch.setitem(globals(), "RATE", 0.25)
    assert scaled(4.0) == 1.0
    monkeypatch.setitem(globals(), "MODE", Mode.FAST)
    assert scaled(4.0) == 4.0


def test_a_changed_cell_is_seen_at_the_next_call() -> None:
    factor = 2.0

    @relay
    def times(x: Float) -> Float:
        return x * factor

    assert times(3.0) == 6.0
    factor = 5.0
    assert times(3.0) == 15.0


def test_names_may_be_defined_later() -> None:
    @relay
    def first(x: Float) -> Float:
        return second(x) + 1.0

    @relay
    def second(x: Float) -> Float:
        return x * 2.0

    assert first(3.0) == 7.0


def test_a_module_attribute_is_guarded() -> None:
    settings = types.ModuleType("settings")
    settings.rate = 2.0

    @relay
    def rated(x: Float) -> Float:
        return x * settings.rate

    assert rated(3.0) == 6.0
    settings.rate = 4.0
    assert rated(3.0) == 12.0


def test_a_builtin_that_is_shadowed_later_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    scope = Scope(test_names_may_be_defined_later)
    assert scope.find("max") is max
    assert all(g.holds() for g in scope.guards)
    monkeypatch.setitem(globals(), "max", min)
    assert not all(g.holds() for g in scope.guards)


def test_an_empty_cell_has_no_value() -> None:
    def outer():
        def inner():
            return later

        scope = Scope(inner)
        assert scope.find("later") is MISSING
        later = 1
        assert scope.find("later") == 1

    outer()


@dataclass(frozen=True)
class Frozen:
    rate: float
    more: object = ()


@dataclass
class Open:
    rate: float


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1, True),
        (SIZES, True),
        (Mode.FAST, True),
        (Frozen(0.5, Frozen(1.0)), True),
        (Frozen(0.5, []), False),
        (Open(0.5), False),
        ([1], False),
        (object(), False),
    ],
)
def test_only_what_can_never_change_is_data(value: object, expected: bool) -> None:
    assert is_data(value) is expected


def test_a_near_miss_is_offered_and_a_far_one_is_not() -> None:
    assert nearest("heigth", ["width", "height"]) == "height"
    assert nearest("unheard_of", ["width", "height"]) is None


def test_a_checker_tells_a_change_from_an_equal_value() -> None:
    names: dict[str, Any] = {"rate": 1000.5, "mode": MODE}
    guards = [Guard(n, names, v) for n, v in names.items()]
    unbound = Guard("later", names, MISSING)
    holds = Check([*guards, unbound])
    assert holds()
    names["rate"] = float("1000.5")
    assert holds()
    names["later"] = None
    assert not holds()
    del names["later"]
    names["rate"] = 2.0
    assert not holds()


def test_a_checker_sees_closure_cells() -> None:
    cell = types.CellType(1)
    holds = Check([Guard("value", cell, 1)])
    assert holds()
    cell.cell_contents = 2
    assert not holds()
    del cell.cell_contents
    assert not holds()
