"""Programs with `match` and tests of classes: the same text is run by Python and compiled.

Every function whose name begins with `run_` is one program of two numbers, with `link_` one of a
chain or None.
"""

# ruff: noqa: C901, RET505

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar, assert_never

from pyrelay import relay
from pyrelay.prelude import List

T = TypeVar("T")


@dataclass(frozen=True)
class Leaf(Generic[T]):
    value: T


@dataclass(frozen=True)
class Node(Generic[T]):
    left: Tree[T]
    right: Tree[T]
    weight: float


Tree: TypeAlias = Leaf[T] | Node[T]


@dataclass(frozen=True)
class Point:
    x: float
    y: float


@dataclass(frozen=True)
class Circle:
    centre: Point
    radius: float


@dataclass(frozen=True)
class Square:
    corner: Point
    side: float


@dataclass(frozen=True)
class Empty:
    pass


Shape = Circle | Square | Empty


@dataclass(frozen=True)
class Link:
    head: float
    tail: Link | None


class Colour(enum.IntEnum):
    RED = 0
    GREEN = 1
    BLUE = 2


class Limits:
    low = 1
    high = 3


@relay
def tree(n: int, x: float) -> Tree[float]:
    if n <= 0:
        return Leaf(x)
    if n == 2:
        return Node(Leaf(x), Leaf(x + 1.0), 0.5)
    return Node(tree(n - 1, x * 2.0), tree(n - 2, x - 1.0), x)


@relay
def shape(n: int, x: float) -> Shape:
    if n % 3 == 0:
        return Circle(Point(x, 1.0), 2.0)
    if n % 3 == 1:
        return Square(Point(x, x), x)
    return Empty()


@relay
def total(t: Tree[float]) -> float:
    match t:
        case Leaf(v):
            return v
        case Node(l, r, w):
            return w + total(l) * 2.0 + total(r)


@relay
def run_recursion(n: int, x: float) -> float:
    return total(tree(n, x))


@relay
def run_keywords(n: int, x: float) -> float:
    match tree(n, x):
        case Node(weight=w, left=Leaf(value=v)):
            return w * 100.0 + v
        case Node(right=Node(weight=w)):
            return w + 7.0
        case Node():
            return -1.0
        case Leaf(value=v):
            return v


@relay
def run_alternatives(n: int, x: float) -> float:
    t = tree(n, x)
    result = 0.0
    match t:
        case Leaf(v) | Node(Leaf(v), _, _) | Node(Node(Leaf(v), _, _), _, _) if v > 0.0:
            result = v * 10.0
        case Node(Leaf(v) | Node(_, Leaf(v), _), Leaf(w) | Node(Leaf(w), _, _), _):
            result = v - w
        case _:
            result = total(t)
    return result


@relay
def run_numbers(n: int, x: float) -> float:
    y = x
    match n:
        case 0 | -1:
            y = 1.5
        case Limits.low:
            y = y + 1.0
        case Limits.high | 5:
            y = y * 3.0
        case k if k > 5:
            y = y + k
        case _:
            y = -y
    match y:
        case 1.5:
            return 0.0
        case 2:
            return 100.0
        case -2.5:
            return 200.0
        case z:
            return z


@relay
def run_enums(n: int, x: float) -> float:
    match n:
        case Colour.RED:
            return x
        case Colour.GREEN | Colour.BLUE:
            return x * 2.0
        case _:
            return 0.0


@relay
def run_tuples(n: int, x: float) -> float:
    match n, (n > 2, x):
        case 0, (True, _):
            return 1.0
        case 0, (False, y):
            return y
        case 3 | 4 as k, (b, y) if not b or y > 0.0:
            return y + k
        case (k, (True, y)):
            return y - k
        case _, pair:
            a, b = pair
            return b if a else -b


@relay
def run_both(n: int, x: float) -> float:
    match shape(n, x), shape(n + 1, x):
        case Circle(Point(a, b), r), Square(side=s):
            return a + b + r + s
        case Square(Point(a, b), _), Empty():
            return a - b
        case Empty() as e, other:
            return area(e) + area(other)
        case one, _:
            return area(one)


@relay
def area(s: Shape) -> float:
    if isinstance(s, Circle):
        return s.radius * s.radius * 3.0
    if not isinstance(s, Square):
        return 0.0
    return s.side * s.side


@relay
def run_tests(n: int, x: float) -> float:
    s = shape(n, x)
    t = tree(n, x)
    result = area(s)
    if isinstance(s, Circle) and s.radius > 1.0 and s.radius < 10.0 * x:
        result = result + s.radius
    elif isinstance(s, (Square, Empty)) or n > 3:
        result = result - 1.0
    else:
        result = 50.0
    if isinstance(t, Node) and isinstance(t.left, Node) and isinstance(t.left.left, Leaf):
        result = result + t.left.left.value * t.weight
    small = isinstance(s, Empty) or (isinstance(s, Square) and s.side < 0.0)
    found = t.value if isinstance(t, Leaf) else t.weight
    return result + found + (1000.0 if small else 0.0)


@relay
def run_never(n: int, x: float) -> float:
    s = shape(n, x)
    if isinstance(s, Circle):
        return 1.0
    elif isinstance(s, (Square, Empty)):
        pass
    else:
        assert_never(s)
    match s:
        case Square(side=a):
            return a
        case Circle() | Empty():
            return 2.0
        case _:
            assert_never(s)


@relay
def run_subject(n: int, x: float) -> float:
    s = shape(n, x)
    match s:
        case Circle():
            return s.radius
        case Square(corner=Point(0.0, _)):
            return s.side
        case Square() as q:
            return q.side * 2.0 + s.side
        case rest:
            return 3.0 if isinstance(rest, Empty) else 4.0


@relay
def run_loops(n: int, x: float) -> float:
    result = 0.0
    for i in range(6):
        match shape(i + n, x):
            case Empty():
                continue
            case Circle(Point(a, _), _) if a > 2.0:
                result = result + a
            case Circle(radius=r):
                for j in range(i):
                    match j, r:
                        case 2, _:
                            break
                        case _, y if y > 100.0:
                            return y
                        case k, y:
                            result = result + k * y
            case Square(_, side):
                if side > 2.0:
                    break
                result = result - side
        result = result * 0.5
    return result


@relay
def run_walk(n: int, x: float) -> float:
    t = tree(n, x)
    depth = 0
    while isinstance(t, Node) and depth < 10:
        depth += 1
        match t:
            case Node(weight=w) if w > 3.0:
                t = t.right
            case _:
                t = t.left
    match t:
        case Leaf(v):
            value = v
        case Node():
            value = -1.0
    return value + depth


@relay
def run_after(n: int, x: float) -> float:
    match tree(n, x):
        case Leaf(v):
            kind = 1
            found = v
        case Node(_, Leaf(found), w) if w > 0.0:
            kind = 2
        case Node(weight=found):
            kind = 3
    match kind:
        case 1:
            if found > 1.0:
                return found
            found = found + 1.0
        case 2:
            return -found
        case _:
            pass
    return found * 10.0 + kind


@relay
def run_closures(n: int, x: float) -> float:
    def pick(y: float) -> float:
        match shape(n, y):
            case Circle(radius=r):
                return r + x
            case Square(side=s):
                return s
            case Empty():
                return y

    match tree(n, x):
        case Leaf(v):
            add = lambda y: y + v  # noqa: E731
        case Node(weight=w):
            add = lambda y: y * w  # noqa: E731
    return add(pick(x)) + pick(2.0)


@relay
def summed(c: Link | None) -> float:
    match c:
        case None:
            return 0.0
        case Link(h, t):
            return h + summed(t)


@relay
def link_cases(c: Link | None) -> float:
    match c:
        case Link(a, Link(b, None)):
            return a - b
        case Link(a, Link(tail=Link(b, _)) as inner) if b > 0.0:
            return a * b + inner.head
        case None:
            return 50.0
        case Link(a, _) as rest:
            return summed(rest.tail) + a


@relay
def link_tests(c: Link | None) -> float:
    total = 0.0
    d = c
    while d is not None:
        match d:
            case Link(h, t):
                total = total * 2.0 + h
                d = t
    if c is None or total < 0.0:
        total = total + 100.0
    if c is not None and isinstance(c, Link) and c.tail is not None:
        total = total - c.head
    found = 1.0 if c is None else total
    match c:
        case None:
            pass
        case x:
            match x:
                case Link(h, _):
                    found = found + h
    return found


@relay
def added(xs: List[float]) -> float:
    match xs:
        case []:
            return 0.0
        case [x]:
            return x * 10.0
        case [x, y, *rest]:
            return x - y + added(rest)


@relay
def run_lists(n: int, x: float) -> float:
    xs = [x * i for i in range(n)]
    total = added(xs)
    match xs, n:
        case [_, a, *_], 3 | 4:
            return total + a
        case ([a, *rest], k) if k > 4:
            return total + a + added(rest)
        case (([] | [_]), _):
            return total - 1.0
        case _:
            return -total


@relay
def chain(n: int, x: float) -> Link | None:
    if n <= 0:
        return None
    return Link(x, chain(n - 1, x - 1.0))


@relay
def run_fields(n: int, x: float) -> float:
    c = chain(n, x)
    s = shape(n, x)
    total = 0.0
    if c is not None and c.tail is not None:
        total = c.head - c.tail.head + summed(c.tail)
    if isinstance(s, Circle) and s.centre.x < 2.0:
        total = total + s.centre.y
    while c is not None:
        total = total * 0.5 + c.head
        c = c.tail
    match s:
        case Circle(p, _) | Square(p, _):
            return total + p.x - p.y
        case _:
            return total


@relay
def run_left_over(n: int, x: float) -> float:
    t = tree(n, x)
    if isinstance(t, Node):
        return t.weight + (t.left.value if isinstance(t.left, Leaf) else t.left.weight)
    return t.value


@relay
def with_a_case_never_reached(t: Tree[float]) -> float:
    match t:
        case Leaf(v):
            return v
        case Leaf(1.0):
            return 1.0
        case Node(weight=w):
            return w
