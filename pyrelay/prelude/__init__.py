"""The functions and data types that every program can name.

`List[T]` with `Cons` and `Nil`, and the functions of the original prelude: names in `@relay` code,
and functions in scripts. Those that no operator is named like are members of `relay` as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Generic, TypeAlias, TypeVar

from .names import NONE, SOME, Function, OptionConstructor
from .values import Nat as Nat
from .values import Rose as Rose
from .values import Succ as Succ
from .values import Zero as Zero

if TYPE_CHECKING:
    T = TypeVar("T")
    T_co = TypeVar("T_co", covariant=True)
    # A list of Python's own is taken wherever `List[T]` stands, so to type checkers it is one. As a
    # pattern `Nil` then is every list that `Cons` is not: a match of both has all cases.
    List = list
    Nil = list

    class Some(Generic[T_co]):
        """An optional that has a value: the value itself, unless that is None too."""

        __match_args__ = ("value",)

        def __init__(self, value: T_co) -> None: ...
        @property
        def value(self) -> T_co:
            """The value."""
            ...

    Option: TypeAlias = T | Some[T] | None

    class ListResult(list[T]):
        """The result of a call annotated as `List[T]`."""

        def to_list(self) -> list[T]:
            """Return the elements as a list of Python's own."""
            ...

    class Cons(list[T]):
        """A list of at least one element."""

        __match_args__ = ("head", "tail")
        head: T
        tail: list[T]

        def __init__(self, head: T, tail: list[T]) -> None: ...
else:
    from .values import Cons as Cons
    from .values import List as List
    from .values import Nil as Nil
    from .values import Option as Option

_DOCS: Final = {
    "append": "The list with one more element at its end: `append(xs, x)`.",
    "compose": "The function that applies `g` and then `f`: `compose(f, g)`.",
    "concat": "One list after the other: `concat(xs, ys)`.",
    "drop": "The list without its first `n` elements: `drop(xs, n)`.",
    "filter": "The elements for which a function is true, asked left to right: `filter(f, xs)`.",
    "flip": "The function with its two parameters the other way round: `flip(f)`.",
    "foldl": "`f(... f(f(start, x0), x1) ..., xn)`, left to right: `foldl(f, start, xs)`.",
    "foldr": "`f(x0, f(x1, ... f(xn, end)))`, right to left: `foldr(f, end, xs)`.",
    "foldr1": "`f(x0, f(x1, ... xn))`, right to left, of at least one element: `foldr1(f, xs)`.",
    "hd": "The first element: `hd(xs)`. An error if there is none.",
    "id": "The value itself: `id(x)`.",
    "iterate": "The function that applies `f` `n` times: `iterate(f, n)`.",
    "length": "The number of elements: `length(xs)`.",
    "map": "What a function gives for each element, left to right: `map(f, xs)`.",
    "map_accuml": "The last state and the outputs of `f(state, x) -> (state, output)` from left "
    "to right, the outputs the other way round: `map_accuml(f, start, xs)`.",
    "map_accumr": "The last state and the outputs of `f(state, x) -> (state, output)` from right "
    "to left, each output at its input's place: `map_accumr(f, start, xs)`.",
    "nat_add": "The sum of two natural numbers: `nat_add(a, b)`.",
    "nat_double": "Twice a natural number: `nat_double(n)`.",
    "nat_from": "An integer as a natural number, a negative one as 0: `nat_from(n)`.",
    "nat_iterate": "The function that applies `f` `n` times: `nat_iterate(f, n)`.",
    "nat_nth": "The element at a natural number: `nat_nth(xs, n)`.",
    "nat_to": "A natural number as an integer: `nat_to(n)`.",
    "nat_update": "The list with another element at a natural number: `nat_update(xs, n, x)`.",
    "nth": "Element `n`, counted from the end where `n` is negative: `nth(xs, n)`.",
    "rev": "The list the other way round: `rev(xs)`.",
    "size": "The number of values in a tree: `size(tree)`.",
    "sum": "The sum of integers: `sum(xs)`.",
    "take": "The first `n` elements: `take(xs, n)`.",
    "tl": "The list after its first element: `tl(xs)`. An error if it is empty.",
    "tmap": "The tree of what a function gives for each value, a tree before its children, these "
    "left to right: `tmap(f, tree)`.",
    "unfoldl": "What `f(state) -> Some((state, x))` gives until it gives none, the last in front: "
    "`unfoldl(f, start)`.",
    "unfoldr": "What `f(state) -> Some((state, x))` gives until there is none: `unfoldr(f, s)`.",
    "update": "The list with another element at `n`: `update(xs, n, x)`.",
    "zip": "The pairs of elements, as many as the shorter list has: `zip(xs, ys)`.",
}


def _function(name: str) -> Function:
    return Function(name, _DOCS[name])


append: Final = _function("append")
compose: Final = _function("compose")
concat: Final = _function("concat")
drop: Final = _function("drop")
filter: Final = _function("filter")  # noqa: A001  the names are the original prelude's
flip: Final = _function("flip")
foldl: Final = _function("foldl")
foldr: Final = _function("foldr")
foldr1: Final = _function("foldr1")
hd: Final = _function("hd")
id: Final = _function("id")  # noqa: A001
iterate: Final = _function("iterate")
length: Final = _function("length")
map: Final = _function("map")  # noqa: A001
map_accuml: Final = _function("map_accuml")
map_accumr: Final = _function("map_accumr")
nat_add: Final = _function("nat_add")
nat_double: Final = _function("nat_double")
nat_from: Final = _function("nat_from")
nat_iterate: Final = _function("nat_iterate")
nat_nth: Final = _function("nat_nth")
nat_to: Final = _function("nat_to")
nat_update: Final = _function("nat_update")
nth: Final = _function("nth")
rev: Final = _function("rev")
size: Final = _function("size")
sum: Final = _function("sum")  # noqa: A001
take: Final = _function("take")
tl: Final = _function("tl")
tmap: Final = _function("tmap")
unfoldl: Final = _function("unfoldl")
unfoldr: Final = _function("unfoldr")
update: Final = _function("update")
zip: Final = _function("zip")  # noqa: A001

Tree = Rose

if not TYPE_CHECKING:
    Some: Final = OptionConstructor(SOME)
Nothing: Final = OptionConstructor(NONE)

MEMBERS: Final = {n: f for n, f in globals().items() if isinstance(f, Function | OptionConstructor)}
"""The functions by name."""
