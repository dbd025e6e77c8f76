"""`autocast` rounds the operands of products, and keeps the types of the program."""

from __future__ import annotations

import pytest

from pyrelay.diagnostics.diagnostic import CheckError
from pyrelay.infer import infer
from pyrelay.ir.normal_form import to_anf
from pyrelay.ir.op import Precision
from pyrelay.operators.table import ALL, BY_NAME
from pyrelay.passes.simplify.simplify import simplify
from pyrelay.passes.transforms.expansion import expand_transforms
from pyrelay.text.parser import parse_module
from pyrelay.text.printer import to_text

PARAMS = "%x: Tensor[(4, 8), float32], %w: Tensor[(8, 8), float32]"


def cast(body: str, *, dtype: str = "bfloat16", params: str = PARAMS) -> str:
    """Return the code of a function under `autocast`, as text."""
    names = ", ".join(p.split(":")[0] for p in params.split(", %"))
    names = ", %".join(names.split(", "))
    source = f"""
    def @f({params}) {{ {body} }}
    def @main({params}) {{ autocast{{policy=("{dtype}",)}}(@f)({names}) }}
    """
    module = expand_transforms(to_anf(infer(parse_module(source))), "main")
    text = to_text(simplify(module, "main"))
    return "\n".join(line.strip() for line in text.splitlines() if line.startswith("  "))


def test_products_are_narrow_and_what_selects_between_them_is_too() -> None:
    assert cast("softmax(matmul(relu(matmul(%x, %w)), %w), dim=-1)") == (
        "let %cast: Tensor[(4, 8), bfloat16] = cast(%x, dtype=bfloat16);\n"
        "let %cast_1: Tensor[(8, 8), bfloat16] = cast(%w, dtype=bfloat16);\n"
        "let %matmul: Tensor[(4, 8), bfloat16] = matmul(%cast, %cast_1);\n"
        "let %relu: Tensor[(4, 8), bfloat16] = relu(%matmul);\n"
        "let %matmul_1: Tensor[(4, 8), bfloat16] = matmul(%relu, %cast_1);\n"
        "let %matmul_2: Tensor[(4, 8), float32] = cast(%matmul_1, dtype=float32);\n"
        "let %softmax: Tensor[(4, 8), float32] = softmax(%matmul_2, dim=-1);\n"
        "%softmax"
    )


def test_other_operators_compute_in_float32() -> None:
    for operator in ("tanh", "exp", "sum", "mean", "relu"):
        assert "float16" not in cast(f"{operator}(%x)", dtype="float16")


def test_a_product_inside_an_inner_autocast_keeps_its_dtype() -> None:
    source = f"""
    def @f({PARAMS}) {{ matmul(%x, %w) }}
    def @g({PARAMS}) {{ autocast{{policy=("float16",)}}(@f)(%x, %w) }}
    def @main({PARAMS}) {{ autocast{{}}(@g)(%x, %w) }}
    """
    module = expand_transforms(to_anf(infer(parse_module(source))), "main")
    text = to_text(simplify(module, "main"))
    assert "float16] = matmul(" in text
    assert "bfloat16" not in text


def test_operands_in_tuples_are_narrow_and_float64_is_not() -> None:
    text = cast('einsum((%x, %w), equation="ij,jk->ik")')
    assert "(Tensor[(4, 8), bfloat16], Tensor[(8, 8), bfloat16]) = (%cast, %cast_1)" in text
    assert "%einsum: Tensor[(4, 8), bfloat16] = einsum(" in text
    wide = PARAMS.replace("float32", "float64")
    assert "bfloat16" not in cast("matmul(%x, %w)", params=wide)


def test_an_unknown_policy_is_refused() -> None:
    with pytest.raises(CheckError, match="autocast"):
        cast("matmul(%x, %w)", dtype="int8")


def test_every_product_declares_that_it_is_narrow() -> None:
    narrow = {op.name for op in ALL if op.precision is Precision.NARROW}
    products = {"matmul", "linear", "einsum", "conv1d", "conv2d", "conv3d", "conv_transpose2d"}
    products |= {"scaled_dot_product_attention", "bmm", "mm", "mv", "dot", "outer", "conv_backward"}
    assert products <= narrow
    given = ("softmax", "layer_norm", "batch_norm", "mse_loss", "softmax_cross_entropy", "sum")
    assert all(BY_NAME[name].precision is Precision.GIVEN for name in (*given, "expand", "exp"))
