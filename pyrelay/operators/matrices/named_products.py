"""Torch's names for the products that `matmul` gives of operands of one rank each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from ...ir.op import (
    Contraction,
    Expansion,
    MadeOf,
    Op,
    Promotion,
    RuleCall,
    Sample,
    ShapeBehaviour,
    TensorSpec,
    operand,
)
from ...ir.rules import with_rank
from ...ir.types import Type
from .products import matmul, product_of_matrices, product_with_vector


def _product(name: str, doc: str, ranks: Mapping[str, int], samples: Iterable[Sample]) -> Op:
    """Return the operator that multiplies operands of these names and ranks, and refuses others."""

    def type_rule(call: RuleCall) -> Type:
        for i, rank in enumerate(ranks.values()):
            with_rank(call, i, rank)
        if min(ranks.values()) == 3:  # a stack is not broadcast here
            left, right = call.tensor(0), call.tensor(1)
            message = f"`{name}` takes stacks of as many matrices"
            call.unify_dims(left.shape[0], right.shape[0], 1, message)
        return matmul.type_rule(call)

    return Op(
        name=name,
        doc=doc,
        params=tuple(operand(o, promote=True) for o in ranks),
        promotion=Promotion.COMMON,
        type_rule=type_rule,
        shape=ShapeBehaviour.FIXED,
        lowering=Contraction(
            lambda torch, x, y: getattr(torch, name)(x, y),
            fused=product_of_matrices
            if min(ranks.values()) > 1
            else MadeOf(lambda args, _: product_with_vector(*args)),
        ),
        grad=Expansion(lambda args, _: matmul(*args)),
        samples=lambda: samples,
    )


mm: Final = _product(
    "mm",
    "Product of two matrices.",
    {"input": 2, "mat2": 2},
    (
        Sample((TensorSpec((3, 4)), TensorSpec((4, 5)))),
        Sample((TensorSpec((0, 4)), TensorSpec((4, 5)))),
        Sample((TensorSpec((4, 3), contiguous=False), TensorSpec((3, 2)))),
    ),
)
bmm: Final = _product(
    "bmm",
    "Products of two stacks of as many matrices.",
    {"input": 3, "mat2": 3},
    (
        Sample((TensorSpec((2, 3, 4)), TensorSpec((2, 4, 5)))),
        Sample((TensorSpec((0, 3, 4)), TensorSpec((0, 4, 5)))),
        Sample((TensorSpec((2, 4, 3), contiguous=False), TensorSpec((2, 3, 2)))),
    ),
)
mv: Final = _product(
    "mv",
    "Product of a matrix and a vector.",
    {"input": 2, "vec": 1},
    (
        Sample((TensorSpec((3, 4)), TensorSpec((4,)))),
        Sample((TensorSpec((0, 4)), TensorSpec((4,)))),
        Sample((TensorSpec((4, 3), contiguous=False), TensorSpec((3,)))),
    ),
)
dot: Final = _product(
    "dot",
    "Sum of the products of two vectors' elements.",
    {"input": 1, "tensor": 1},
    (
        Sample((TensorSpec((4,)), TensorSpec((4,)))),
        Sample((TensorSpec((0,)), TensorSpec((0,)))),
        Sample((TensorSpec((4,), contiguous=False), TensorSpec((4,)))),
    ),
)
