"""Functions and loops that give a value on one way and None on another, as in plain Python."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from pyrelay import relay
from tests.python_text import load

HEAD = """
from __future__ import annotations

from pyrelay import Float, relay
from pyrelay.prelude import List
"""
PROGRAMS: dict[str, tuple[str, list[tuple[Any, ...]]]] = {
    "place_in_a_list": (
        """
def f(xs: List[float], k: float) -> int | None:
    for i, x in enumerate(xs):
        if x == k:
            return i
    return None
""",
        [([1.0, 2.0], 2.0), ([1.0], 2.0), ([], 2.0)],
    ),
    "element_of_a_list": (
        """
def f(xs: List[float], k: float) -> float | None:
    for x in xs:
        if x > k:
            return x
    return None
""",
        [([1.0, 3.0, 4.0], 2.0), ([1.0], 2.0)],
    ),
    "last_element": (
        """
def f(xs: List[float]) -> float | None:
    found = None
    for x in xs:
        found = x
    return found
""",
        [([1.0, 3.0],), ([],)],
    ),
    "largest_element_and_its_place": (
        """
def f(xs: List[float]) -> tuple[float | None, int | None]:
    best = None
    where = None
    for i, x in enumerate(xs):
        if best is None or x > best:
            best, where = x, i
    return best, where
""",
        [([1.0, 3.0, 2.0],), ([],)],
    ),
    "two_names_from_one_assignment": (
        """
def f(xs: List[float]) -> tuple[float | None, int | None]:
    best, where = None, None
    i = 0
    while i < len(xs):
        if xs[i] > 1.0:
            best, where = xs[i], i
            break
        i += 1
    return best, where
""",
        [([1.0, 3.0, 2.0],), ([],)],
    ),
    "one_value_for_two_names": (
        """
def f(xs: List[float]) -> float:
    best = where = None
    for i, x in enumerate(xs):
        if best is None:
            best, where = x, i
        elif x > best:
            best, where = x, i
    if best is not None and where is not None:
        return best + where
    return 0.5
""",
        [([1.0, 3.0, 2.0],), ([],)],
    ),
    "last_of_nested_loops": (
        """
def f(xs: List[float], k: float) -> float | None:
    found = None
    for x in xs:
        for y in xs:
            if x + y == k:
                found = x * y
                break
    return found
""",
        [([1.0, 3.0], 4.0), ([1.0], 5.0)],
    ),
    "differences": (
        """
def f(xs: List[float]) -> float:
    before = None
    total = 0.0
    n = 0
    while n < len(xs):
        if before is not None:
            total += xs[n] - before
        before = xs[n] * 2.0
        n += 1
    return total
""",
        [([1.0, 3.0, 2.0],), ([],)],
    ),
    "root": (
        """
def f(n: int) -> int | None:
    for i in range(n + 1):
        if i * i == n:
            return i
        if i * i > n:
            break
    return None
""",
        [(9,), (8,), (0,)],
    ),
    "while_loop": (
        """
def f(n: int) -> int | None:
    i = 0
    while i < n:
        if i * i == n:
            return i
        if i == 50:
            return None
        i += 1
    return None
""",
        [(9,), (8,), (3000,)],
    ),
    "nested_loops": (
        """
def f(n: int) -> tuple[int, int] | None:
    for i in range(n):
        for j in range(i):
            if i * j == n:
                return i, j
    return None
""",
        [(12,), (7,)],
    ),
    "recursion": (
        """
def f(n: int) -> int | None:
    if n > 100:
        return None
    if n % 7 == 0:
        return n
    return f(n + 1)
""",
        [(5,), (99,), (101,)],
    ),
    "or_of_a_test": (
        """
def f(x: float | None) -> float | None:
    if x is None or x < 0.0:
        return None
    return x * 2.0
""",
        [(None,), (-1.0,), (2.0,)],
    ),
    "or_in_an_expression": (
        """
def f(x: float | None) -> float | None:
    return None if x is None or x < 0.0 else x * 2.0
""",
        [(None,), (-1.0,), (2.0,)],
    ),
    "best_so_far": (
        """
def f(xs: List[float]) -> float | None:
    best = None
    for x in xs:
        if best is None or x > best:
            best = x
    return best
""",
        [([],), ([1.0, 3.0, 2.0],)],
    ),
    "used_by_another": (
        """
def g(xs: List[int], k: int) -> int | None:
    for x in xs:
        if x % k == 0:
            return x
    return None


@relay
def f(xs: List[int]) -> int:
    total = 0
    for k in range(2, 5):
        found = g(xs, k)
        if found is not None:
            total += found * k
    return total
""",
        [([3, 8],), ([],), ([7],)],
    ),
}
CASES = [(n, args) for n, (_, several) in PROGRAMS.items() for args in several]


@pytest.mark.parametrize(("name", "args"), CASES, ids=map(str, itertools.count()))
def test_a_value_or_none_is_given_as_python_gives_it(
    name: str, args: tuple[Any, ...], tmp_path: Path
) -> None:
    text = PROGRAMS[name][0].strip()
    compiled = load(f"{HEAD}\n\n@relay\n{text}\n", tmp_path)["f"]
    wanted = load(f"{HEAD}\n\n{text.replace('@relay', '')}\n", tmp_path)["f"](*args)
    assert compiled(*args) == wanted
    assert compiled.interpret(*args) == wanted


def test_the_gradient_is_that_of_the_way_taken(tmp_path: Path) -> None:
    text = """
@relay
def first(xs: List[Float], k: Float) -> Float | None:
    for x in xs:
        if x > k:
            return x * x
    return None


@relay
def loss(xs: List[Float]) -> Float:
    found = first(xs, 2.0)
    return 0.0 if found is None else found * 3.0
"""
    loss = load(HEAD + text, tmp_path)["loss"]
    assert [float(g) for g in relay.grad(loss)([1.0, 4.0, 5.0])] == [0.0, 24.0, 0.0]
    assert [float(g) for g in relay.grad(loss)([1.0])] == [0.0]
