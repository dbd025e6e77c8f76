"""Simplified places are equal to what they were, and simple where it matters."""

from __future__ import annotations

from itertools import product as all_of

from hypothesis import given, settings
from hypothesis import strategies as st

from pyrelay.ir.dims import ONE, ZERO, Dim, DimOp
from pyrelay.kernels.places import Places
from pyrelay.operators.shared.moving import linear

N, M, K, H = (Dim.of(name) for name in "NMKH")


def is_plain(dim: Dim) -> bool:
    """Return whether no division is left."""
    return not any(isinstance(a, DimOp) for m, _ in dim.terms for a in m)


def test_a_row_and_a_column_are_found_in_a_position() -> None:
    places = Places()
    i, k = places.index("i", (N, K))
    position = i * K + k
    assert places.simplified(position // K) == i
    assert places.simplified(position % K) == k
    assert places.simplified((position + 3 * K) // K) == i + 3


def test_a_position_in_a_dim_made_of_two_is_found() -> None:
    places = Places()
    b, i, j = places.index("i", (Dim.of(4), N, Dim.of(3)))
    position = (b * N + i) * 3 + j
    assert places.simplified(position // (3 * N)) == b
    assert places.simplified(position // 3 % N) == i
    assert places.simplified(position % 3) == j
    assert places.simplified(position % (3 * N)) == 3 * i + j
    assert places.simplified(position // 3) == b * N + i


def test_sizes_that_are_sums_divide_too() -> None:
    places = Places()
    side = (N - 4) // 2 + 1
    i, j, k = places.index("i", (M, side, N + 1))
    position = (i * side + j) * (N + 1) + k
    assert places.simplified(position // (N + 1)) == i * side + j
    assert places.simplified(position % (N + 1)) == k
    assert places.simplified(position // (side * (N + 1))) == i


def test_a_reshape_there_and_back_gives_the_place_again() -> None:
    shapes = [
        (N, Dim.of(6), H, K),
        (N, Dim.of(2), 3 * H * K),
        (6 * N, H * K),
        (6 * H * N, K),
        (6 * H * K * N,),
        (N * 2, ONE, 3 * H, K),
    ]
    for shape, other in all_of(shapes, shapes):
        places = Places()
        index = places.index("i", shape)
        there = places.relocated(index, shape, other)
        assert places.relocated(there, other, shape) == index


def test_groups_of_channels_read_off_their_own_statistics() -> None:
    places = Places()
    batch, group, inside = places.index("i", (N, Dim.of(4), Dim.of(2 * 7 * 7)))
    image = places.relocated(
        (batch, group, inside), (N, Dim.of(4), Dim.of(98)), (N, *map(Dim.of, (8, 7, 7)))
    )
    again = places.relocated(image, (N, *map(Dim.of, (8, 7, 7))), (N, Dim.of(4), Dim.of(98)))
    assert again == (batch, group, inside)


def test_the_only_coordinate_of_a_dim_of_size_one_is_zero() -> None:
    assert Places().coordinate("i", ONE) == ZERO


def test_bounds_know_what_a_window_reads() -> None:
    places = Places()
    i = places.coordinate("i", N - 4)
    k = places.coordinate("k", Dim.of(5))
    assert places.is_below(i + k, N)
    assert not places.is_below(i + k + 1, N)
    assert not places.is_below(i - k, N)


SIZES = st.sampled_from(
    [ONE, Dim.of(2), Dim.of(3), Dim.of(4), N, M, 2 * N, N + 1, N * M, N // 2 + 1]
)
NAMES = ("i0", "i1", "i2")


@st.composite
def expressions(draw: st.DrawFn, depth: int = 3) -> Dim:
    """Return a dim of coordinates and sizes with divisions by sizes."""
    if depth == 0:
        return draw(st.sampled_from([*map(Dim.of, NAMES), N, M, ONE, Dim.of(2), Dim.of(-1)]))
    a = draw(expressions(depth - 1))
    match draw(st.integers(0, 5)):
        case 0:
            return a + draw(expressions(depth - 1))
        case 1:
            return a - draw(expressions(depth - 1))
        case 2:
            return a * draw(SIZES)
        case 3:
            return a // draw(SIZES)
        case 4:
            return a % draw(SIZES)
        case _:
            return a


@settings(max_examples=400, deadline=None)
@given(st.tuples(SIZES, SIZES, SIZES), expressions(), st.data())
def test_a_simplified_place_is_the_same_place(
    shape: tuple[Dim, ...], place: Dim, data: st.DataObject
) -> None:
    places = Places()
    found = places.index("i", shape)
    zeros = {name: ZERO for name, dim in zip(NAMES, found, strict=True) if dim == ZERO}
    place = place.rename(zeros)
    simple = places.simplified(place)
    for n, m in ((1, 1), (2, 3), (3, 2), (5, 1)):
        sizes = {"N": n, "M": m}
        index = {
            name: data.draw(st.integers(0, size.evaluate(sizes) - 1))
            for name, size in zip(NAMES, shape, strict=True)
        }
        assert simple.evaluate({**sizes, **index}) == place.evaluate({**sizes, **index})


@settings(max_examples=200, deadline=None)
@given(st.tuples(SIZES, SIZES, SIZES), st.data())
def test_a_relocated_element_is_the_same_element(
    shape: tuple[Dim, ...], data: st.DataObject
) -> None:
    a, b, c = shape
    other = data.draw(st.sampled_from([(a * b, c), (a, b * c), (a * b * c,), (a, ONE, b, c)]))
    places = Places()
    index = places.index("i", shape)
    there = places.relocated(index, shape, other)
    assert places.relocated(there, other, shape) == index
    for n, m in ((1, 1), (2, 3), (4, 2)):
        sizes = {"N": n, "M": m}
        at = {
            str(i): data.draw(st.integers(0, s.evaluate(sizes) - 1))
            for i, s in zip(index, shape, strict=True)
            if i != ZERO
        }
        known = {**sizes, **at}
        assert linear(there, other).evaluate(known) == linear(index, shape).evaluate(known)
