"""Mistakes that checkers must find: each marked line has one, in both."""

from __future__ import annotations

from definitions import countdown, scalars, stack
from records import Leaf, Node, Tree

from pyrelay import Float, Tensor, relay, relay_model
from pyrelay.prelude import Cons, List


@relay
def rests(xs: List[int]) -> List[int]:
    return xs[1:]


scalars(1.0)  # wrong
scalars(1.0, 2, True, unknown=3)  # wrong
countdown("ten")  # wrong
Node(Leaf(1.0))  # wrong
text: str = countdown(3)  # wrong
countdown.chek()  # wrong
stack.chek()  # wrong
stack()  # wrong


def depth(tree: Tree) -> int:  # wrong
    match tree:
        case Leaf():
            return 0


@relay
def first(xs: List[int]) -> int:  # wrong
    match xs:
        case Cons(head, _):
            return head


first([1]).to_list()  # wrong
rests([1]).to_lists()  # wrong
rests("text")  # wrong


@relay
def right(x: Tensor[Float, (3,)]) -> Float:
    return x.sum()


@relay_model
def also_right(x: Tensor[Float, (3,)]) -> Float:
    return relay.linear(x, out_features=1).sum()
