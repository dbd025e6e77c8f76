"""Indexing against numpy's, on every kind of index at random."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pyrelay.ir.dims import Dim
from pyrelay.ir.op import Library, Op
from pyrelay.ir.types import TensorType, TupleType, int64, tensor_type
from pyrelay.operators.primitive import index as indexing
from tests.ops.rule_calls import floats, type_of_call

bounds = st.none() | st.integers(-7, 7)
N = Dim.of("n")
steps = st.none() | st.sampled_from([-3, -2, -1, 1, 2, 3])


def run(op: Op, *args: Any) -> Any:
    assert isinstance(op.lowering, Library)
    return op.lowering.body(torch, *args)


def typed_shape(x: torch.Tensor, indices: tuple[Any, ...], spec: Any) -> tuple[int, ...]:
    types = tuple(tensor_type(int64, *np.shape(i)) for i in indices)
    ty = type_of_call(indexing.index, (floats(*x.shape), TupleType(types)), {"spec": spec})
    assert isinstance(ty, TensorType)
    return tuple(d.evaluate({}) for d in ty.shape)


@given(st.integers(0, 6), bounds, bounds, steps)
def test_a_slice_is_pythons(size: int, start: int | None, stop: int | None, step: Any) -> None:
    x = torch.arange(size).float()
    spec = (("slice", start, stop, step),)
    expected = x.numpy()[start:stop:step]
    found = run(indexing.index, x, (), spec)
    assert found.tolist() == expected.tolist()
    assert typed_shape(x, (), spec) == expected.shape


@st.composite
def indices_of_a_cube(draw: st.DrawFn) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return an index of a tensor (3, 4, 5), and the run-time indices in it."""
    entries: list[tuple[Any, ...]] = []
    values: list[Any] = []
    for size in (3, 4, 5)[: draw(st.integers(0, 3))]:
        kind = draw(st.sampled_from(["int", "slice", "tensor", "new"]))
        if kind == "slice":
            entries.append(("slice", draw(bounds), draw(bounds), draw(steps)))
            continue
        if kind == "new":
            entries.append(("new",))
            kind = "int"
        entries.append(("int", len(values)))
        number = st.integers(-size, size - 1)
        values.append(draw(number if kind == "int" else st.lists(number, min_size=2, max_size=2)))
    if draw(st.booleans()):
        entries.append(("ellipsis",))
    return tuple(entries), tuple(values)


def numpy_index(entries: tuple[Any, ...], values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return an index without whole numbers as numpy takes it: numpy and torch disagree on where
    the dims of index tensors go when there is a whole number beside them."""
    found: list[Any] = []
    for kind, *rest in entries:
        match kind:
            case "int":
                found.append(np.array(values[rest[0]]))
            case "slice":
                found.append(slice(*rest))
            case "new":
                found.append(None)
            case _:
                found.append(...)
    return tuple(found)


def without_numbers(x: np.ndarray, entries: Any, values: tuple[Any, ...]) -> tuple[Any, Any]:
    """Take the whole numbers of an index first, as torch does; return the rest of the index."""
    rest: list[Any] = []
    place = 0
    for kind, *args in entries:
        if kind == "int" and isinstance(values[args[0]], int):
            x = np.take(x, values[args[0]], axis=place)
        else:
            rest.append((kind, *args))
            place += kind in ("int", "slice")
    return x, tuple(rest)


@given(indices_of_a_cube())
def test_an_index_selects_what_numpy_selects(case: Any) -> None:
    spec, values = case
    x = torch.arange(60.0).reshape(3, 4, 5)
    smaller, rest = without_numbers(x.numpy(), spec, values)
    expected = smaller[numpy_index(rest, values)]
    tensors = tuple(torch.tensor(v) if isinstance(v, list) else v for v in values)
    found = run(indexing.index, x, tensors, spec)
    assert found.shape == expected.shape
    assert found.tolist() == expected.tolist()
    assert typed_shape(x, values, spec) == expected.shape


@given(indices_of_a_cube())
def test_what_is_added_at_an_index_is_read_as_often_as_it_is_named(case: Any) -> None:
    spec, values = case
    tensors = tuple(torch.tensor(v) if isinstance(v, list) else v for v in values)
    places = run(indexing.index, torch.arange(60).reshape(3, 4, 5), tensors, spec)
    value = torch.arange(1.0, places.numel() + 1).reshape(places.shape)
    found = run(indexing.index_accumulate, torch.ones(3, 4, 5), tensors, value, spec)
    expected = torch.ones(60).index_add(0, places.reshape(-1), value.reshape(-1))
    assert found.reshape(-1).tolist() == expected.tolist()


@given(indices_of_a_cube())
def test_what_is_written_at_an_index_is_read_back(case: Any) -> None:
    spec, values = case
    tensors = tuple(torch.tensor(v) if isinstance(v, list) else v for v in values)
    written = run(indexing.set_at, torch.zeros(3, 4, 5), tensors, 7.0, spec)
    places = run(indexing.index, torch.arange(60).reshape(3, 4, 5), tensors, spec)
    expected = torch.zeros(60)
    expected[places.reshape(-1)] = 7.0
    assert written.reshape(-1).tolist() == expected.tolist()


def named_length(spec: tuple[Any, ...]) -> Dim:
    ty = type_of_call(indexing.index, (floats("n"), TupleType(())), {"spec": (spec,)})
    assert isinstance(ty, TensorType)
    return ty.shape[0]


@given(st.integers(0, 9), bounds, bounds, steps)
def test_the_length_of_a_slice_of_a_named_dim_is_pythons_at_every_size(
    size: int, start: int | None, stop: int | None, step: int | None
) -> None:
    count = len(range(*slice(start, stop, step).indices(size)))
    assert named_length(("slice", start, stop, step)).evaluate({"n": size}) == count


BOUNDS = (None, 0, 2, -1, -3, N, N // 2, N + 1, (N + 1) // 2)


@given(
    st.integers(0, 9), st.sampled_from(BOUNDS), st.sampled_from(BOUNDS), st.sampled_from([1, 2, -1])
)
def test_a_bound_may_be_a_size(size: int, start: Any, stop: Any, step: int) -> None:
    first, last = (b.evaluate({"n": size}) if isinstance(b, Dim) else b for b in (start, stop))
    count = len(range(*slice(first, last, step).indices(size)))
    assert named_length(("slice", start, stop, step)).evaluate({"n": size}) == count


def test_an_index_out_of_range_is_an_index_error() -> None:
    x = torch.zeros(3)
    for at in (3, -4, torch.tensor(3), torch.tensor([0, 3])):
        with pytest.raises(IndexError):
            run(indexing.index, x, (at,), (("int", 0),))


def test_two_masks_and_numbers_index_together() -> None:
    x = torch.arange(12).reshape(3, 4)
    rows, columns = torch.tensor([True, False, True]), torch.tensor([3, 0])
    found = run(indexing.index, x, (rows, columns), (("int", 0), ("int", 1)))
    assert found.tolist() == x[rows, columns].tolist()
