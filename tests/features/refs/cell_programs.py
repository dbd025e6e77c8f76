"""Programs with cells in the fields of data; as plain Python they run on cells of scripts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from pyrelay import Float, Int, Ref, relay
from pyrelay.prelude import List

T = TypeVar("T")


@dataclass(frozen=True)
class Counter:
    count: Ref[Int]
    step: int


@dataclass(frozen=True)
class Off:
    pass


@dataclass(frozen=True)
class On:
    level: Ref[Float]
    gain: Float


Switch = Off | On


@dataclass(frozen=True)
class Point:
    x: Float
    y: Float


@dataclass(frozen=True)
class Box(Generic[T]):
    cell: Ref[T]


@dataclass(frozen=True)
class Linked:
    value: Ref[Float]
    rest: Linked | None


@relay
def constructed(x: Float) -> Float:
    s = On(relay.ref(x), 2.0)
    s.level.value = s.level.value * 3.0
    s.level.value += x
    return s.level.value * s.gain


def raised(s: Switch, by: Float) -> Float:
    match s:
        case On(level, gain):
            level.value = level.value + by
            return level.value * gain
        case Off():
            return 0.0 * by


raised = relay(raised)


@relay
def matched(x: Float) -> Float:
    s = On(relay.ref(x), 2.0)
    first = raised(s, x)
    second = raised(s, x)
    return first * second + raised(Off(), x) + s.level.value


@relay
def counted(n: Int) -> Int:
    c = Counter(relay.ref(n), 3)
    for _ in range(4):
        c.count.value += c.step
    return c.count.value


@relay
def closed_over(x: Float) -> Float:
    s = On(relay.ref(x), 2.0)

    def add(y: Float) -> Float:
        s.level.value = s.level.value + y * s.gain
        return s.level.value

    return add(x) * add(3.0 * x)


@relay
def boxed_data(x: Float) -> Float:
    b = Box(relay.ref(Point(x, 1.0)))
    for _ in range(3):
        p = b.cell.value
        b.cell.value = Point(p.y * x, p.x + x)
    return b.cell.value.x * b.cell.value.y


@relay
def in_a_list(x: Float) -> Float:
    cells = [On(relay.ref(x), 1.0), Off(), On(relay.ref(2.0 * x), 0.5)]
    for c in cells:
        if isinstance(c, On):
            c.level.value = c.level.value * x
    total = 0.0
    for c in cells:
        total += raised(c, 1.0)
    return total


@relay
def shared(x: Float) -> Float:
    cell = relay.ref(x)
    a = On(cell, 1.0)
    b = On(cell, 3.0)
    a.level.value = a.level.value * x
    b.level.value = b.level.value + 1.0
    return a.level.value * b.gain


def doubled(link: Linked) -> Float:
    link.value.value = link.value.value * 2.0
    if link.rest is None:
        return link.value.value
    return link.value.value * doubled(link.rest)


doubled = relay(doubled)


@relay
def recursive(x: Float) -> Float:
    last = Linked(relay.ref(x), None)
    whole = Linked(relay.ref(x + 1.0), Linked(relay.ref(3.0), last))
    found = doubled(whole)
    return found + last.value.value


@relay
def swapped(x: Float) -> Float:
    a = Box(relay.ref(x))
    b = Box(relay.ref(x * x))
    a.cell.value, b.cell.value = b.cell.value, a.cell.value
    return a.cell.value - 3.0 * b.cell.value


@relay
def replaced_cell(x: Float) -> Float:
    outer = relay.ref(On(relay.ref(x), 1.0))
    kept = outer.value
    outer.value = On(relay.ref(5.0 * x), 2.0)
    now = outer.value
    assert isinstance(kept, On)
    assert isinstance(now, On)
    kept.level.value = kept.level.value + 1.0
    return kept.level.value * now.level.value * now.gain


@relay
def takes(b: Box[Float], c: Counter, x: Float) -> Float:
    old = b.cell.value
    b.cell.value = x * old
    c.count.value = c.count.value + c.step
    return old


@relay
def gives(x: Float) -> tuple[Switch, Box[Int]]:
    return On(relay.ref(x * 2.0), x), Box(relay.ref(3))


@relay
def tally(switches: List[Switch]) -> Float:
    total = 0.0
    for s in switches:
        total += raised(s, 1.0)
    return total
