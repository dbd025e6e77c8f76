"""Batch normalisation as a part of the product before it, where it does not train.

With running statistics it is an affine function of each channel, and so is its composition with a
convolution or a linear layer: `norm(x * w + b) = x * (w * s) + ((b - mean) * s + bias)` with
`s = weight / sqrt(var + eps)`. What is left to compute is as large as the weight, not as the
activations, and depends on parameters alone: `relay.export_model` stores it (`stored_weights`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Final, final

from ...dataclass import dataclass
from ...ir.expr import Expr, Tuple, type_of
from ...ir.names import Names
from ...ir.op import Op
from ...ir.types import TensorType, float32, float64
from ...ir.verify import Stage
from ...operators.builder import Builder
from ...operators.composite.norm import batch_norm
from ...operators.matrices.products import linear
from ...operators.primitive import math
from ...operators.primitive.conv import conv1d, conv2d, conv3d
from ...operators.primitive.conv_transpose import conv_transpose2d
from ...operators.shared.operands import is_given
from ..base import Context, Pass
from ..simplify.rules import Redex, Rewrite, apply_rules

if TYPE_CHECKING:
    from ...ir.module import Module

_BATCHED: Final = {linear: 2, conv1d: 3, conv2d: 4, conv3d: 5, conv_transpose2d: 4}
"""The products whose channels, in results of this rank, are dim 1."""
_LATER: Final = frozenset({conv_transpose2d})
"""Those of which the channels are dim 1 of the weight too, unless there are groups, not dim 0."""


def _folded(product: Op) -> Callable[[Redex], Expr | None]:
    def apply(site: Redex) -> Expr | None:
        norm = site.call
        made = site.made_for_it(norm.args[0], product)
        ty = type_of(norm.args[0])
        if made is None or norm.attrs["training"] or not isinstance(ty, TensorType):
            return None
        if ty.dtype not in (float32, float64) or ty.rank != _BATCHED[product]:
            return None
        if product in _LATER and made.attrs["groups"] != 1:
            return None
        builder = Builder(norm.span, Names())
        _, mean, var, scale, shift = map(builder.value, norm.args)
        x, weight, bias = map(builder.value, made.args)
        factor = math.rsqrt(var + norm.attrs["eps"])
        factor = factor * scale if is_given(scale) else factor
        new_bias = ((bias - mean) if is_given(bias) else -mean) * factor
        new_bias = new_bias + shift if is_given(shift) else new_bias
        place = 1 if product in _LATER else 0
        new_weight = weight * factor.reshape(
            *(factor.shape[0] if dim == place else 1 for dim in range(weight.rank))
        )
        call = replace(made, args=(x.atom, new_weight.atom, new_bias.atom))
        whole = builder.tuple((builder.bind(call, product.name), mean, var))
        *before, last = builder.bindings
        site.before.extend(before)
        site.combine(norm.args[0])
        assert isinstance(last.value, Tuple)
        assert whole.ty == norm.ty
        return last.value

    return apply


_STATISTICS: Final = (
    "%m: Tensor[(3,), float32], %v: Tensor[(3,), float32], %s: Tensor[(3,), float32]"
)
_OPERANDS: Final = {
    linear: ("Tensor[(2, 4), float32]", "Tensor[(3, 4), float32]"),
    conv1d: ("Tensor[(2, 4, 5), float32]", "Tensor[(3, 4, 2), float32]"),
    conv2d: ("Tensor[(2, 4, 5, 5), float32]", "Tensor[(3, 4, 2, 2), float32]"),
    conv_transpose2d: ("Tensor[(2, 2, 3, 3), float32]", "Tensor[(2, 3, 2, 2), float32]"),
    conv3d: ("Tensor[(2, 4, 3, 3, 3), float32]", "Tensor[(3, 4, 2, 2, 2), float32]"),
}

NORM_RULES: Final = tuple(
    Rewrite(
        f"batch_norm({op.name}(x, w, b), m, v, s) = {op.name}(x, w * f, (b - m) * f) "
        "with f = s / sqrt(v + eps), where it does not train",
        batch_norm,
        _folded(op),
        f"%x: {x}, %w: {w}, {_STATISTICS}",
        f"batch_norm({op.name}(%x, %w, %m), %m, exp(%v), %s, training=False)",
        (op,),
    )
    for op, (x, w) in _OPERANDS.items()
)


@final
@dataclass(frozen=True, slots=True)
class FoldNorms(Pass):
    """Make batch normalisation that does not train a part of the product before it."""

    name: ClassVar = "fold-norms"
    needs: ClassVar = Stage.ANF

    def run(self, module: Module, context: Context) -> Module:
        """Return the module after the pass."""
        return apply_rules(module, NORM_RULES, context.opaque)
