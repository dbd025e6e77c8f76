"""Convolutions in the layout NHWC, with as few conversions of images as there can be.

A convolution takes its images in the layout and gives them in it. Pools, normalisation and
operators that work element by element go on in the layout where the images in it are there already,
so a stretch of them is converted at its ends alone, and uses of one value share one conversion.
Weights stay as they are. Functions with convolutions are inlined where they are called: a stretch
is longer than a block of a network.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Final, final

from ...analysis.call_graph import call_graph, mentions
from ...dataclass import dataclass
from ...ir.expr import Binding, Call, Expr, Tuple, TupleGet, Var, type_of
from ...ir.layouts import PLAIN, in_layout, layout_of
from ...ir.names import Names
from ...ir.op import Layouts, Op
from ...ir.rewriter import Rewriter
from ...ir.traverse import Steps, post_order
from ...ir.types import UNIT, Layout, SizeType, TensorType, TupleType, Type
from ...ir.verify import Stage
from ...operators.composite.layouts import to_layout
from ...operators.host import sizes
from ...operators.primitive.conv import conv2d
from ...operators.primitive.conv_transpose import conv_transpose2d
from ..base import Context, Opaque, Pass
from ..simplify.dce import remove_dead
from ..simplify.inline import inline_calls

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...ir.block_builder import BlockBuilder
    from ...ir.module import Module

CONVOLUTIONS: Final = (conv2d, conv_transpose2d)
"""The operators for whose sake images are converted."""
_READ: Final = (sizes.dim_size, sizes.shape, sizes.rank, sizes.numel)
"""The operators that read shapes alone."""


@final
@dataclass(frozen=True, slots=True)
class ConvertLayout(Pass):
    """Compute convolutions, and the operators between them, in the layout NHWC."""

    name: ClassVar = "convert-layout"
    needs: ClassVar = Stage.ANF

    layout: Layout = Layout.NHWC

    def run(self, module: Module, context: Context) -> Module:
        """Return the module after the pass."""
        names = _with_convolutions(module)
        if not names:
            return module
        inlined = inline_calls(module, _to_inline(module, names, context.entry))
        converted = inlined.map_functions(
            lambda f: _Convert(inlined, self.layout, context.opaque).walked(f)
        )
        return module if converted is inlined else remove_dead(converted, context.entry)


def _with_convolutions(module: Module) -> frozenset[str]:
    """Return the names of functions that convolve, or call such functions."""
    found: set[str] = set()
    for group in call_graph(module).groups:
        functions = [module.functions[name] for name in group]
        calls = {name for f in functions for name in mentions(f).calls}
        if calls & found or any(_is_convolution(n) for f in functions for n in post_order(f)):
            found.update(group)
    return frozenset(found)


def _is_convolution(node: Expr) -> bool:
    return isinstance(node, Call) and node.callee in CONVOLUTIONS


def _to_inline(module: Module, names: frozenset[str], entry: str) -> list[str]:
    """Return the functions among some that are only called, and do not reach themselves."""
    graph = call_graph(module)
    return [
        name
        for name in module.functions
        if name in names
        and name != entry
        and name not in graph.recursive
        and name not in graph.escaping
        and graph.mentions.calls[name]
    ]


@final
class _Convert(Rewriter):
    """One walk over a function."""

    def __init__(self, module: Module, layout: Layout, opaque: Opaque) -> None:
        super().__init__(module)
        self._layout: Final = layout
        self._opaque: Final = opaque
        self._names: Final = Names()
        self._laid: dict[Expr, Var] = {}
        """Images, and tuples with images, that are there in the layout, by their own variables."""
        self._tuples: Final[dict[Expr, Sequence[Expr]]] = {}
        """The fields of tuples."""

    def body(self, expr: Expr) -> Steps[Expr]:
        """Return the body of a scope of its own, whose conversions end with it."""
        outside = self._laid
        self._laid = dict(outside)
        found = yield from super().body(expr)
        self._laid = outside
        return found

    def binding(self, binding: Binding, code: BlockBuilder) -> Steps[None]:
        """Add a binding, or one in the layout and the conversion back."""
        value = yield self.node(binding.value, code)
        if isinstance(value, Tuple):
            self._tuples[binding.var] = value.fields
        match value:
            case Call(callee=Op() as op) if not self._opaque(op):
                args = self._operands(op, value, code)
                value = value if args is None else replace(value, args=args)
            case TupleGet(whole) if whole in self._laid:
                value = replace(value, value=self._laid[whole])
                args = (self._laid[whole],)
            case _:
                args = None
        ty = type_of(value)
        wanted = in_layout(ty, self._layout)
        is_read = isinstance(value, Call) and value.callee in _READ
        if args is None or wanted == ty or is_read:
            code.bind(binding.var, value)
            return
        laid = self._new(replace(value, ty=wanted), binding.var.name, code)
        self._laid[binding.var] = laid
        code.bind(binding.var, self._back(laid, ty, code))

    def _back(self, laid: Var, ty: Type, code: BlockBuilder) -> Expr:
        """Return the value of images in the layout with those in the order of their shape."""
        if isinstance(ty, TensorType):
            return self._conversion(laid, ty)
        assert isinstance(ty, TupleType)
        assert isinstance(laid.ty, TupleType)
        parts: list[Expr] = []
        for place, (own, field) in enumerate(zip(laid.ty.fields, ty.fields, strict=True)):
            part = self._new(TupleGet(laid, place, ty=own, span=laid.span), laid.name, code)
            is_image = own != field
            parts.append(self._new(self._conversion(part, field), "t", code) if is_image else part)
        return Tuple(tuple(parts), ty, span=laid.span)

    def _operands(self, op: Op, call: Call, code: BlockBuilder) -> tuple[Expr, ...] | None:
        """Return the operands of a call with its images in the layout; None where it stays."""
        if any(layout_of(type_of(part)) is not PLAIN for part in (*call.args, call)):
            return None
        first = call.args[0] if call.args else None
        match op.layouts:
            case Layouts.IMAGES if op in CONVOLUTIONS or first in self._laid:
                assert first is not None
                return (self._in_layout(first, code), *call.args[1:])
            case Layouts.IMAGES if first in self._tuples and self._goes_on(self._tuples[first]):
                parts = tuple(self._in_layout(part, code) for part in self._tuples[first])
                ty = TupleType(tuple(type_of(part) for part in parts))
                whole = self._new(Tuple(parts, ty, span=first.span), "parts", code)
                return (whole, *call.args[1:])
            case _ if op in _READ and first in self._laid:
                return tuple(self._laid.get(a, a) for a in call.args)
            case Layouts.ALIKE if self._goes_on(call.args):
                return tuple(a if _is_number(a) else self._in_layout(a, code) for a in call.args)
            case _:
                return None

    def _goes_on(self, args: Sequence[Expr]) -> bool:
        """Return whether some operands are there in the layout, and the others can be."""
        is_there = any(a in self._laid for a in args)
        return is_there and all(_is_number(a) or _is_image(type_of(a)) for a in args)

    def _in_layout(self, image: Expr, code: BlockBuilder) -> Var:
        found = self._laid.get(image)
        if found is None:
            value = self._conversion(image, in_layout(type_of(image), self._layout))
            found = self._laid[image] = self._new(value, "laid", code)
        return found

    def _conversion(self, image: Expr, ty: Type) -> Call:
        attrs = {"layout": layout_of(ty).value}
        return Call(to_layout, (image,), attrs, ty=ty, span=image.span)

    def _new(self, value: Expr, hint: str, code: BlockBuilder) -> Var:
        return code.bind(Var(self._names.fresh(hint), value.ty, span=value.span), value)


def _is_image(ty: Type) -> bool:
    return isinstance(ty, TensorType) and ty.rank >= 3


def _is_number(operand: Expr) -> bool:
    ty = type_of(operand)
    return isinstance(ty, SizeType) or ty == UNIT or (isinstance(ty, TensorType) and not ty.shape)
