"""What each function of the prelude does, in which order: the original prelude's own behaviour."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch

from pyrelay import CheckError, Float, Int, RunError, prelude, relay
from pyrelay.prelude import Cons, List, Nil, Nothing, Some
from tests.seed.values import agree, plain


@pytest.fixture
def order(capsys: pytest.CaptureFixture[str]) -> Callable[..., list[int]]:
    """Return the numbers that a program prints, in order."""

    def numbers(function: Any, *args: Any) -> list[int]:
        capsys.readouterr()
        function(*args)
        compiled = capsys.readouterr().out
        function.interpret(*args)
        assert capsys.readouterr().out == compiled
        return [int(n) for n in re.findall(r"\d+", compiled)]

    return numbers


def test_walking_down_a_list() -> None:
    @relay
    def walked(xs: List[Int]) -> List[Int]:
        found = []
        while len(xs) > 0:
            found.append(prelude.hd(xs))
            xs = prelude.tl(xs)
        return found

    assert agree(walked, list(range(10))) == list(range(10))


def test_nth_update_and_length() -> None:
    @relay
    def changed(xs: List[Int], n: Int) -> tuple[Int, List[Int], Int]:
        return prelude.nth(xs, n), prelude.update(xs, n, 7), prelude.length(xs)

    for n in range(-5, 5):
        xs = [10, 11, 12, 13, 14]
        wanted = xs[n]
        xs[n] = 7
        assert agree(changed, [10, 11, 12, 13, 14], n) == (wanted, xs, 5)


def test_map_gives_what_a_function_gives_for_each() -> None:
    @relay
    def incremented(xs: List[Int]) -> List[Int]:
        return prelude.map(lambda x: x + 1, xs)

    assert agree(incremented, [0, 0]) == [1, 1]
    assert agree(incremented, []) == []


def test_folds_from_both_ends() -> None:
    @relay
    def doubled(xs: List[Int]) -> List[Int]:
        return prelude.foldl(lambda y, x: Cons(x, Cons(x, y)), Nil(), xs)

    @relay
    def rebuilt(xs: List[Int]) -> List[Int]:
        return prelude.foldr(Cons, Nil(), xs)

    @relay
    def nested(xs: List[Int]) -> Int:
        return prelude.foldr(lambda x, rest: x - rest, 100, xs)

    @relay
    def joined(xs: List[Int]) -> Int:
        return prelude.foldr1(lambda x, rest: x - rest, xs)

    assert agree(doubled, [1, 2, 3]) == [3, 3, 2, 2, 1, 1]
    assert agree(rebuilt, [1, 2, 3]) == [1, 2, 3]
    assert agree(nested, [1, 2, 3]) == 1 - (2 - (3 - 100))
    assert agree(joined, [1, 2, 3]) == 1 - (2 - 3)
    assert agree(joined, [5]) == 5


def test_sums_and_joins() -> None:
    @relay
    def both(xs: List[Int], ys: List[Int]) -> tuple[Int, List[Int], List[Int], List[Int]]:
        joined = prelude.concat(xs, ys)
        return prelude.sum(xs), joined, prelude.append(xs, 9), prelude.rev(joined)

    assert agree(both, [1, 2], [3, 4]) == (3, [1, 2, 3, 4], [1, 2, 9], [4, 3, 2, 1])
    assert agree(both, [], []) == (0, [], [9], [])


def test_filter_and_parts() -> None:
    @relay
    def kept(xs: List[Int], n: Int) -> tuple[List[Int], List[Int], List[Int]]:
        return prelude.filter(lambda x: x > 1, xs), prelude.take(xs, n), prelude.drop(xs, n)

    xs = [1, 1, 3, 1, 5, 1]
    for n in (-1, 0, 2, 9):
        assert agree(kept, xs, n) == ([3, 5], xs[: max(n, 0)], xs[max(n, 0) :])


def test_zip_stops_with_the_shorter() -> None:
    @relay
    def paired(xs: List[Int], ys: List[List[Int]]) -> List[tuple[Int, List[Int]]]:
        return prelude.zip(xs, ys)

    assert agree(paired, [1, 2, 3], [[4], [], [5, 6]]) == [(1, [4]), (2, []), (3, [5, 6])]
    assert agree(paired, [1, 2, 3], [[4], []]) == [(1, [4]), (2, [])]
    assert agree(paired, [1], [[4], []]) == [(1, [4])]


def test_unfolds_from_both_ends() -> None:
    @relay
    def counted(n: Int) -> tuple[List[Int], List[Int]]:
        def down(k: Int):
            return Nothing() if k == 0 else Some((k - 1, k))

        return prelude.unfoldr(down, n), prelude.unfoldl(down, n)

    @relay
    def written(n: Int) -> List[Int]:
        return prelude.unfoldr(lambda k: None if k == 0 else (k - 1, k), n)

    assert agree(written, 3) == [3, 2, 1]
    assert agree(counted, 3) == ([3, 2, 1], [1, 2, 3])
    assert agree(counted, 0) == ([], [])


def test_accumulating_maps_from_both_ends() -> None:
    @relay
    def right(xs: List[Int]) -> tuple[Int, List[Int]]:
        return prelude.map_accumr(lambda acc, x: (x + acc, x + acc), 0, xs)

    @relay
    def left(xs: List[Int]) -> tuple[Int, List[Int]]:
        return prelude.map_accuml(lambda acc, x: (x + acc, x), 0, xs)

    assert agree(right, [1, 2, 3]) == (6, [6, 5, 3])
    assert agree(left, [1, 2, 3]) == (6, [3, 2, 1])


def test_functions_over_functions() -> None:
    @relay
    def composed(x: Int) -> tuple[Int, Int, Int, Int]:
        both = prelude.compose(lambda y: y + 1, lambda y: y * 2)
        twice = prelude.iterate(lambda y: y * 2, 2)
        minus = prelude.flip(lambda a, b: a - b)
        return both(x), twice(x), minus(x, 10), prelude.id(x)

    assert agree(composed, 2) == (5, 8, 8, 2)
    assert agree(composed, 3) == (7, 12, 7, 3)


def test_optionals_are_taken_out_of_a_list() -> None:
    @relay
    def present(xs: List[Int | None]) -> List[Int]:
        return prelude.foldr(lambda x, rest: rest if x is None else Cons(x, rest), Nil(), xs)

    assert agree(present, [3, None, 1]) == [3, 1]


def test_orders_of_effects(order: Callable[..., list[int]]) -> None:
    @relay
    def mapped(xs: List[Int]) -> List[Int]:
        def shown(x: Int):
            print(x)  # noqa: T201
            return x

        return prelude.map(shown, xs)

    @relay
    def kept(xs: List[Int]) -> List[Int]:
        def shown(x: Int):
            print(x)  # noqa: T201
            return x > 1

        return prelude.filter(shown, xs)

    @relay
    def folded(xs: List[Int]) -> Int:
        def shown(total: Int, x: Int):
            print(x)  # noqa: T201
            return total

        def backwards(x: Int, total: Int):
            print(x)  # noqa: T201
            return total

        return prelude.foldl(shown, 0, xs) + prelude.foldr(backwards, 0, xs)

    @relay
    def accumulated(xs: List[Int]) -> tuple[Int, List[Int]]:
        def shown(total: Int, x: Int):
            print(x)  # noqa: T201
            return total, x

        prelude.map_accuml(shown, 0, xs)
        return prelude.map_accumr(shown, 0, xs)

    assert order(mapped, [1, 2, 3]) == [1, 2, 3]
    assert order(kept, [1, 2, 3]) == [1, 2, 3]
    assert order(folded, [1, 2, 3]) == [1, 2, 3, 3, 2, 1]
    assert order(accumulated, [1, 2, 3]) == [1, 2, 3, 3, 2, 1]


@pytest.mark.parametrize("n", [0, 1])
def test_the_empty_list_is_the_callers_mistake(n: int) -> None:
    @relay
    def head(xs: List[Int]) -> Int:
        return prelude.hd(xs)

    @relay
    def folded(xs: List[Int]) -> Int:
        return prelude.foldr1(lambda a, b: a + b, xs)

    function, text = ((head, "prelude.hd(xs)"), (folded, "prelude.foldr1(lambda a, b: a + b, xs)"))[
        n
    ]
    for run in (function, function.interpret):
        with pytest.raises(RunError) as caught:
            run([])
        (diagnostic,) = caught.value.diagnostics
        assert diagnostic.code == "RL509"
        assert diagnostic.primary is not None
        assert diagnostic.primary.span.text == text


def test_heads_of_many_lists() -> None:
    @relay
    def heads(xss: List[List[Int]]) -> List[Int]:
        return prelude.map(prelude.hd, xss)

    assert agree(heads, [[1, 2], [3]]) == [1, 3]
    with pytest.raises(RunError) as caught:
        heads([[1], []])
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.primary is not None
    assert diagnostic.primary.span.text == "prelude.hd"


# Outside of compiled code.


@relay
def halved(total: Float, x: Float) -> Float:
    return total * 0.5 + x


def test_scripts_call_them_too() -> None:
    assert plain(prelude.foldl(halved, 0.0, [1.0, 2.0, 3.0])) == 4.25
    assert plain(prelude.rev([1, 2])) == [2, 1]
    assert plain(prelude.zip([1, 2, 3], [True, False])) == [(1, True), (2, False)]
    rows = prelude.map(relay.tanh, [torch.ones(2), torch.zeros(2)])
    torch.testing.assert_close(rows[0], torch.tanh(torch.ones(2)))
    assert plain(prelude.foldr(Cons, List.of([4]), [1, 2])) == [1, 2, 4]
    assert prelude.compose(str, abs)(-3) == "3"
    assert prelude.iterate(lambda x: 2 * x, 3)(1) == 8


def test_gradients_go_through_them_in_scripts() -> None:
    xs = [torch.tensor(float(n), requires_grad=True) for n in range(1, 4)]
    prelude.foldl(halved, torch.tensor(0.0), xs).backward()
    assert [x.grad.item() for x in xs if x.grad is not None] == [0.25, 0.5, 1.0]


def test_mistakes_in_scripts() -> None:
    with pytest.raises(RunError, match="got a function as `f`") as caught:
        prelude.map(lambda x: x, [1.0])
    assert "decorate the function with @relay" in str(caught.value)
    with pytest.raises(RunError, match="takes 3 arguments"):
        prelude.foldl(halved, 0.0)
    with pytest.raises(RunError, match="the list is empty"):
        prelude.hd([])
    with pytest.raises(CheckError):
        prelude.foldl(halved, 0.0, [torch.ones(2)])


FACTOR = 2.0


@dataclass(frozen=True)
class Point:
    x: Float


@relay
def scaled(x: Float, by: Float = 3.0) -> Float:
    return x * by


def test_scripts_pass_functions_with_defaults() -> None:
    assert relay.map(scaled, [1.0, 2.0]).to_list() == [3.0, 6.0]
    assert relay.map(relay.grad(scaled, wrt="x"), [1.0]).to_list() == [3.0]
    assert relay.map(relay.specialise(scaled, by=5.0), [1.0]).to_list() == [5.0]
    twice = relay.parse(
        "def @twice(%f: fn(float32) -> float32, %x: float32) -> float32 { %f(%f(%x)) }"
    )["twice"]
    assert relay.grad(twice, wrt="x")(scaled, 1.0) == 9.0


def test_scripts_get_data_that_functions_make() -> None:
    @relay
    def point(x: Float) -> Point:
        return Point(x)

    assert relay.map(point, [1.0]).to_list() == [Point(torch.tensor(1.0))]


def test_a_number_that_a_function_captures_may_change(monkeypatch: pytest.MonkeyPatch) -> None:
    @relay
    def multiplied(x: Float) -> Float:
        return x * FACTOR

    assert relay.map(multiplied, [1.0]).to_list() == [2.0]
    monkeypatch.setitem(globals(), "FACTOR", 5.0)
    assert relay.map(multiplied, [1.0]).to_list() == [5.0]
