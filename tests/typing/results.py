"""Lists inside of results: of pairs, optionals, records and lists of pairs.

A checker knows `.to_list()` of a result, of an optional one and of a pair; of what lies deeper,
where `List[T]` is also what a plain list is given for, it knows what a list has: `list(x)` for one.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyrelay import Dim, Float, Tensor, relay
from pyrelay.prelude import List

N = Dim("N")


@dataclass(frozen=True)
class Batch:
    """Lists in fields."""

    rows: List[Tensor[Float, (3,)]]
    names: List[str]
    more: List[Float] | None = None


@relay
def halves(xs: List[Float]) -> tuple[List[Float], List[Float]]:
    return xs[: len(xs) // 2], xs[len(xs) // 2 :]


@relay
def positive(xs: List[Float]) -> List[Float] | None:
    found = [x for x in xs if x > 0]
    return found if len(found) > 0 else None


@relay
def batch(xs: List[Tensor[Float, (3,)]]) -> Batch:
    return Batch([x * 2 for x in xs], ["a"])


@relay
def pairs(xs: List[Float]) -> List[tuple[Float, List[int]]]:
    return [(x, [i]) for i, x in enumerate(xs)]


@relay
def use(b: Batch) -> Float:
    total = 0.0
    for row in b.rows:
        total += row.sum()
    if b.more is not None:
        total += sum(b.more)
    return total + len(b.names)


left, right = halves([1.0, 2.0])
print(left.to_list(), len(right), left[0], left[-1:], [x + 1 for x in right])
print(halves([1.0])[0].to_list(), halves([1.0])[1][0])
both = halves([1.0])
print(both[0].to_list(), len(both[1]))
for part in both:
    print(part.to_list())

maybe = positive([1.0])
if maybe is not None:
    print(maybe.to_list(), len(maybe), maybe[0], [2 * x for x in maybe])
assert maybe is not None
print(maybe.to_list()[0])

made = batch([])
print(list(made.rows), len(made.names), made.names[0], [r.sum() for r in made.rows])
if made.more is not None:
    print(list(made.more), made.more[0])
print(use(Batch([], [])), use(made), use(Batch(rows=[], names=["a"], more=[1.0])))

for x, places in pairs([1.0]):
    print(x, list(places), places[0], len(places))
first = pairs([1.0])[0]
print(first[0], list(first[1]), len(first[1]))
found = pairs([1.0]).to_list()
print(list(found[0][1]))


@relay
def scaled(xs: List[Float], k: Float) -> tuple[Float, List[Float]]:
    return k, [x * k for x in xs]


@relay
def counted(xs: List[Float]) -> tuple[List[Float], Float]:
    return xs, xs[0]


@relay
def two(x: Float) -> tuple[Float, Float]:
    return x, x


@relay
def named(x: Float) -> tuple[int, str]:
    return 1, "a"


k, ys = scaled([1.0], 2.0)
print(k + 1, k.item(), ys.to_list())
zs, z = counted([1.0])
print(zs.to_list(), z * 2, z.item())
p, q = two(1.0)
print(p.item(), q.item(), two(1.0)[0] + 1)
number, name = named(1.0)
print(number + 1, name.upper())
