"""Lists in definitions, in calls and in results."""

import torch

from pyrelay import Dim, Float, Int, Tensor, prelude, relay
from pyrelay.prelude import Cons, List, Nil, foldl

N = Dim("N")


@relay
def shifted(xs: List[Float], k: Float) -> List[Float]:
    found = [x + k for x in xs]
    found.append(k)
    found += xs[1:]
    return found + xs


@relay
def total(xs: List[Float]) -> Float:
    return foldl(lambda a, b: a + b, 0.0, prelude.map(relay.tanh, xs)) + sum(xs)


@relay
def rows(x: Tensor[Float, (N, 3)]) -> Tensor[Float, (N, 3)]:
    kept = [row for row in reversed([r * 2 for r in x]) if row[0] > 0]
    for place, row in enumerate(kept):
        kept[place] = row * len(kept)
    return relay.stack(kept)


@relay
def nested(xss: List[List[Int]]) -> List[Int]:
    return [sum(xs) for xs in xss if len(xs) > 0]


@relay
def built(x: Float) -> List[Float]:
    return Cons(x, Cons(2 * x, Nil()))


@relay
def length(xs: List[Float]) -> int:
    match xs:
        case Nil():
            return 0
        case Cons(_, tail):
            return 1 + length(tail)


@relay
def largest(xs: List[int], least: int) -> int:
    match xs:
        case Cons(head, tail):
            return largest(tail, max(head, least))
        case Nil():
            return least


@relay
def without(xs: List[int], x: int) -> List[int]:
    if isinstance(xs, Nil):
        return Nil()
    match xs:
        case Cons(head, tail) if head == x:
            return without(tail, x)
        case Cons(head, tail):
            return Cons(head, without(tail, x))
        case Nil():
            return Nil()


print(shifted([1.0], 2.0).to_list(), built(1.0).to_list()[0], without([1, 2], 1).to_list())
print(length([1.0]) + largest([1, 2], 0))
for each in nested([[1]]):
    print(each)

found = shifted([1.0, 2.0], 3.0)
print(len(found), found[0], found[1:], [float(x) for x in found])
print(total([torch.tensor(1.0)]) + 1, nested([[1], []])[0])
print(prelude.zip([1, 2], [3.0, 4.0]), relay.foldl(relay.add, 0.0, [1.0]))
print(relay.grad(total)([1.0, 2.0])[0], rows(torch.ones(2, 3)).shape, built(1.0))
