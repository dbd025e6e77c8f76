"""What operators are inside kernels: each gives its own value from its fused meaning alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pytest
import torch

from pyrelay.diagnostics.diagnostic import RunError
from pyrelay.ir.declaration.lowering import Elementwise, Host, MadeOf, inside
from pyrelay.ir.dims import Dim
from pyrelay.ir.op import Clash, Effect, Op, Sample, TensorSpec
from pyrelay.ir.types import DType, TensorType, Type, bfloat16, float16, float64, is_float
from pyrelay.operators.composite import (
    classes,
    cross_entropy,
    descent,
    loss,
    measure,
    norm,
    softmax,
    statistics,
)
from pyrelay.operators.composite.dropout import dropout
from pyrelay.operators.primitive import random
from pyrelay.operators.table import ALL, GENERATED
from tests.ops.checks import assert_equal, samples
from tests.ops.fused import fused_result, is_given, program_of, result_and_inputs
from tests.ops.materials import in_precision, shape_names, tensors

EVERY: Final = (*ALL, *GENERATED)
CALLED: Final = {
    "array_equal": "steers the program; shapes may differ",
    "cumprod": "each element needs the one before",
    "cumsum": "each element needs the one before",
    "recurrence": "each element needs the one before",
    "argsort": "sorts",
    "sort": "sorts",
    "topk": "sorts",
    "nonzero": "finds its size while it runs",
    "cholesky": "the libraries' factorisations win",
    "det": "the libraries' factorisations win",
    "eigh": "the libraries' factorisations win",
    "inv": "the libraries' factorisations win",
    "logdet": "the libraries' factorisations win",
    "pinv": "the libraries' factorisations win",
    "qr": "the libraries' factorisations win",
    "slogdet": "the libraries' factorisations win",
    "solve": "the libraries' factorisations win",
    "solve_triangular": "the libraries' factorisations win",
    "svd": "the libraries' factorisations win",
    "scaled_dot_product_attention": "the library's attention wins",
    "searchsorted": "searches",
    "bincount": "finds its size while it runs",
    "unfold": "stores what the library's product reads",
    "fold": "adds where windows overlap",
    "conv1d": "the libraries' convolutions win",
    "conv3d": "the libraries' convolutions win",
    "conv2d": "the libraries' convolutions win",
    "conv_backward": "the libraries' convolutions win",
    "conv_input_grad": "the libraries' convolutions win",
    "conv_weight_grad": "the libraries' convolutions win",
    "conv_transpose2d": "the libraries' convolutions win",
    "stretch": "the running program alone knows whether its operand has size 1",
    "unstretch": "the running program alone knows whether its operand has size 1",
    "to_bool": "steers the program, on the host",
    "to_int": "steers the program, on the host",
    "next_element": "takes what a caller's iterator gives",
    "initial": "makes a parameter, once",
    "stack_rows": "walks a list",
    "collect": "walks a list",
    "unstack": "makes a list",
    "overwrite": "is what a kernel stores, said by its caller",
    "first_places": "compares each number with those before it",
    "to_layout": "is written out before kernels are made",
}
"""Operators on tensors that are nothing inside a kernel, and why."""

fused = pytest.mark.parametrize(
    "op",
    [op for op in EVERY if inside(op.lowering) is not None and not op.effect & Effect.STATE],
    ids=lambda op: op.name,
)


def check(op: Op, sample: Sample, names: Mapping[int, Dim], tolerance: float = 1e-5) -> bool:
    """Compare the value, if the declaration says something of the call; return whether it does."""
    found, args = result_and_inputs(op, sample, names)
    if found is None:
        return False
    program, result = program_of(op, sample, names)
    exact = not has_floats(result.ty) or op in DRAWN
    rtol, atol = (0.0, 0.0) if exact else (tolerance, tolerance / 10)
    assert_equal(found, program.run(result, args), rtol=rtol, atol=atol, dtype=False)
    return True


def has_floats(ty: Type) -> bool:
    return not isinstance(ty, TensorType) or is_float(ty.dtype)


DRAWN: Final = (random.uniform, dropout)
"""Operators whose floats are the same bits everywhere."""


def test_each_operator_is_something_in_a_kernel_or_there_is_a_reason() -> None:
    silent = {
        op.name for op in EVERY if inside(op.lowering) is None and not isinstance(op.lowering, Host)
    }
    assert silent == set(CALLED)


@fused
def test_an_operator_gives_its_value_from_what_it_is_inside_a_kernel(op: Op) -> None:
    said = [check(op, sample, {}) for sample in samples(op)]
    assert any(said)


@fused
def test_what_it_is_inside_a_kernel_looks_at_no_size(op: Op) -> None:
    for sample in samples(op):
        try:
            check(op, sample, shape_names(sample))
        except Clash:
            continue  # some operators need a number where others take a name


def assert_as_precise(op: Op, sample: Sample) -> None:
    """Compare with the operator in double precision: no element is further off than twice what the
    operator itself is at most, and a few times what its dtype can tell apart."""
    found, args = result_and_inputs(op, sample, {})
    if found is None:
        return
    program, result = program_of(op, sample, {})
    own = program.run(result, args)
    wide, total = program_of(op, in_precision(sample, float64), {})
    exact = wide.run(total, [a.double() if a.is_floating_point() else a for a in args])
    for actual, expected, true in zip(*map(_parts, (found, own, exact)), strict=True):
        assert actual.dtype == expected.dtype
        if not actual.numel():
            continue
        step = torch.finfo(actual.dtype).eps if actual.is_floating_point() else 0.0
        step = max(step, 2.0**-30)  # the learning rate of a sample is of single precision
        actual, expected, true = actual.double(), expected.double(), true.double()
        worst = (expected - true).abs().nan_to_num(0.0, 0.0).max()
        allowed = 2 * worst + 4 * step * (1 + true.abs())
        off = (actual - true).abs()
        same = (actual == true) | (actual.isnan() & true.isnan()) | (actual == expected)
        assert (same | (off <= allowed)).all(), (sample, off, allowed)


def _parts(value: Any) -> list[torch.Tensor]:
    if isinstance(value, tuple):
        return [t for part in value for t in _parts(part)]
    return [torch.as_tensor(value)]


@pytest.mark.parametrize("dtype", [bfloat16, float16, float64], ids=str)
@pytest.mark.parametrize(
    "op",
    [op for op in ALL if isinstance(inside(op.lowering), MadeOf | Elementwise)],
    ids=lambda op: op.name,
)
def test_other_precisions_are_kept(op: Op, dtype: DType) -> None:
    for sample in samples(op):
        narrowed = in_precision(sample, dtype)
        try:
            program, result = program_of(op, narrowed, {})
            program.run(result, tensors(narrowed))
        except (Clash, RunError):
            continue  # torch has no such kernel, or the operands no such dtype together
        assert_as_precise(op, narrowed)


FAR: Final = TensorSpec((3, 40), low=9_999.0, high=10_001.0)
STEEP: Final = TensorSpec((3, 40), low=-500.0, high=500.0)
CLASSES: Final = TensorSpec((3,), "int64", 0, 40)
HARD: Final = (
    (softmax.softmax, Sample((STEEP,), {"dim": 1})),
    (softmax.log_softmax, Sample((STEEP,), {"dim": 1})),
    (measure.logsumexp, Sample((STEEP,), {"dim": 1})),
    (measure.var, Sample((FAR,), {"dim": 1})),
    (measure.std, Sample((FAR,), {"dim": 1})),
    (norm.layer_norm, Sample((FAR, None, None), {"normalized_shape": (40,)})),
    (statistics.batch_norm_with_statistics, Sample((FAR, None, None))),
    (cross_entropy.softmax_cross_entropy, Sample((STEEP, CLASSES))),
    (
        loss.binary_cross_entropy_with_logits,
        Sample((STEEP, TensorSpec((3, 40), low=0.0, high=1.0), None, None)),
    ),
)


@pytest.mark.parametrize(("op", "sample"), HARD, ids=lambda v: v.name if isinstance(v, Op) else "")
def test_composites_are_as_stable_as_torch(op: Op, sample: Sample) -> None:
    assert_as_precise(op, sample)


def test_infinities_and_rows_of_none_follow_torch() -> None:
    rows = torch.tensor([[-torch.inf, -torch.inf], [torch.inf, 0.0], [-torch.inf, 1.0]])
    sample = Sample((TensorSpec((3, 2)),), {"dim": 1})
    for op, expected in (
        (measure.logsumexp, torch.logsumexp(rows, 1)),
        (softmax.softmax, torch.softmax(rows, 1)),
    ):
        assert_equal(fused_result(op, sample, {}, [rows]), expected, rtol=1e-6, atol=0.0)


def test_a_batch_that_may_have_one_value_per_channel_is_left_to_torch_which_refuses_it() -> None:
    op, some = statistics.batch_norm_with_statistics, {4: Dim.of("n")}
    rows = Sample((TensorSpec((4, 3)), None, None))
    images = Sample((TensorSpec((4, 3, 5, 5)), None, None))
    assert [check(op, rows, {}), check(op, rows, some), check(op, images, some)] == [
        True,
        False,
        True,
    ]


def test_ignored_classes_count_for_nothing() -> None:
    scores, chosen = torch.randn(5, 4), torch.tensor([1, -100, 3, 0, -100])
    sample = Sample((TensorSpec((5, 4)), TensorSpec((5,), "int64", 0, 4)))
    found = fused_result(cross_entropy.softmax_cross_entropy, sample, {}, [scores, chosen])
    expected = torch.nn.functional.cross_entropy(scores, chosen)
    assert_equal(found, expected, rtol=1e-6, atol=1e-6)
    g, total = torch.tensor(2.0), torch.tensor(3.0)
    given = Sample((TensorSpec(()), *sample.operands, TensorSpec(())))
    slopes = fused_result(classes.nll_loss_grad, given, {}, [g, scores, chosen, total])
    assert not slopes[chosen == -100].any()


_MATRIX, _VECTOR = TensorSpec((3, 4)), TensorSpec((2,))
_FACTORS = (TensorSpec((3, 5)), TensorSpec((5, 4)))
WRITES = {
    descent.descend_in_place: Sample(((_MATRIX, _VECTOR), (_FACTORS, _VECTOR)), {"lr": 0.1}),
    descent.overwrite_all: Sample(((_MATRIX, _VECTOR), (_MATRIX, _VECTOR))),
}


@pytest.mark.parametrize(("op", "sample"), WRITES.items(), ids=lambda of: getattr(of, "name", ""))
def test_a_model_moves_as_if_by_one_call(op: Op, sample: Sample) -> None:
    def tree() -> list[torch.Tensor]:
        generator = torch.Generator().manual_seed(0)
        return [torch.randn(spec.shape, generator=generator) for spec in _specs(sample.operands)]

    moved, expected = tree(), tree()
    assert is_given(op, sample)
    fused_result(op, sample, {}, moved)
    program, result = program_of(op, sample, {})
    program.run(result, expected)
    assert_equal(moved, expected, rtol=1e-6, atol=1e-6)
    assert not torch.equal(moved[0], tree()[0])


def _specs(operands: Any) -> list[TensorSpec]:
    if isinstance(operands, TensorSpec):
        return [operands]
    return [spec for each in operands for spec in _specs(each)]
