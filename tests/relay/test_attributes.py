"""Every attribute of every operator of Relay is honoured, or refused by its name."""

from __future__ import annotations

import re
from typing import Any, Final

import pytest
import torch
from torch import Tensor

from pyrelay import api
from pyrelay.diagnostics.diagnostic import CheckError
from pyrelay.relay05.attributes import Refused
from pyrelay.relay05.table import SUPPORTED
from tests.relay.operator_cases import annotation, draw
from tests.relay.reading import HEADER

NONSENSE: Final = (("nonsense",), 0.5)
"""What no attribute can be."""
ATTRIBUTES: Final = [(op, name) for op, known in SUPPORTED.items() for name in known.attributes]


def refusal(op: str, name: str) -> str:
    with pytest.raises(Refused) as caught:
        SUPPORTED[op].attributes[name].kind(name, NONSENSE)
    return caught.value.message


@pytest.mark.parametrize(("op", "name"), ATTRIBUTES, ids=str)
def test_an_attribute_refuses_by_its_name_what_it_cannot_be(op: str, name: str) -> None:
    assert f"`{name}" in refusal(op, name)


TENSORS: Final = {
    "X": draw(2, 3, 4),
    "Y": draw(2, 3, 4, low=0.1),
    "B": draw(2, 3, 4) > 0,
    "E": draw(2, 0),
    "O": draw(1, 2, 1),
    "S": draw(3, 4, 4),
    "Q": draw(4, 4),
    "I": draw(2, 4, 6, 6),
    "J": draw(2, 4, 4, 4),
    "K": draw(4, 4, 3, 3),
    "L": draw(4, 4, 4, 4),
    "M": draw(4, 2, 2, 2),
    "R": draw(2, 4, 6),
    "N": draw(4, 4, 3),
    "D": draw(4, 4, 4),
    "U": draw(2, 4, 4, 6, 6),
    "T": draw(4, 4, 4, 4, 4),
    "Z": draw(4, 4, 3, 3, 3),
    "V": draw(4, low=0.5),
    "P": torch.tensor([1, 7], dtype=torch.int32),
    "G": torch.randint(0, 4, (4, 4), generator=torch.Generator().manual_seed(0)),
    "A": torch.tensor(1.5),
    "C": torch.tensor(0.25),
    "b": torch.tensor([1]),
    "c": torch.tensor([2]),
    "d": torch.tensor([4, 5]),
    "e": torch.tensor([9]),
}
Values = tuple[str | None, str]
"""An attribute in the call that others are compared with, None where it is left out, and in
another."""

REDUCED: Final[dict[str, Values]] = {
    "axis": ("[1]", "[2]"),
    "keepdims": (None, "True"),
    "exclude": (None, "True"),
}
SCANNED: Final[dict[str, Values]] = {
    "axis": ("1", "0"),
    "dtype": (None, '"float64"'),
    "exclusive": (None, "True"),
}
SORTED: Final[dict[str, Values]] = {"axis": (None, "0"), "is_ascend": ("True", "False")}
TYPED: Final[dict[str, Values]] = {"out_dtype": (None, '"float64"')}
SWAPPED: Final[dict[str, Values]] = {"transpose_a": (None, "True"), "transpose_b": (None, "True")}
NORMAL: Final[dict[str, Values]] = {
    "axis": ("1", "2"),
    "epsilon": (None, "0.5f"),
    "center": (None, "False"),
    "scale": (None, "False"),
}
LAYOUT: Final[dict[str, Values]] = {"layout": (None, '"NHWC"'), "out_layout": (None, '"NHWC"')}
LINES: Final[dict[str, Values]] = {"layout": (None, '"NWC"'), "out_layout": (None, '"NWC"')}
POOLED: Final[dict[str, Values]] = {
    "pool_size": ("[3, 3]", "[2, 2]"),
    "strides": ("[2, 2]", "[1, 1]"),
    "padding": ("[1, 1]", "[0, 0]"),
    "ceil_mode": (None, "True"),
    **LAYOUT,
}
POOLED_LINES: Final[dict[str, Values]] = {
    "pool_size": ("[3]", "[2]"),
    "strides": ("[2]", "[1]"),
    "padding": ("[1]", "[0]"),
    "ceil_mode": (None, "True"),
    **LINES,
}
VOLUMES: Final[dict[str, Values]] = {"layout": (None, '"NDHWC"'), "out_layout": (None, '"NDHWC"')}
POOLED_VOLUMES: Final[dict[str, Values]] = {
    "pool_size": ("[3, 3, 3]", "[2, 2, 2]"),
    "strides": ("[2, 2, 2]", "[1, 1, 1]"),
    "padding": ("[1, 1, 1]", "[0, 0, 0]"),
    "ceil_mode": (None, "True"),
    **VOLUMES,
}

UPSAMPLED: Final[dict[str, Values]] = {
    "layout": (None, '"NHWC"'),
    "method": ('"bilinear"', '"nearest_neighbor"'),
    "align_corners": (None, "True"),
}
CASES: Final[dict[str, tuple[str, dict[str, Values]]]] = {
    "clip": ("%X", {"a_min": ("-1f", "0f"), "a_max": ("1f", "0.5f")}),
    "cast": ("%X", {"dtype": ('"int32"', '"int64"')}),
    **dict.fromkeys(("sum", "mean", "max", "min", "prod", "logsumexp"), ("%X", REDUCED)),
    **dict.fromkeys(("all", "any"), ("%B", REDUCED)),
    **dict.fromkeys(("argmax", "argmin"), ("%Q", REDUCED | {"axis": ("[1]", "[0]")})),
    "variance": ("%X, %Y", {**REDUCED, "unbiased": (None, "True")}),
    **dict.fromkeys(("cumsum", "cumprod"), ("%X", SCANNED)),
    **dict.fromkeys(("nn.softmax", "nn.log_softmax"), ("%X", {"axis": (None, "0")})),
    "argsort": ("%X", {**SORTED, "dtype": (None, '"int64"')}),
    "searchsorted": ("%V, %V", {"right": (None, "True"), "dtype": (None, '"int64"')}),
    "sort": ("%X", SORTED),
    "topk": (
        "%X",
        {
            "k": ("2", "0"),
            "axis": (None, "0"),
            "ret_type": ('"both"', '"values"'),
            "is_ascend": (None, "True"),
            "dtype": (None, '"int64"'),
        },
    ),
    "reshape": ("%E", {"newshape": ("[0, 0]", "[-3]"), "allowzero": (None, "True")}),
    "transpose": ("%X", {"axes": (None, "[0, 2, 1]")}),
    "expand_dims": ("%X", {"axis": ("0", "1"), "num_newaxis": (None, "2")}),
    "squeeze": ("%O", {"axis": (None, "[0]")}),
    "broadcast_to": ("%S", {"shape": ("[3, 4, 4]", "[2, 3, 4, 4]")}),
    "reverse": ("%X", {"axis": ("0", "1")}),
    "concatenate": ("(%X, %X)", {"axis": (None, "1")}),
    "stack": ("(%X, %X)", {"axis": (None, "1")}),
    "split": ("%S", {"indices_or_sections": ("[1, 2]", "[1]"), "axis": (None, "1")}),
    "tile": ("%X", {"reps": ("[1]", "[2]")}),
    "repeat": ("%X", {"repeats": ("2", "3"), "axis": ("-1", "None")}),
    "strided_slice": (
        "%S",
        {
            "begin": ("[1]", "[0]"),
            "end": ("[2]", "[3]"),
            "strides": (None, "[-1]"),
            "slice_mode": (None, '"size"'),
            "axes": (None, "[-1]"),
        },
    ),
    "take": ("%S, %P", {"axis": ("0", "-1"), "mode": (None, '"wrap"')}),
    "shape_of": ("%X", {"dtype": (None, '"int64"')}),
    "ndarray_size": ("%X", {"dtype": (None, '"int64"')}),
    "contrib_reverse_reshape": ("%X", {"newshape": ("[-1, 0]", "[0, -1]")}),
    "gather": ("%Q, %G", {"axis": ("0", "1")}),
    "one_hot": (
        "%P, %A, %C",
        {"depth": ("9", "8"), "axis": (None, "0"), "dtype": (None, '"float64"')},
    ),
    "dyn.one_hot": ("%P, %A, %C, %e", {"axis": (None, "0"), "dtype": (None, '"float64"')}),
    "dyn.topk": (
        "%X, %c",
        {
            "axis": (None, "0"),
            "ret_type": ('"both"', '"values"'),
            "is_ascend": (None, "True"),
            "dtype": (None, '"int64"'),
        },
    ),
    "dyn.expand_dims": ("%X, %b", {"num_newaxis": (None, "2")}),
    "dyn.strided_slice": (
        "%S, %b, %c, %b",
        {"slice_mode": (None, '"size"'), "axes": (None, "[1]")},
    ),
    "dyn.full": ("%A, %d", {"dtype": (None, '"float64"')}),
    **dict.fromkeys(("dyn.zeros", "dyn.ones"), ("%d", {"dtype": ('"int32"', '"float32"')})),
    "dyn.image.resize2d": (
        "%I, %d",
        {
            "layout": (None, '"NHWC"'),
            "coordinate_transformation_mode": (None, '"align_corners"'),
            "out_dtype": (None, '"float64"'),
        },
    ),
    "sparse_to_dense": ("%b, %b", {"output_shape": ("[3]", "[4]")}),
    "dyn.nn.upsampling": ("%I, %A, %A", UPSAMPLED),
    "nn.upsampling": ("%I", {"scale_h": ("2", "3"), "scale_w": ("2", "3"), **UPSAMPLED}),
    "nn.pad": (
        "%Q",
        {
            "pad_width": ("[[0, 0], [1, 1]]", "[[1, 1], [1, 1]]"),
            "pad_mode": (None, '"edge"'),
        },
    ),
    "full": ("%A", {"shape": ("[2]", "[3]"), "dtype": (None, '"int32"')}),
    **dict.fromkeys(
        ("zeros", "ones"), ("", {"shape": ("[2]", "[3]"), "dtype": ('"int32"', '"float32"')})
    ),
    "trilu": ("%Q, 0", {"upper": (None, "False")}),
    "einsum": ("(%Q, %Q)", {"equation": ('"ij,jk->ik"', '"ij,kj->ik"')}),
    "arange": ("0, 4, 2", {"dtype": (None, '"int32"')}),
    "nn.dense": ("%Q, %Q", TYPED),
    "nn.matmul": ("%Q, %Q", {**TYPED, **SWAPPED}),
    "nn.batch_matmul": ("%S, %S", {**TYPED, **SWAPPED}),
    "nn.bias_add": ("%S, %V", {"axis": ("1", "2")}),
    "nn.leaky_relu": ("%X", {"alpha": (None, "0.5f")}),
    "nn.prelu": ("%S, %V", {"axis": ("1", "2")}),
    "nn.conv2d": (
        "%L, %L",
        {
            **TYPED,
            "strides": (None, "[2, 2]"),
            "padding": ("[4, 4]", "[5, 4]"),
            "dilation": (None, "[2, 2]"),
            "data_layout": (None, '"NHWC"'),
            "kernel_layout": (None, '"HWIO"'),
            "out_layout": (None, '"NHWC"'),
        },
    ),
    "nn.conv1d": (
        "%D, %D",
        {
            **TYPED,
            "strides": (None, "[2]"),
            "padding": ("[4]", "[5]"),
            "dilation": (None, "[2]"),
            "data_layout": (None, '"NWC"'),
            "kernel_layout": (None, '"WIO"'),
            "out_layout": (None, '"NWC"'),
        },
    ),
    "nn.conv3d": (
        "%T, %T",
        {
            **TYPED,
            "strides": (None, "[2, 2, 2]"),
            "padding": ("[4, 4, 4]", "[5, 4, 4]"),
            "dilation": (None, "[2, 2, 2]"),
            "data_layout": (None, '"NDHWC"'),
            "kernel_layout": (None, '"DHWIO"'),
            "out_layout": (None, '"NDHWC"'),
        },
    ),
    "nn.conv2d_transpose": (
        "%J, %M",
        {
            **TYPED,
            "strides": ("[2, 2]", "[3, 3]"),
            "padding": (None, "[1, 1]"),
            "dilation": (None, "[2, 2]"),
            "groups": (None, "2"),
            "data_layout": (None, '"NHWC"'),
            "out_layout": (None, '"NHWC"'),
            "output_padding": (None, "[1, 1]"),
        },
    ),
    "nn.max_pool2d": ("%I", {**POOLED, "dilation": (None, "[2, 2]")}),
    "nn.max_pool1d": ("%R", {**POOLED_LINES, "dilation": (None, "[2]")}),
    "nn.max_pool3d": ("%U", {**POOLED_VOLUMES, "dilation": (None, "[1, 2, 2]")}),
    "nn.avg_pool3d": ("%U", {**POOLED_VOLUMES, "count_include_pad": (None, "True")}),
    "image.resize2d": (
        "%I",
        {
            "size": ("[4, 4]", "[5, 4]"),
            "layout": (None, '"NHWC"'),
            "coordinate_transformation_mode": (None, '"align_corners"'),
            "out_dtype": (None, '"float64"'),
        },
    ),
    "nn.avg_pool2d": ("%I", {**POOLED, "count_include_pad": (None, "True")}),
    "nn.avg_pool1d": ("%R", {**POOLED_LINES, "count_include_pad": (None, "True")}),
    **dict.fromkeys(("nn.global_avg_pool2d", "nn.global_max_pool2d"), ("%I", LAYOUT)),
    "nn.adaptive_avg_pool2d": ("%I", {"output_size": ("[1, 2]", "[2, 1]"), **LAYOUT}),
    "nn.batch_norm": ("%S, %V, %V, %V, %V", NORMAL),
    "nn.layer_norm": ("%S, %V, %V", NORMAL),
    "nn.instance_norm": ("%S, %V, %V", NORMAL),
}  # fmt: skip

ASYMMETRIC: Final = 'coordinate_transformation_mode="asymmetric"'
NEAREST: Final = f"size=[4, 4], {ASYMMETRIC}"
AGREE: Final[dict[tuple[str, str], str]] = {
    ("nn.dense", "units"): "%Q, %Q, units={4|5}",
    ("nn.matmul", "units"): "%Q, %Q, units={4|5}",
    ("nn.conv2d", "channels"): "%I, %K, channels={4|5}",
    ("nn.conv2d", "kernel_size"): "%I, %K, kernel_size={[3, 3]|[3, 2]}",
    ("nn.conv2d", "groups"): "%I, %K, groups={1|2}",
    ("nn.conv1d", "channels"): "%R, %N, channels={4|5}",
    ("nn.conv1d", "kernel_size"): "%R, %N, kernel_size={[3]|[2]}",
    ("nn.conv1d", "groups"): "%R, %N, groups={1|2}",
    ("nn.conv3d", "channels"): "%U, %Z, channels={4|5}",
    ("nn.conv3d", "kernel_size"): "%U, %Z, kernel_size={[3, 3, 3]|[3, 3, 2]}",
    ("nn.conv3d", "groups"): "%U, %Z, groups={1|2}",
    ("nn.avg_pool3d", "dilation"): "%U, pool_size=[2, 2, 2], dilation={[1, 1, 1]|[1, 2, 2]}",
    ("image.resize2d", "method"): f'%I, {NEAREST}, rounding_method="floor", '
    'method={"nearest_neighbor"|"linear"}',
    ("image.resize2d", "rounding_method"): f'%I, {NEAREST}, method="nearest_neighbor", '
    'rounding_method={"floor"|"ceil"}',
    ("dyn.image.resize2d", "method"): f'%I, %d, {ASYMMETRIC}, rounding_method="floor", '
    'method={"nearest_neighbor"|"linear"}',
    ("dyn.image.resize2d", "rounding_method"): f"%I, %d, {ASYMMETRIC}, "
    'method="nearest_neighbor", rounding_method={"floor"|"ceil"}',
    ("nn.conv2d_transpose", "channels"): "%J, %M, channels={2|3}",
    ("nn.conv2d_transpose", "kernel_size"): "%J, %M, kernel_size={[2, 2]|[3, 2]}",
    ("nn.avg_pool2d", "dilation"): "%I, pool_size=[2, 2], dilation={[1, 1]|[2, 2]}",
    ("nn.avg_pool1d", "dilation"): "%R, pool_size=[2], dilation={[1]|[2]}",
    ("gather_nd", "index_rank"): "%T, %G, index_rank={4|3}",
    ("arange", "start"): "0, 4, 1, start={0|1}",
    ("arange", "stop"): "0, 4, 1, stop={4|5}",
    ("arange", "step"): "0, 4, 1, step={1|2}",
}
"""Attributes that repeat what operands say, or fit others: calls that do, and that do not."""
WITHOUT_EFFECT: Final = {("nn.dropout", "rate")}
"""A program that is not trained drops nothing."""


def result(op: str, operands: str, *attributes: str) -> Any:
    call = f"{op}({', '.join(part for part in (operands, *attributes) if part)})"
    used = list(dict.fromkeys(re.findall(r"%(\w)", operands)))
    params = ", ".join(f"%{name}: {annotation(TENSORS[name])}" for name in used)
    function = api.parse(f"{HEADER}def @main({params}) {{ {call} }}")["main"]
    args = [TENSORS[name] for name in used]
    found = function(*args)
    torch.testing.assert_close(function.interpret(*args), found)
    return found


def are_same(left: Any, right: Any) -> bool:
    if isinstance(left, tuple) and isinstance(right, tuple):
        return len(left) == len(right) and all(map(are_same, left, right))
    if not isinstance(left, Tensor) or not isinstance(right, Tensor):
        return False
    return left.dtype == right.dtype and torch.equal(left, right)


@pytest.mark.parametrize(
    ("op", "name"), [(op, name) for op, (_, found) in CASES.items() for name in found], ids=str
)
def test_an_attribute_changes_what_its_operator_gives(op: str, name: str) -> None:
    operands, attributes = CASES[op]
    base = {n: first for n, (first, _) in attributes.items() if first is not None}
    other = base | {name: attributes[name][1]}
    first, second = (
        result(op, operands, *(f"{n}={v}" for n, v in found.items())) for found in (base, other)
    )
    assert not are_same(first, second)


@pytest.mark.parametrize(("op", "name"), AGREE, ids=str)
def test_an_attribute_that_repeats_an_operand_must_agree_with_it(op: str, name: str) -> None:
    text = AGREE[op, name]
    result(op, re.sub(r"\{(.*)\|.*\}", r"\1", text))
    with pytest.raises(CheckError):
        result(op, re.sub(r"\{.*\|(.*)\}", r"\1", text))


def test_no_attribute_is_ignored() -> None:
    tried = {(op, name) for op, (_, found) in CASES.items() for name in found}
    left = set(ATTRIBUTES) - tried - set(AGREE) - WITHOUT_EFFECT
    assert [pair for pair in sorted(left) if " only" not in refusal(*pair)] == []
