"""Peephole rules: pairs of calls as one, and calls that change places.

They look at one body at a time and need to know that a value has no other use.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import ClassVar, Final, final

from ...dataclass import dataclass
from ...ir.expr import Binding, Call, Expr, Var, type_of
from ...ir.module import Module
from ...ir.op import Op
from ...ir.types import TensorType, is_float
from ...ir.verify import Stage
from ...operators.composite.elementwise import add_product
from ...operators.matrices.products import matmul
from ...operators.primitive.activation import relu
from ...operators.primitive.arithmetic import add, multiply
from ...operators.primitive.math import sigmoid, tanh
from ...operators.primitive.pool import max_pool2d
from ...operators.primitive.view import reshape, unsqueeze
from ..base import Context, Pass
from ..simplify.rules import Redex, Rewrite, apply_rules

# Pairs of calls that torch does in one.


def _sum_of_product(site: Redex) -> Expr | None:
    call = site.call
    ty = call.ty
    if not isinstance(ty, TensorType) or not ty.rank or not is_float(ty.dtype):
        return None
    for factor, rest in (call.args, call.args[::-1]):
        factors = site.made_for_it(factor, multiply)
        args = (rest, *factors.args) if factors else ()
        if args and all(isinstance(a, Var) and a.ty == ty for a in args):
            site.combine(factor)
            return Call(add_product, args, ty=ty, span=call.span)
    return None


def _row_times_matrix(site: Redex) -> Expr | None:
    call = site.call
    product = site.made_for_it(call.args[0], matmul)
    view = site.made_by(product.args[0], unsqueeze) if product else None
    if product is None or view is None or view.attrs["dim"] not in (0, -2):
        return None
    vector, matrix, ty = type_of(view.args[0]), type_of(product.args[1]), type_of(call)
    shapes = [t.shape for t in (vector, matrix, ty) if isinstance(t, TensorType)]
    if [len(shape) for shape in shapes[:2]] != [1, 2] or shapes[2:] != [shapes[1][1:]]:
        return None
    site.combine(call.args[0])
    return Call(matmul, (view.args[0], product.args[1]), ty=ty, span=call.span)


TORCH_RULES: Final = (
    Rewrite(
        "c + a * b = addcmul(c, a, b) for float tensors of one shape",
        add,
        _sum_of_product,
        "%a: Tensor[(3,), float32], %b: Tensor[(3,), float32], %c: Tensor[(3,), float32]",
        "%c + %a * %b",
        (multiply,),
    ),
    Rewrite(
        "reshape(unsqueeze(v, 0) @ m, (n,)) = v @ m",
        reshape,
        _row_times_matrix,
        "%v: Tensor[(3,), float32], %m: Tensor[(3, 2), float32]",
        "reshape(matmul(unsqueeze(%v, dim=0), %m), shape=(2,))",
        (matmul,),
    ),
)


@final
@dataclass(frozen=True, slots=True)
class TorchPeepholes(Pass):
    """Combine pairs of calls that torch does in one."""

    name: ClassVar = "torch-peepholes"
    needs: ClassVar = Stage.DERIVED

    def run(self, module: Module, context: Context) -> Module:
        """Return the module after the pass."""
        return apply_rules(module, TORCH_RULES, context.opaque)


# Monotone functions behind a maximum, where there is less to compute, also in the derivative. Among
# elements of a window that the function makes equal, the gradient goes to the one that was largest
# before; where tanh, sigmoid and relu make different elements equal, their derivative is zero.


def _behind_pool(monotone: Op) -> Callable[[Redex], Expr | None]:
    def apply(site: Redex) -> Expr | None:
        pool = site.call
        (fed,) = pool.args
        function = site.made_for_it(fed, monotone)
        if function is None:
            return None
        site.combine(fed)
        pooled = Var("pooled", pool.ty, span=pool.span)
        site.before.append(Binding(pooled, replace(pool, args=function.args)))
        return replace(function, args=(pooled,), ty=pool.ty)

    return apply


POOL_RULES: Final = tuple(
    Rewrite(
        f"max_pool2d({op.name}(x)) = {op.name}(max_pool2d(x)), for {op.name} never decreases",
        max_pool2d,
        _behind_pool(op),
        "%x: Tensor[(1, 2, 4, 4), float32]",
        f"max_pool2d({op.name}(%x), kernel_size=(2, 2))",
        (op,),
    )
    for op in (tanh, sigmoid, relu)
)


@final
@dataclass(frozen=True, slots=True)
class PoolFirst(Pass):
    """Move monotone functions behind the maximum they feed."""

    name: ClassVar = "pool-first"
    needs: ClassVar = Stage.ANF

    def run(self, module: Module, context: Context) -> Module:
        """Return the module after the pass."""
        return apply_rules(module, POOL_RULES, context.opaque)
