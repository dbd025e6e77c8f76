"""Programs in which tests and assertions narrow the types of names and of their parts."""

from __future__ import annotations

from dataclasses import dataclass

from pyrelay import Dim, Float, Ref, Tensor, relay
from pyrelay.prelude import List

R = Dim("R")


@dataclass(frozen=True)
class Leaf:
    value: Float


@dataclass(frozen=True)
class Node:
    left: Tree
    right: Tree


@dataclass(frozen=True)
class Empty:
    pass


Tree = Leaf | Node | Empty


@dataclass(frozen=True)
class Record:
    tree: Tree
    maybe: Float | None
    pair: tuple[Tree, Float]


@dataclass(frozen=True)
class Outer:
    inner: Record


@dataclass(frozen=True)
class Rows:
    rows: Tensor[Float, (R, 2)]


@dataclass(frozen=True)
class NoRows:
    pass


Table = Rows | NoRows


@relay
def doubled(x: Float) -> Tree:
    return Node(Leaf(x), Leaf(2.0 * x))


@relay
def field_of_a_record(r: Record) -> Float:
    if isinstance(r.tree, Leaf):
        return r.tree.value
    if r.maybe is not None and r.maybe > 0.0:
        return r.maybe * 2.0
    return 0.0


@relay
def field_of_a_field(o: Outer) -> Float:
    if isinstance(o.inner.tree, Node) and isinstance(o.inner.tree.left, Leaf):
        return o.inner.tree.left.value
    return 0.5


@relay
def place_in_a_tuple(r: Record) -> Float:
    p = r.pair
    if isinstance(p[0], Leaf):
        return p[0].value + p[1]
    return p[1]


@relay
def place_in_a_list(ts: List[Tree]) -> Float:
    if len(ts) > 0 and isinstance(ts[0], Leaf):
        return ts[0].value
    return 1.0


@relay
def results_of_calls(x: Float) -> Float:
    t = doubled(x)
    if isinstance(t, Node):
        left = t.left
        if isinstance(left, Leaf):
            return left.value * 3.0
    return 0.0


@relay
def constructed(x: Float) -> Float:
    t = Node(Leaf(x), Empty())
    other = Leaf(3.0 * x)
    inner = t.left
    return other.value + inner.value if isinstance(inner, Leaf) else 0.0


@relay
def rebuilt(x: Float) -> Float:
    t = Leaf(x)
    first = t.value
    for _ in range(3):
        if isinstance(t, Leaf):
            t = Leaf(t.value * 2.0)
    return first + (t.value if isinstance(t, Leaf) else 0.0)


@relay
def closure(r: Record) -> Float:
    def value(each, other):
        return each.tree.value if isinstance(each.tree, Leaf) else other

    return value(r, 1.0) + value(Record(Leaf(2.0), None, (Empty(), 1.0)), 2.0)


@relay
def matched_field(r: Record) -> Float:
    match r.tree:
        case Leaf():
            return r.tree.value
        case Node():
            return matched_field(Record(r.tree.left, None, r.pair))
        case _:
            return 7.0


@relay
def optional_of_a_union(t: Tree | None) -> Float:
    if isinstance(t, Leaf):
        return t.value
    if isinstance(t, Node):
        return 1.0
    return 2.0


@relay
def asserted(t: Tree) -> Float:
    assert isinstance(t, Leaf)
    return t.value


@relay
def asserted_twice(t: Tree) -> Float:
    assert isinstance(t, Node), "no node"
    assert isinstance(t.left, Leaf), f"no leaf beside {1.0}"
    return t.left.value


@relay
def asserted_with_more(r: Record) -> Float:
    assert isinstance(r.tree, Leaf) and r.tree.value > 1.0, "too small"  # noqa: PT018  the point
    return r.tree.value


@relay
def asserted_there(x: Float | None) -> Float:
    assert x is not None
    return x * x


@relay
def asserted_field_there(r: Record) -> Float:
    assert r.maybe is not None, "nothing"
    return r.maybe + 1.0


@relay
def asserted_not(t: Tree) -> Float:
    assert not isinstance(t, (Node, Empty))
    return t.value


@relay
def asserted_several(t: Tree) -> Float:
    assert isinstance(t, (Node, Leaf))
    if isinstance(t, Node):
        return 1.0
    return t.value


@relay
def asserted_after_a_loop(t: Tree) -> Float:
    while isinstance(t, Node):
        t = t.left
    assert isinstance(t, Leaf)
    return t.value


@relay
def asserted_in_a_branch(t: Tree, x: Float) -> Float:
    found = x
    if x > 0.0:
        assert isinstance(t, Leaf)
        found = found * t.value
    return found


@relay
def asserted_in_a_loop(ts: List[Tree]) -> Float:
    total = 0.0
    for t in ts:
        assert isinstance(t, Leaf)
        total += t.value
    return total


@relay
def asserted_size(t: Table) -> Float:
    assert isinstance(t, Rows)
    return relay.sum(t.rows @ relay.transpose(t.rows, 0, 1))


@relay
def asserted_of_a_call(x: Float) -> Float:
    assert isinstance(doubled(x), Node)
    return x


@relay
def rebound_after_a_test(r: Record) -> Float:
    if isinstance(r.tree, Leaf):
        value = r.tree.value
        r = Record(Node(Empty(), Empty()), None, r.pair)
        return value if isinstance(r.tree, Leaf) else 2.0 * value
    return 0.0


@relay
def content_of_a_cell(c: Ref[Tree]) -> Float:
    t = c.value
    if isinstance(t, Leaf):
        c.value = Empty()
        return t.value
    return 0.0


@relay
def assigned_on_both_arms(x: Float) -> Float:
    y = 1.0
    if x > 2.0:
        t = Leaf(x)
        y = 2.0
    else:
        t = Leaf(2.0 * x)
    return t.value * 3.0 + y


@relay
def assigned_by_an_expression(x: Float) -> Float:
    t = Leaf(x) if x > 2.0 else Leaf(2.0 * x) if x > 1.5 else Leaf(4.0 * x)
    return t.value * 3.0


@relay
def narrowed_on_both_arms(t: Tree) -> Float:
    scale = 1.0
    if scale > 0.0 and isinstance(t, Node):
        t = t.left
        if not isinstance(t, Leaf):
            return -1.0
    else:
        assert isinstance(t, Leaf)
        scale = 2.0
    return t.value * scale


@relay
def tested_on_both_arms(r: Record) -> Float:
    scale = 3.0
    tree = r.tree
    if r.pair[1] > 0.0:
        if not isinstance(tree, Leaf):
            raise ValueError("no leaf")
        scale = 2.0
    else:
        assert isinstance(tree, Leaf)
    return tree.value * scale


@relay
def joined_by_match(t: Tree, flag: bool = True) -> Float:
    match t:
        case Leaf(x):
            u = Node(t, Leaf(x))
        case Node(left, _):
            u = Node(left, left)
        case Empty():
            u = Node(Empty(), Empty())
    left = u.left
    if isinstance(left, Empty):
        return 0.5
    if not isinstance(left, Leaf):
        return 0.25
    return left.value + 0.0 if flag else 1.0


@relay
def after_a_refusal(t: Tree) -> Float:
    if not isinstance(t, Leaf):
        return 7.0
    if t.value > 2.0:
        return 8.0
    return t.value


@relay
def after_a_raise(t: Tree) -> Float:
    if not isinstance(t, (Leaf, Empty)):
        raise TypeError("a node")
    if isinstance(t, Empty):
        return 0.0
    return t.value


@relay
def after_a_loop(t: Tree) -> Float:
    depth = 0.0
    while isinstance(t, Node):
        t = t.left
        depth += 1.0
    if isinstance(t, Empty):
        return -depth
    return t.value + depth


@relay
def excluded_on_both_arms(t: Tree) -> Float:
    if isinstance(t, Node):
        t = t.left
        if isinstance(t, (Node, Empty)):
            return 1.0
        bonus = 1.0
    elif isinstance(t, Empty):
        return 2.0
    else:
        bonus = 4.0
    match t:
        case Leaf(value):
            return value + bonus


@relay
def sizes_of_both(t: Table, flag: bool = True) -> Float:
    if flag:
        if isinstance(t, NoRows):
            return 0.0
        k = 1.0
    else:
        assert isinstance(t, Rows)
        k = 2.0
    return (t.rows @ t.rows.T).sum() * k


@relay
def learnt_of_a_part(r: Record) -> Float:
    if r.pair[1] > 0.0:
        if not isinstance(r.tree, Leaf):
            return 1.0
        k = 2.0
    else:
        assert isinstance(r.tree, Leaf)
        k = 3.0
    match r.tree:
        case Leaf(v):
            return v * k


@relay
def told_by_a_guard(r: Record) -> Float:
    match r:
        case Record(tree, x) if x is not None and isinstance(tree, Leaf) and x > 1.0:
            return x * tree.value
        case Record(Leaf() | Empty(), x) if x is not None:
            return x + 1.0
        case Record(t, x) if not isinstance(t, Leaf) and x is None:
            return 2.0
        case Record(t, _) if isinstance(t, Node):
            return 3.0
        case _:
            return 4.0


@relay
def tested_for_a_union(t: Tree) -> Float:
    if isinstance(t, Leaf | Empty):
        return 1.0
    return 2.0 if isinstance(t.left, Empty | Node) else 3.0
