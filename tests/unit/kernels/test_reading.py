"""Elements read through bodies are the elements of the values."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pyrelay.ir.dims import Dim
from pyrelay.ir.expr import type_of
from pyrelay.kernels.reading import Reader, Unreadable, bindings_of, results_of, shape_of
from pyrelay.kernels.recording import Recording
from pyrelay.runtime.compile.evaluator import evaluate
from tests.unit.kernels.kernels import kernel, module
from tests.unit.kernels.supplied import read_results

N = Dim.of("N")

READABLE = {
    "a chain": "fn [N: Dim](%x: Tensor[(N, 4), float32]) { tanh(%x * 2.0f32) + %x }",
    "broadcasting": "fn [N: Dim](%x: Tensor[(N, 4), float32], %b: Tensor[(4,), float32],"
    " %c: Tensor[(N, 1), float32]) { relu(%x + %b) * %c }",
    "views": "fn [N: Dim](%x: Tensor[(N, 4), float32]) {"
    " let %t = transpose(%x, dim0=0, dim1=1); let %r = reshape(%t, shape=(2, 2 * N));"
    " flip(%r * 2.0f32, dims=(1,)) }",
    "a reshape there and back": "fn [N: Dim](%x: Tensor[(N, 4), float32]) {"
    " let %r = reshape(exp(%x), shape=(2 * N, 2)); reshape(%r + 1.0f32, shape=(N, 4)) }",
    "a narrow part": "fn [N: Dim](%x: Tensor[(N, 4), float32]) {"
    " tanh(narrow(%x, dim=1, start=1, length=2)) }",
    "several results": "fn [N: Dim](%x: Tensor[(N, 4), float32]) {"
    " let %y = exp(%x); (%y, reshape(%y, shape=(4 * N,))) }",
    "a size": "fn [N: Dim](%x: Tensor[(N, 4), float32]) { %x / cast(size(dim=N), dtype=float32) }",
    "a condition": "fn [N: Dim](%x: Tensor[(N, 4), float32]) { where(%x > 0.0f32, %x, 0.0f32) }",
}
"""Functions whose results are said element by element."""


def arguments(text: str) -> tuple[Any, ...]:
    """Return arguments for the parameters of a function in which N is 3."""
    torch.manual_seed(0)
    params = kernel(text).params
    shapes = [[d.evaluate({"N": 3}) for d in shape_of(type_of(p))] for p in params]
    return tuple(torch.randn(s) for s in shapes)


def named(text: str) -> str:
    return text.replace("fn ", "def @main", 1)


@pytest.mark.parametrize("text", READABLE.values(), ids=READABLE.keys())
def test_elements_are_what_the_evaluator_gives(text: str) -> None:
    text = named(text)
    args = arguments(text)
    expected = evaluate(module(text), "main", args)
    found = read_results(kernel(text), args, {"N": 3})
    expected = expected if isinstance(expected, tuple) else (expected,)
    assert len(found) == len(expected)
    for value, wanted in zip(found, expected, strict=True):
        torch.testing.assert_close(value, wanted)


def test_a_place_behind_two_reshapes_is_the_place() -> None:
    function = kernel(named(READABLE["a reshape there and back"]))
    record = Recording()
    index = record.places.index("i", (N, Dim.of(4)))
    reader = Reader(bindings_of(function.body), record)
    reader.element(results_of(function.body)[0], index)
    assert list(record.reads) == [(function.params[0], index)]


def test_what_is_shared_is_read_and_computed_once() -> None:
    function = kernel("def @main(%x: Tensor[(4,), float32]) { let %y = exp(%x); %y * %y + %y }")
    record = Recording()
    reader = Reader(bindings_of(function.body), record)
    reader.element(results_of(function.body)[0], record.places.index("i", (Dim.of(4),)))
    assert len(record.reads) == 1
    assert sum(w.elements.functions for w in record.work) == 1
    assert sum(w.elements.operations for w in record.work) == 2


def test_what_a_loop_computed_is_forgotten_after_it() -> None:
    function = kernel("def @main(%x: Tensor[(4,), float32]) { exp(%x) }")
    record = Recording()
    reader = Reader(bindings_of(function.body), record)
    index = record.places.index("i", (Dim.of(4),))
    for _ in range(2):
        with reader.scope():
            reader.element(results_of(function.body)[0], index)
    assert sum(w.elements.functions for w in record.work) == 2


def test_a_reduction_is_read_only_where_the_supplier_holds_it() -> None:
    function = kernel(
        "def @main(%x: Tensor[(4, 3), float32]) { %x - amax(%x, dim=(1,), keepdim=True) }"
    )
    bindings = bindings_of(function.body)
    (result,) = results_of(function.body)
    record = Recording()
    index = record.places.index("i", (Dim.of(4), Dim.of(3)))
    with pytest.raises(Unreadable):
        Reader(bindings, record).element(result, index)
    largest = next(iter(bindings))
    record = Recording(is_leaf=lambda var: var is largest)
    record.places.index("i", (Dim.of(4), Dim.of(3)))
    Reader(bindings, record).element(result, index)
    assert list(record.reads) == [(function.params[0], index), (largest, (index[0], Dim.of(0)))]


def test_a_chain_of_ten_thousand_is_read() -> None:
    steps = "".join(f"let %v{i + 1} = %v{i} + 1.0f32; " for i in range(10_000))
    function = kernel(f"def @main(%v0: Tensor[(4,), float32]) {{ {steps} %v10000 }}")
    record = Recording()
    reader = Reader(bindings_of(function.body), record)
    reader.element(results_of(function.body)[0], record.places.index("i", (Dim.of(4),)))
    assert len(record.reads) == 1
