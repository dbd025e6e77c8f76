"""Pairs of calls that torch does in one: for programs whose operators are called one by one.

`a * b + c` of tensors of one shape is `addcmul`, and a product of one row with a matrix, made of a
vector and seen as a vector again, is the product of the vector.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Final, TypeAlias, final

from ...ir.expr import Binding, Call, Expr, Flavour, Function, LetBlock, Var, type_of
from ...ir.module import Module
from ...ir.traverse import post_order, rewrite
from ...ir.types import TensorType, is_float
from ...ir.verify import Stage
from ...operators.composite.combined import add_product
from ...operators.matrices.products import matmul
from ...operators.primitive.arithmetic import add, multiply
from ...operators.primitive.view import reshape, unsqueeze
from ..base import Context, Opaque, Pass, nothing_opaque

_COMBINED: Final = (add, multiply, matmul)

Made: TypeAlias = Mapping[Var, Call]
"""The calls that variables of one block are, if nothing else needs their values."""


def combine_torch_calls(module: Module, opaque: Opaque = nothing_opaque) -> Module:
    """Return the module, in A-normal form, with pairs of calls made one; none if one of the
    operators is `opaque`. What is not needed any more is left to others."""
    if any(map(opaque, _COMBINED)):
        return module
    return module.map_bodies(_body)


@final
@dataclass(frozen=True, slots=True)
class TorchPeepholes(Pass):
    """Combine pairs of calls that torch does in one."""

    name: ClassVar = "torch-peepholes"
    needs: ClassVar = Stage.DERIVED

    def run(self, module: Module, context: Context) -> Module:
        """Return the module after the pass."""
        return combine_torch_calls(module, context.opaque)


def _body(function: Function) -> Expr:
    uses = Counter(n for n in post_order(function.body) if isinstance(n, Var))

    def change(node: Expr) -> Expr:
        if not isinstance(node, LetBlock) or node.flavour is Flavour.REC:
            return node
        made: dict[Var, Call] = {}
        gone: set[Var] = set()
        found: list[Binding] = []
        for binding in node.bindings:
            call = binding.value
            if isinstance(call, Call):
                combined = _sum(call, made) or _row(call, made)
                if combined is not None:
                    binding = Binding(binding.var, combined)
                    gone.update(v for v in call.args if isinstance(v, Var) and v in made)
                elif uses[binding.var] == 1 or call.callee is unsqueeze:
                    made[binding.var] = call
            found.append(binding)
        return replace(node, bindings=tuple(found)) if gone else node

    return rewrite(function.body, change)


def _sum(call: Call, made: Made) -> Call | None:
    """Return `a * b + c` as one call."""
    if call.callee is not add or not _is_array(call):
        return None
    for product, rest in (call.args, call.args[::-1]):
        factors = made.get(product) if isinstance(product, Var) else None
        if factors is None or factors.callee is not multiply:
            continue
        args = (rest, *factors.args)
        if all(isinstance(a, Var) and a.ty == call.ty for a in args):
            return Call(add_product, args, ty=call.ty, span=call.span)
    return None


def _is_array(call: Call) -> bool:
    ty = call.ty
    return isinstance(ty, TensorType) and bool(ty.rank) and is_float(ty.dtype)


def _row(call: Call, made: Made) -> Call | None:
    """Return the product of a vector and a matrix without the views around it."""
    if call.callee is not reshape or not isinstance(call.args[0], Var):
        return None
    product = made.get(call.args[0])
    if product is None or product.callee is not matmul:
        return None
    row, matrix = product.args
    view = made.get(row) if isinstance(row, Var) else None
    if view is None or view.callee is not unsqueeze or view.attrs["dim"] not in (0, -2):
        return None
    vector, shape = type_of(view.args[0]), type_of(matrix)
    if not isinstance(vector, TensorType) or not isinstance(shape, TensorType):
        return None
    is_plain = vector.rank == 1 and shape.rank == 2 and isinstance(call.ty, TensorType)
    if not is_plain or call.ty.shape != shape.shape[1:]:  # pyright: ignore[reportOptionalMemberAccess, reportAttributeAccessIssue]
        return None
    return Call(matmul, (view.args[0], matrix), ty=call.ty, span=call.span)
