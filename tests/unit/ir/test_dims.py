"""Dims obey the arithmetic of integers, and equal polynomials are equal dims."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pyrelay.ir.bounds import is_nonnegative, maximum, minimum
from pyrelay.ir.dims import ONE, ZERO, Dim, DimHole, DimVar, product

NAMES = ("n", "m", "k")
n, m, k = (Dim.of(name) for name in NAMES)

Tree: TypeAlias = "int | str | tuple[str, Tree, Tree]"
ON_DIMS: Mapping[str, Callable[[Dim, Dim], Dim]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
    "max": maximum,
    "min": minimum,
}
ON_INTEGERS: Mapping[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
    "max": max,
    "min": min,
}

leaves = st.one_of(st.integers(-6, 6), st.sampled_from(NAMES))
polynomials = st.recursive(
    leaves, lambda inner: st.tuples(st.sampled_from("+-*"), inner, inner), max_leaves=6
)
trees = st.recursive(
    leaves, lambda inner: st.tuples(st.sampled_from(list(ON_DIMS)), inner, inner), max_leaves=6
)
sizes = st.fixed_dictionaries({name: st.integers(1, 12) for name in NAMES})


def dim(tree: Tree) -> Dim:
    if not isinstance(tree, tuple):
        return Dim.of(tree)
    sign, left, right = tree
    return ON_DIMS[sign](dim(left), dim(right))


def integer(tree: Tree, values: Mapping[str, int]) -> int:
    """Return the value by plain arithmetic; examples that divide by zero are passed over."""
    if isinstance(tree, int):
        return tree
    if isinstance(tree, str):
        return values[tree]
    sign, left, right = tree
    a, b = integer(left, values), integer(right, values)
    assume(b != 0 or sign not in ("//", "%"))
    return ON_INTEGERS[sign](a, b)


@given(trees, sizes)
def test_a_dim_has_the_value_of_its_arithmetic(tree: Tree, values: dict[str, int]) -> None:
    expected = integer(tree, values)
    assert dim(tree).evaluate(values) == expected


@given(polynomials, polynomials, polynomials)
def test_polynomials_are_a_commutative_ring(a: Tree, b: Tree, c: Tree) -> None:
    x, y, z = dim(a), dim(b), dim(c)
    assert x + y == y + x
    assert x * y == y * x
    assert (x + y) + z == x + (y + z)
    assert (x * y) * z == x * (y * z)
    assert x * (y + z) == x * y + x * z
    assert x - x == ZERO
    assert x * ONE == x
    assert x + ZERO == x


@given(polynomials, polynomials)
def test_a_product_divides_exactly_by_its_factors(a: Tree, b: Tree) -> None:
    x, y = dim(a), dim(b)
    assume(y != ZERO)
    assert (x * y).exact_quotient(y) == x
    assert (x * y) // y == x
    assert (x * y) % y == ZERO


@given(polynomials, polynomials)
def test_an_exact_quotient_times_the_divisor_is_the_dividend(a: Tree, b: Tree) -> None:
    x, y = dim(a), dim(b)
    quotient = x.exact_quotient(y)
    assert quotient is None or quotient * y == x


@given(trees, sizes)
def test_equal_dims_have_equal_hashes_and_texts(tree: Tree, values: dict[str, int]) -> None:
    integer(tree, values)
    first, second = dim(tree), dim(tree)
    assert first == second
    assert hash(first) == hash(second)
    assert str(first) == str(second)


@given(trees, trees, sizes)
def test_replacing_a_name_is_giving_it_a_value(
    tree: Tree, inner: Tree, values: dict[str, int]
) -> None:
    value = integer(inner, values)
    assume(value >= 0)  # a name stands for a size
    expected = integer(tree, {**values, "n": value})
    assert dim(tree).rename({"n": dim(inner)}).evaluate(values) == expected


@given(trees, sizes)
def test_numbers_for_all_names_leave_a_constant(tree: Tree, values: dict[str, int]) -> None:
    expected = integer(tree, values)
    known = {name: Dim.of(value) for name, value in values.items()}
    assert dim(tree).rename(known).constant == expected


@given(trees)
def test_names_are_those_of_the_leaves(tree: Tree) -> None:
    assert dim(tree).names() <= set(NAMES)
    assert dim(tree).has_holes() is False


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (ZERO, "0"),
        (n, "n"),
        (n + 1, "n + 1"),
        (1 - n, "-n + 1"),
        (2 * n * n - m, "2*n*n - m"),
        ((n + 1) // 2, "(n + 1) // 2"),
        ((n - 1) // 2, "(n + 1) // 2 - 1"),
        (1 - n // 2, "-(n // 2) + 1"),
        ((n + 1) % 3, "(n + 1) % 3"),
        (maximum(m, n), "max(m, n)"),
        (3 * maximum(n, m), "3*max(m, n)"),
        (maximum(m, n) * k, "k*max(m, n)"),
        (minimum(m, n) + k, "k + min(m, n)"),
        (maximum(n - 1, ZERO), "max(n - 1, 0)"),
        (maximum(n, ONE), "max(n, 1)"),
        (minimum(ONE, n), "min(n, 1)"),
        (minimum(Dim.of(5), n) - 2, "min(n, 5) - 2"),
        (minimum(Dim.of(4), maximum(n - 1, ZERO)), "min(max(n - 1, 0), 4)"),
        (5 - maximum(n - 1, ZERO), "-max(n - 1, 0) + 5"),
        (maximum(2 * n - 6, ZERO), "2*max(n - 3, 0)"),
        (Dim.atom(DimHole(4)), "?4"),
    ],
)
def test_a_dim_reads_as_it_would_be_written(found: Dim, text: str) -> None:
    assert str(found) == text


def test_what_is_known_is_simplified() -> None:
    assert Dim.of(7) // 2 == Dim.of(3)
    assert Dim.of(-7) % 3 == Dim.of(2)
    assert (2 * n + 6) // 2 == n + 3
    assert (4 * n + 3) // 2 == 2 * n + 1
    assert (4 * n + 3) % 2 == ONE
    assert (n * n - 1) // (n + 1) == n - 1
    assert maximum(n, n + 2) == n + 2
    assert maximum(n, m) == maximum(m, n)
    assert product((n, m, Dim.of(2))) == 2 * n * m
    assert product(()) == ONE


def test_what_is_not_known_stays_an_atom() -> None:
    assert (n // m) * m != n
    assert (n % m).constant is None
    assert maximum(n, m).constant is None


def test_clamps_that_say_the_same_are_equal() -> None:
    def clamp(dim: Dim) -> Dim:
        return maximum(dim, ZERO)

    assert clamp(clamp(n - 1) - 2) == clamp(n - 3)
    assert minimum(n, ONE) + clamp(n - 1) == n
    assert maximum(n, m) + minimum(n, m) == n + m
    assert minimum(Dim.of(3), minimum(Dim.of(5), n)) == minimum(Dim.of(3), n)
    assert minimum(Dim.of(3), clamp(n - 1)) == clamp(minimum(n, Dim.of(4)) - 1)
    assert clamp(5 - n) == 5 - minimum(n, Dim.of(5))
    assert clamp(n - 1).rename({"n": m + 1}) == m
    assert clamp(n - n // 2) == n - n // 2


@given(trees, sizes)
def test_what_is_said_to_be_nonnegative_is(tree: Tree, values: dict[str, int]) -> None:
    value = integer(tree, values)
    assert value >= 0 or not is_nonnegative(dim(tree))


def test_a_dim_tells_its_forms_apart() -> None:
    assert n.name == "n"
    assert (n + 0).single == DimVar("n")
    assert (2 * n).single is None
    assert (2 * n).name is None
    assert Dim.of(5).constant == 5
    assert n.constant is None
    assert Dim.of(n) is n


def test_a_hole_is_found_inside_a_division_and_replaced() -> None:
    hole = DimHole(0)
    half = (Dim.atom(hole) + 1) // 2
    assert half.has_holes()
    filled = half.substitute(lambda atom: Dim.of(7) if atom == hole else None)
    assert filled == Dim.of(4)
    assert half.substitute(lambda _: None) is half


def test_a_name_without_a_size_has_no_value() -> None:
    with pytest.raises(KeyError):
        (n + m).evaluate({"n": 1})
    with pytest.raises(KeyError):
        Dim.atom(DimHole(3)).evaluate({})


def test_a_value_takes_what_is_known_of_a_whole_before_what_is_known_of_its_parts() -> None:
    n, half = Dim.of("n"), Dim.of("n") // 2
    seen: dict[Dim, int] = {half: 4}
    assert (half * 3 + 1).value(seen.get) == 13
    seen[half * 3] = 100
    assert (half * 3).value(seen.get) == 100
    assert (half * 3 + 1).value(seen.get) == 13
    with pytest.raises(KeyError, match="n"):
        (n + half).value(seen.get)
    assert (n + half).value({n: 7, **seen}.get) == 11
    assert (n + half).value({n: 7}.get) == 10
