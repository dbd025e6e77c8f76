"""Shapes of views, joins, products, convolutions and pools: symbolic, and inferred backwards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from pyrelay.ir.bounds import at_most, is_nonnegative, maximum, minimum
from pyrelay.ir.dims import Dim
from pyrelay.ir.op import Clash, Op, RuleCall, Stuck
from pyrelay.ir.types import (
    INT,
    UNIT,
    DTypeKind,
    SizeType,
    TensorType,
    TupleType,
    Type,
    bool_,
    int64,
    tensor_type,
)
from pyrelay.operators.composite import cross_entropy, distance, einsum, norm
from pyrelay.operators.host import conversions
from pyrelay.operators.matrices import products as linalg
from pyrelay.operators.primitive import (
    conv,
    conv_transpose,
    create,
    embedding,
    index,
    join,
    parts,
    pool,
    view,
)
from tests.ops.rule_calls import floats, new_solver, shape_text, type_of_call

IMAGE = floats("N", 1, 28, 28)
KERNEL = floats(20, 1, 5, 5)


@pytest.mark.parametrize(
    ("op", "operands", "attrs", "shape"),
    [
        (view.reshape, (floats("n", 3, 4),), {"shape": ("n", 12)}, "n, 12"),
        (view.reshape, (floats("n", 3, 4),), {"shape": (-1, 4)}, "3*n, 4"),
        (view.reshape, (floats("n", "m"),), {"shape": ("m", -1)}, "m, n"),
        (view.flatten, (floats("n", 50, 4, 4),), {"start_dim": 1}, "n, 800"),
        (view.unsqueeze, (floats("n"),), {"dim": -1}, "n, 1"),
        (view.squeeze, (floats("n", 1),), {"dim": 1}, "n"),
        (view.expand, (floats("n", 1),), {"size": ("b", -1, "m")}, "b, n, m"),
        (view.permute, (floats("a", "b", "c"),), {"dims": (2, 0, 1)}, "c, a, b"),
        (join.cat, (TupleType((floats("n", 3), floats("m", 3))),), {}, "m + n, 3"),
        (join.stack, (TupleType((floats("n"), floats("n"))),), {"dim": 1}, "n, 2"),
        (join.pad, (floats("n", "m"),), {"pad": (1, 2)}, "n, m + 3"),
        (join.repeat, (floats("n"),), {"repeats": (2, 3)}, "2, 3*n"),
        (join.tile, (floats("n", "m"),), {"dims": (2,)}, "n, 2*m"),
        (create.arange, (), {"start": Dim.of("a"), "end": Dim.of("b")}, "-a + b"),
        (create.arange, (), {"end": Dim.of("n"), "step": 2}, "(n + 1) // 2"),
        (linalg.matmul, (floats("n", "k"), floats("k", "m")), {}, "n, m"),
        (linalg.matmul, (floats("b", "n", "k"), floats("k")), {}, "b, n"),
        (linalg.matmul, (floats("k"), floats("b", "k", "m")), {}, "b, m"),
        (linalg.matmul, (floats("b", 1, "n", "k"), floats("c", "k", "m")), {}, "b, c, n, m"),
        (linalg.linear, (floats("n", 784), floats(10, 784), UNIT), {}, "n, 10"),
        (
            einsum.einsum,
            (TupleType((floats("b", "i", "j"), floats("j", "k"))),),
            {"equation": "...ij,jk->...ik"},
            "b, i, k",
        ),
        (linalg.diagonal, (floats("n", "n"),), {}, "n"),
        (linalg.diagonal, (floats("n", "n"),), {"offset": 1}, "max(n - 1, 0)"),
        (conv.conv2d, (IMAGE, KERNEL, UNIT), {}, "N, 20, 24, 24"),
        (
            conv.conv2d,
            (floats("N", 3, "h", "w"), floats(8, 3, 3, 3), UNIT),
            {"stride": 2, "padding": 1},
            "N, 8, (h + 1) // 2, (w + 1) // 2",
        ),
        (
            conv.conv2d,
            (floats("N", 3, "h", "w"), floats(8, 3, 3, 2), UNIT),
            {"padding": "same", "dilation": 3},
            "N, 8, h, w",
        ),
        (conv.conv1d, (floats("N", 4, "t"), floats(8, 2, 3), UNIT), {"groups": 2}, "N, 8, t - 2"),
        (
            conv_transpose.conv_transpose2d,
            (floats("N", 3, "h", 4), floats(3, 8, 2, 2), UNIT),
            {"stride": 2},
            "N, 8, 2*h, 8",
        ),
        (pool.max_pool2d, (floats("N", 20, 24, 24),), {"kernel_size": 2}, "N, 20, 12, 12"),
        (pool.max_pool2d, (floats(3, "h", 7),), {"kernel_size": 2}, "3, h // 2, 3"),
        (pool.avg_pool2d, (floats(3, 5, 7),), {"kernel_size": 2, "ceil_mode": True}, "3, 3, 4"),
        (
            pool.adaptive_avg_pool2d,
            (floats("N", 3, 6, 5),),
            {"output_size": (None, 1)},
            "N, 3, 6, 1",
        ),
        (embedding.embedding, (tensor_type(int64, "n", "t"), floats(9, 4)), {}, "n, t, 4"),
        (cross_entropy.softmax_cross_entropy, (floats("n", 10), tensor_type(int64, "n")), {}, ""),
        (distance.mse_loss, (floats("n", 3), floats("n", 3)), {"reduction": "none"}, "n, 3"),
    ],
)
def test_a_shape_follows_from_named_dims(
    op: Op, operands: Sequence[Type], attrs: Mapping[str, Any], shape: str
) -> None:
    assert shape_text(type_of_call(op, operands, attrs)) == shape


@pytest.mark.parametrize(
    ("op", "known", "attrs", "unknown", "expected"),
    [
        (linalg.matmul, floats("n", 784), {}, (None, 10), "784, 10"),
        (linalg.linear, floats("n", 784), {}, (10, None), "10, 784"),
        (conv.conv2d, IMAGE, {}, (20, None, 5, 5), "20, 1, 5, 5"),
        (conv_transpose.conv_transpose2d, floats("n", 7, 3, 3), {}, (None, 2, 2, 2), "7, 2, 2, 2"),
    ],
)
def test_the_input_tells_the_unknown_dim_of_a_weight(
    op: Op,
    known: TensorType,
    attrs: Mapping[str, Any],
    unknown: Sequence[int | None],
    expected: str,
) -> None:
    solver = new_solver()
    weight = floats(*(solver.fresh_dim_hole() if d is None else d for d in unknown))
    operands = (known, weight) if op is linalg.matmul else (known, weight, UNIT)
    type_of_call(op, operands, attrs, solver)
    assert shape_text(solver.resolve(weight)) == expected


def test_the_weight_tells_the_unknown_dim_of_an_input() -> None:
    solver = new_solver()
    x = floats("n", solver.fresh_dim_hole())
    result = type_of_call(linalg.linear, (x, floats(10, 784), UNIT), {}, solver)
    assert shape_text(solver.resolve(x)) == "n, 784"
    assert shape_text(result) == "n, 10"


def test_the_new_shape_tells_one_unknown_dim_of_the_old() -> None:
    solver = new_solver()
    x = floats("n", 50, solver.fresh_dim_hole())
    type_of_call(view.reshape, (x,), {"shape": ("n", 800)}, solver)
    assert shape_text(solver.resolve(x)) == "n, 50, 16"


def test_an_inferred_size_waits_until_the_old_shape_is_known() -> None:
    solver = new_solver()
    with pytest.raises(Stuck):
        type_of_call(
            view.reshape, (floats("n", solver.fresh_dim_hole()),), {"shape": (-1,)}, solver
        )


def test_a_division_that_may_leave_a_rest_becomes_an_assumption() -> None:
    solver = new_solver()
    result = type_of_call(view.reshape, (floats("n"),), {"shape": (-1, 4)}, solver)
    assert shape_text(result) == "n // 4, 4"
    assert [(str(a.left), str(a.right)) for a in solver.assumptions] == [("n", "4*(n // 4)")]


def test_two_names_in_a_product_become_an_assumption() -> None:
    solver = new_solver()
    type_of_call(linalg.matmul, (floats("a", "b"), floats("c", "d")), {}, solver)
    assert [(str(a.left), str(a.right)) for a in solver.assumptions] == [("b", "c")]


@pytest.mark.parametrize(
    ("op", "operands", "attrs", "message", "advice"),
    [
        (
            linalg.matmul,
            (floats("n", 784), floats(10, 784)),
            {},
            "`matmul` cannot multiply Tensor[Float, (n, 784)] by Tensor[Float, (10, 784)]: "
            "784 columns against 10 rows",
            "the other dim fits: `x @ w.T`",
        ),
        (
            linalg.linear,
            (floats("n", 784), floats(784, 10), UNIT),
            {},
            "`linear` got 784 features, its weight takes 10",
            "the weight is (out_features, in_features): pass `w.T`",
        ),
        (
            linalg.linear,
            (floats("n", 50, 4, 4), floats(500, 800), UNIT),
            {},
            "`linear` got 4 features, its weight takes 800",
            "flatten the other dims first: relay.flatten(x, start_dim=1)",
        ),
        (
            conv.conv2d,
            (floats(28, 28), KERNEL, UNIT),
            {},
            "`conv2d` takes a tensor (batch, channels, height, width), not Tensor[Float, (28, 28)]",
            "add the channel dim: relay.unsqueeze(x, dim=0), and a batch dim if there is one",
        ),
        (
            conv.conv2d,
            (floats("N", 3, 28, 28), KERNEL, UNIT),
            {},
            "`conv2d` got 3 channels, its weight takes 1",
            None,
        ),
        (
            conv.conv2d,
            (floats("N", 1, 4, 4), KERNEL, UNIT),
            {},
            "`conv2d` has a window of 5 that does not fit a size of 4",
            None,
        ),
        (
            view.reshape,
            (floats("B", 3, 4),),
            {"shape": (12,)},
            "`reshape` cannot make shape (12,) of Tensor[Float, (B, 3, 4)]: "
            "12*B elements against 12, the factor B is missing",
            "keep it as a dim: reshape(x, (B, 12))",
        ),
        (
            view.reshape,
            (floats(2, 6),),
            {"shape": (5, -1)},
            "`reshape` cannot make shape (5, -1) of Tensor[Float, (2, 6)]: "
            "12 elements are not a multiple of 5",
            None,
        ),
        (
            view.squeeze,
            (floats("n", 1),),
            {},
            "`squeeze` cannot tell whether the size n is 1",
            "drop the others by name: squeeze(x, dim=...)",
        ),
        (
            join.cat,
            (TupleType((floats("n", 3), floats("m", 4))),),
            {},
            "`cat` takes tensors that agree in dim 1: the first is Tensor[Float, (n, 3)], "
            "number 2 is Tensor[Float, (m, 4)]",
            None,
        ),
        (
            parts.split,
            (floats("n"),),
            {"split_size_or_sections": 2},
            "`split` cannot tell how many parts of 2 a size of n has",
            "write the sections: split(x, (n, m))",
        ),
        (
            cross_entropy.softmax_cross_entropy,
            (floats("n", 10), floats("n")),
            {},
            "`softmax_cross_entropy` of Tensor[Float, (n, 10)] takes classes of shape (n,) or "
            "distributions of the shape of the input, not Tensor[Float, (n,)]",
            (1, int64),
        ),
        (
            distance.mse_loss,
            (floats("n", 1), floats("n")),
            {},
            "`mse_loss` takes tensors of one rank, not Tensor[Float, (n, 1)] and "
            "Tensor[Float, (n,)]",
            "drop or add the dim that differs: relay.squeeze(x, dim=-1)",
        ),
        (
            embedding.embedding,
            (floats("n"), floats(9, 4)),
            {},
            "`embedding` looks rows up by integers, not Tensor[Float, (n,)]",
            "cast them: relay.cast(x, relay.int64)",
        ),
        (
            norm.layer_norm,
            (floats("n", 4), UNIT, UNIT),
            {"normalized_shape": 5},
            "`layer_norm` over (5) does not fit Tensor[Float, (n, 4)]",
            None,
        ),
        (
            conversions.to_float,
            (floats("n"),),
            {},
            "`float()` takes one number, not Tensor[Float, (n,)]",
            "to convert every element: relay.cast(x, relay.float32)",
        ),
    ],
)
def test_a_mistake_is_named_with_the_way_out(
    op: Op, operands: Sequence[Type], attrs: Mapping[str, Any], message: str, advice: object
) -> None:
    with pytest.raises(Clash) as caught:
        type_of_call(op, operands, attrs)
    assert caught.value.message == message
    assert (caught.value.help or caught.value.cast) == advice  # the operand to cast, and to what


def hidden_type(op: Op, name: str, x: TensorType, attrs: Mapping[str, Any]) -> str:
    solver = new_solver()
    defaults = {p.name: p.default for p in op.attributes if p.role is not None}
    hidden = next(h for h in op.hidden if h.name == name)
    types = (x, *(solver.fresh() for _ in op.operands[1:]))
    return shape_text(hidden.type_rule(RuleCall(op, types, {**defaults, **attrs}, solver)))


@pytest.mark.parametrize(
    ("op", "name", "x", "attrs", "shape"),
    [
        (linalg.linear, "weight", floats("n", 784), {"out_features": 10}, "10, 784"),
        (linalg.linear, "bias", floats("n", 784), {"out_features": 10}, "10"),
        (
            conv.conv2d,
            "weight",
            floats("n", 6, 9, 9),
            {"out_channels": 4, "kernel_size": (3, 2), "groups": 2},
            "4, 3, 3, 2",
        ),
        (
            conv.conv1d,
            "weight",
            floats("n", 6, 9),
            {"out_channels": 4, "kernel_size": 3},
            "4, 6, 3",
        ),
        (
            conv_transpose.conv_transpose2d,
            "weight",
            floats("n", 6, 9, 9),
            {"out_channels": 4, "kernel_size": 3},
            "6, 4, 3, 3",
        ),
        (norm.batch_norm, "running_mean", floats("n", 6, 9), {}, "6"),
        (norm.layer_norm, "weight", floats("n", 6), {"normalized_shape": 6}, "6"),
        (
            embedding.embedding,
            "weight",
            tensor_type(int64, "n"),
            {"num_embeddings": 9, "embedding_dim": 4},
            "9, 4",
        ),
    ],
)
def test_a_hidden_parameter_gets_its_shape_from_the_input(
    op: Op, name: str, x: TensorType, attrs: Mapping[str, Any], shape: str
) -> None:
    assert hidden_type(op, name, x, attrs) == shape


def sliced(size: Dim | int | str, *bounds: Any) -> str:
    spec = (("slice", *bounds),)
    return shape_text(type_of_call(index.index, (floats(size), UNIT), {"spec": spec}))


N = Dim.of("n")


@pytest.mark.parametrize(
    ("bounds", "length"),
    [
        ((None, None, None), "n"),
        ((1, None, None), "max(n - 1, 0)"),
        ((None, -1, None), "max(n - 1, 0)"),
        ((1, -1, None), "max(n - 2, 0)"),
        ((-3, None, None), "min(n, 3)"),
        ((None, 10, None), "min(n, 10)"),
        ((1, 4, None), "min(max(n - 1, 0), 3)"),
        ((None, N // 2, None), "n // 2"),
        ((N // 2, None, None), "n - (n // 2)"),
        ((None, Dim.of("k"), None), "min(k, n)"),
        ((Dim.of("k"), None, None), "max(-k + n, 0)"),
        ((None, None, 2), "(n + 1) // 2"),
        ((1, None, 2), "n // 2"),
        ((None, None, -1), "n"),
        ((-2, None, -1), "max(n - 1, 0)"),
        ((3, 1, None), "0"),
    ],
)
def test_a_slice_of_a_named_dim_has_a_length(bounds: Sequence[Any], length: str) -> None:
    assert sliced(N, *bounds) == length


def test_a_bound_that_could_be_negative_is_assumed_not_to_be() -> None:
    solver = new_solver()
    spec = (("slice", N - 5, None, None),)
    ty = type_of_call(index.index, (floats("n"), UNIT), {"spec": spec}, solver)
    assert shape_text(ty) == "5"
    assert [(str(a.left), str(a.right)) for a in solver.assumptions] == [("max(n - 5, 0)", "n - 5")]


def test_a_bound_that_only_the_program_knows_gives_such_a_size() -> None:
    solver = new_solver()
    found = solver.fresh_dim("found")
    spec = (("slice", found - 1, None, None),)
    ty = type_of_call(index.index, (floats("n"), UNIT), {"spec": spec}, solver)
    assert isinstance(ty, TensorType)
    assert solver.is_found_running(ty.shape[0])
    assert not solver.assumptions


def test_a_slice_of_an_unknown_dim_waits() -> None:
    solver = new_solver()
    x = floats(solver.fresh_dim_hole())
    spec = (("slice", 1, None, None),)
    with pytest.raises(Stuck):
        type_of_call(index.index, (x, UNIT), {"spec": spec}, solver)


def test_a_mask_gives_a_size_that_only_the_program_knows() -> None:
    solver = new_solver()
    mask = TupleType((tensor_type(bool_, "n"),))
    ty = type_of_call(index.index, (floats("n", 3), mask), {"spec": (("int", 0),)}, solver)
    assert isinstance(ty, TensorType)
    assert ty.shape[0].name is not None
    assert solver.is_existential(ty.shape[0].name)
    assert ty.shape[1] == Dim.of(3)


def test_a_number_that_indexes_becomes_an_int() -> None:
    solver = new_solver()
    number = TensorType((), solver.fresh_dtype(DTypeKind.INT))
    type_of_call(index.index, (floats("n"), TupleType((number,))), {"spec": (("int", 0),)}, solver)
    assert solver.resolve(number) == INT


@pytest.mark.parametrize(
    ("indices", "spec", "message"),
    [
        ((SizeType(Dim.of(3)),), (("int", 0),), "index 3 is out of range for a dim of size 3"),
        ((SizeType(Dim.of(-4)),), (("int", 0),), "index -4 is out of range for a dim of size 3"),
        (
            (INT, INT, INT),
            (("int", 0), ("int", 1), ("int", 2)),
            "too many indices: 3 for a tensor of 2 dimensions",
        ),
        (
            (tensor_type(bool_, 4),),
            (("int", 0),),
            "a mask has the shape of what it masks: 4 is not 3",
        ),
        ((floats(),), (("int", 0),), "an index is an integer, a slice or a mask, not Float"),
        ((), (("ellipsis",), ("ellipsis",)), "an index has at most one `...`"),
        ((), (("slice", None, None, 0),), "a slice takes no step of 0"),
    ],
)
def test_a_wrong_index_is_refused(
    indices: tuple[Type, ...], spec: tuple[Any, ...], message: str
) -> None:
    with pytest.raises(Clash) as caught:
        type_of_call(index.index, (floats(3, 4), TupleType(indices)), {"spec": spec})
    assert caught.value.message == message


def test_what_is_written_must_fit_its_place() -> None:
    with pytest.raises(Clash, match=r"does not fit the place it is written to, \(4\)"):
        type_of_call(
            index.set_at, (floats(3, 4), TupleType((INT,)), floats(3)), {"spec": (("int", 0),)}
        )


def test_bounds_know_what_sizes_cannot_be() -> None:
    n, m = Dim.of("n"), Dim.of("m")
    assert is_nonnegative(n * m + 3)
    assert is_nonnegative(n - n // 2)
    assert is_nonnegative(n - (n // 3) * 3)
    assert is_nonnegative(minimum(n, Dim.of(10)))
    assert at_most(n % 4, Dim.of(3))
    assert not is_nonnegative(n - 1)
    assert not is_nonnegative(n - m)
    assert minimum(n // 2, n) == n // 2
    assert minimum(n, m) == n + m - maximum(n, m)
