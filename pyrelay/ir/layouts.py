"""The layouts of operands: which an operator takes, and that of its result.

Shapes do not depend on layouts, so the type rules of operators know nothing of them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from .declaration.layouts import Layouts
from .op import Clash, Op, RuleCall, Stuck
from .types import Layout, SizeType, TensorType, TupleType, Type, TypeHole, map_type, subtypes

PLAIN: Final = Layout.NCHW


class LayoutClash(Clash):
    """An operand is in a layout that the operator does not take it in.

    The operand `index` would be taken in the layout `wanted`.
    """

    def __init__(self, message: str, index: int, wanted: Layout) -> None:
        super().__init__(message)
        self.index = index
        self.wanted = wanted


def layout_of(ty: Type) -> Layout:
    """Return the layout of the first tensor in a type that has another than the plain one."""
    if isinstance(ty, TensorType):
        return ty.layout
    if isinstance(ty, SizeType | TypeHole):
        return PLAIN
    found = (p.layout for p in subtypes(ty) if isinstance(p, TensorType))
    return next((layout for layout in found if layout is not PLAIN), PLAIN)


def in_layout(ty: Type, layout: Layout) -> Type:
    """Return the type with all images, the tensors of three dims and more, in a layout."""

    def part(inner: Type) -> Type | None:
        is_image = isinstance(inner, TensorType) and inner.rank >= 3
        return replace(inner, layout=layout) if is_image else None

    return map_type(ty, part, lambda dim: dim)


def result_type(rule: RuleCall) -> Type:
    """Return the type of an operator call. Raises Clash, LayoutClash and Stuck."""
    if all(isinstance(t, TensorType) and t.layout is PLAIN for t in rule.types):
        return rule.op.type_rule(rule)
    types = tuple(map(rule.solver.resolve, rule.types))
    layouts = tuple(map(layout_of, types))
    if all(layout is PLAIN for layout in layouts):
        return rule.op.type_rule(rule)
    _check(rule.op, types, layouts)
    plain = tuple(in_layout(t, PLAIN) for t in types)
    found = rule.op.type_rule(replace(rule, types=plain))
    if rule.op.layouts is Layouts.ANY:
        return found
    return in_layout(found, next(layout for layout in layouts if layout is not PLAIN))


def _check(op: Op, types: tuple[Type, ...], layouts: tuple[Layout, ...]) -> None:
    """Stop where an operator does not take operands in these layouts. Raises LayoutClash."""
    match op.layouts:
        case Layouts.ANY:
            return
        case Layouts.ALIKE:
            _check_alike(op, types, layouts)
            return
        case Layouts.IMAGES:
            _check_parts(op, types[0])
            others = range(1, len(types))
        case Layouts.PLAIN | Layouts.OF_SHAPE:
            others = range(len(types))
    for index in others:
        if layouts[index] is not PLAIN:
            text = f"`{op.name}` does not take images in the layout {layouts[index].value}"
            raise LayoutClash(text, index, PLAIN)


def _check_parts(op: Op, ty: Type) -> None:
    """Stop where the images of a tuple are in several layouts. Raises LayoutClash."""
    found = list(dict.fromkeys(map(layout_of, ty.fields if isinstance(ty, TupleType) else ())))
    if len(found) > 1:
        named = " and ".join(layout.value for layout in found)
        raise LayoutClash(f"`{op.name}` takes images in one layout, not {named}", 0, PLAIN)


def _check_alike(op: Op, types: tuple[Type, ...], layouts: tuple[Layout, ...]) -> None:
    hole = next((t for t in types if isinstance(t, TypeHole)), None)
    if hole is not None:
        raise Stuck(hole)
    tensors = [i for i, t in enumerate(types) if not _is_number(t)]
    found = list(dict.fromkeys(layouts[i] for i in tensors))
    if len(found) < 2:
        return
    other = next(i for i in tensors if layouts[i] is PLAIN)
    special = next(i for i in tensors if layouts[i] is not PLAIN)
    ty = types[other]
    can_be = isinstance(ty, TensorType) and ty.rank >= 3
    text = f"`{op.name}` takes operands in one layout, not {' and '.join(f.value for f in found)}"
    if can_be:
        raise LayoutClash(text, other, layouts[special])
    raise LayoutClash(text, special, PLAIN)


def _is_number(ty: Type) -> bool:
    if isinstance(ty, TensorType):
        return not ty.shape
    return isinstance(ty, SizeType) or ty == TupleType(())
