"""Every other way to do an operator gives what its own body gives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
import torch

from pyrelay.ir.calls.attributes import bind_attrs
from pyrelay.ir.dims import Dim
from pyrelay.ir.op import Contraction, Library, Method, Op, Sample, TensorSpec
from pyrelay.ir.types import DTYPES, UNIT, TensorType, Type
from pyrelay.lower_torch.apply import run_time_attr
from pyrelay.operators.matrices.products import linear, matmul
from pyrelay.operators.primitive.conv import conv1d, conv2d, conv_backward
from pyrelay.operators.primitive.pool import max_pool2d, max_pool2d_with_indices
from pyrelay.operators.table import ALL
from tests.ops.checks import assert_equal, operands_of, samples
from tests.ops.materials import tensors


@dataclass(frozen=True)
class Case:
    """A method of an operator and a sample of operands that it fits."""

    op: Op
    method: Method
    sample: Sample

    @property
    def name(self) -> str:
        specs = [a for a in self.sample.operands if isinstance(a, TensorSpec)]
        shapes = [f"{s.shape}{'' if s.contiguous else ' strided'}" for s in specs]
        return f"{self.op.name}-{self.method.name}-{shapes}-{dict(self.sample.attrs)}"


def specs(*shapes: Any, strided: bool = False) -> tuple[TensorSpec | None, ...]:
    """Return operands of shapes, None for one that is omitted."""
    return tuple(None if s is None else TensorSpec(s, contiguous=not strided) for s in shapes)


def images() -> Iterator[Sample]:
    """Return convolutions of many forms."""
    for batch, channels, out in ((1, 1, 20), (1, 20, 50), (3, 16, 32), (2, 3, 4), (0, 3, 4)):
        shapes = (batch, channels, 9, 8), (out, channels, 3, 2), (out,)
        yield Sample(specs(*shapes))
        yield Sample(specs(*shapes[:2], None))
        yield Sample(specs(*shapes, strided=True))
        yield Sample(specs(*shapes), {"stride": (2, 1), "padding": (1, 0)})
        yield Sample(specs(*shapes), {"stride": 3, "padding": 2})
        yield Sample(specs(*shapes), {"padding": "same"})
        yield Sample(specs(*shapes), {"padding": "valid"})
        yield Sample(specs(*shapes), {"dilation": 2})
    yield Sample(specs((2, 4, 6, 6), (6, 2, 3, 3), (6,)), {"groups": 2})


def rows() -> Iterator[Sample]:
    """Return convolutions of rows."""
    for batch, channels, out in ((1, 1, 7), (4, 16, 32), (2, 3, 4), (0, 3, 4)):
        shapes = (batch, channels, 9), (out, channels, 3), (out,)
        yield Sample(specs(*shapes))
        yield Sample(specs(*shapes[:2], None, strided=True))
        yield Sample(specs(*shapes), {"stride": 2, "padding": 2})
        yield Sample(specs(*shapes), {"padding": "same"})


def gradients() -> Iterator[Sample]:
    """Return the forms of `conv_backward`, whatever is wanted of it."""
    all_wanted = [(a, b, c) for a in (1, 0) for b in (1, 0) for c in (1, 0) if a or b or c]
    for batch, channels, out in ((1, 1, 20), (1, 20, 50), (3, 16, 32), (0, 3, 4)):
        image, weight = (batch, channels, 9, 8), (out, channels, 3, 2)
        for found in all_wanted:
            wanted = tuple(map(bool, found))
            yield Sample(specs((batch, out, 7, 7), image, weight), {"wanted": wanted})
        everything = {"wanted": (True, True, True)}
        yield Sample(specs((batch, out, 7, 7), image, weight, strided=True), everything)
        window = {"stride": (2, 1), "padding": (1, 0)}
        yield Sample(specs((batch, out, 5, 7), image, weight), everything | window)


def windows() -> Iterator[Sample]:
    """Return pools of many forms."""
    for shape in ((1, 20, 8, 8), (3, 16, 7, 5), (2, 3, 6, 6), (0, 3, 6, 6)):
        for attrs in (
            {"kernel_size": 2},
            {"kernel_size": 3, "stride": 2, "padding": 1},
            {"kernel_size": (2, 1), "stride": 1, "dilation": 2},
            {"kernel_size": 2, "ceil_mode": True},
        ):
            yield Sample(specs(shape), attrs)
            yield Sample(specs(shape, strided=True), attrs)


def products() -> Iterator[Sample]:
    """Return products of matrices that are not small."""
    for shape in ((1, 300), (5, 300), (2, 3, 300)):
        yield Sample(specs(shape, (300, 900)))
        yield Sample(specs(shape, (300, 900), strided=True))


def layers() -> Iterator[Sample]:
    """Return layers that are not small."""
    for shape in ((1, 300), (5, 300), (2, 3, 300)):
        yield Sample(specs(shape, (900, 300), (900,)))
        yield Sample(specs(shape, (900, 300), None, strided=True))


MORE = {
    conv2d: images,
    conv1d: rows,
    conv_backward: gradients,
    max_pool2d: windows,
    max_pool2d_with_indices: windows,
    matmul: products,
    linear: layers,
}


def methods(op: Op) -> tuple[Method, ...]:
    """Return the methods of an operator, if it has any."""
    return op.lowering.methods if isinstance(op.lowering, Library | Contraction) else ()


def types(sample: Sample) -> list[Type]:
    """Return the types of the operands."""
    return [
        TensorType(tuple(map(Dim.of, arg.shape)), DTYPES[arg.dtype])
        if isinstance(arg, TensorSpec)
        else UNIT
        for arg in sample.operands
    ]


def cases() -> Iterator[Case]:
    """Return every method with every sample that it fits."""
    for op in filter(methods, ALL):
        for sample in (*samples(op), *MORE[op]()):
            bound = bind_attrs(op, sample.attrs)
            for method in methods(op):
                if method.fits(types(sample), bound):
                    yield Case(op, method, sample)


CASES = list(cases())


def both(case: Case, values: Sequence[torch.Tensor]) -> tuple[Any, Any]:
    """Return what the method gives, and what the operator's own body gives."""
    bound = bind_attrs(case.op, case.sample.attrs).values()
    attrs = [run_time_attr(value, lambda dim: int(str(dim))) for value in bound]
    operands = operands_of(case.sample, values)
    lowering = case.op.lowering
    assert isinstance(lowering, Library | Contraction)
    other = case.method.body(torch, *operands, *attrs)
    return other, lowering.body(torch, *operands, *attrs)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_method_gives_what_the_body_gives(case: Case) -> None:
    values = tensors(case.sample)
    if all(value.numel() for value in values):
        actual, expected = both(case, values)
        assert_equal(actual, expected, rtol=2e-5, atol=2e-5)
        parts = actual if isinstance(actual, tuple) else (actual,)
        assert all(part.is_contiguous() for part in parts)


def test_every_method_was_tried() -> None:
    tried = {(case.op.name, case.method.name) for case in CASES}
    assert tried == {(op.name, m.name) for op in ALL for m in methods(op)}
    assert len(tried) == 9


@pytest.mark.parametrize("op", [max_pool2d_with_indices], ids=lambda op: op.name)
def test_pools_agree_which_of_equal_elements_is_the_largest(op: Op) -> None:
    nan, generator = float("nan"), torch.Generator().manual_seed(0)
    image = torch.randint(0, 3, (2, 19, 8, 8), generator=generator).float()
    image[0, :, 3, 3] = nan
    image[1, :, ::2, 1] = -float("inf")
    for case in CASES:
        if case.op is op and case.sample.operands == specs((2, 3, 6, 6)):
            actual, expected = both(case, [image])
            assert_equal(actual, expected, rtol=0, atol=0)
