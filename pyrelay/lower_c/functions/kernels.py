"""The kernels that C functions call, as C functions of their own.

Tensors lie row by row, in memory that lives until the function that Python called has ended, or
until the round of the loop is over in which they are made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final, final

from ...ir.declaration.lowering import Elementwise, Pointwise, inside
from ...ir.expr import (
    Binding,
    Call,
    Constant,
    Expr,
    Flavour,
    Function,
    LetBlock,
    TensorData,
    Tuple,
    Var,
    is_unit,
    type_of,
)
from ...ir.op import Op
from ...ir.types import TupleType, Type
from ...kernels.backend import KernelFunction
from ...kernels.calling import Form, Layout, NoKernel
from ...kernels.fusion.nodes import has_elements
from ...kernels.groups import Group, Kind, Output
from ...kernels.reading import results_of, types_of_results
from ..launching.threads import PRODUCTS, torch_functions
from ..math import host_target
from ..text import LIBRARY, Kernel, Parts, Route, in_parts, lower
from .c_types import NotInC, number_dtype
from .views import Lying


@final
class Kernels:
    """The kernels of one text, each written once."""

    def __init__(self, groups: Mapping[str, Group]) -> None:
        self._groups: Final = dict(groups)
        self._made: Final[dict[tuple[str, Layout], tuple[Kernel, ...]]] = {}
        self._routed: Final[dict[str, tuple[KernelFunction, Route]]] = {}

    def is_kernel(self, name: str) -> bool:
        """Return whether a global function is a kernel that works on tensors; one of numbers is
        written as any function."""
        if name not in self._groups:
            return False
        function = self._groups[name].function
        assert function.result is not None
        types = [*(type_of(p) for p in function.params), *types_of_results(function.result)]
        return any(number_dtype(t) is None for t in types)

    def of(self, name: str, lying: Sequence[Lying | None] = ()) -> tuple[Kernel, ...]:
        """Return the C functions of a kernel. `lying` are its operands where they do not lie row by
        row; empty if all do. Raises NotInC."""
        kernel = KernelFunction(name, self._groups[name])
        if kernel.overwritten:
            raise NotInC("it changes tensors in place")
        layout = _layout(kernel, lying)
        if (name, layout) not in self._made:
            symbol = f"k_{name.removeprefix('kernel.').replace('.', '_')}"
            if layout.units:
                symbol = f"{symbol}_v{len(self._made) + 1}"
            try:
                made = self._lowered(kernel, layout, symbol)
            except NoKernel as why:
                raise NotInC(f"{name} has no C: {why}") from why
            self._made[name, layout] = made
        return self._made[name, layout]

    def _lowered(self, kernel: KernelFunction, layout: Layout, symbol: str) -> tuple[Kernel, ...]:
        routed = torch_functions(*PRODUCTS) is not None
        made = lower(kernel.group, layout, host_target(), symbol, routed=routed, keeps=True)
        self._routed.update((k.name, (kernel, k.route)) for k in made if k.route is not None)
        return made

    @property
    def routed(self) -> tuple[tuple[KernelFunction, Route], ...]:
        """The kernels that may compute products of matrices in several ways, and their routes."""
        return tuple(self._routed.values())

    def number_of(self, kernel: Kernel) -> int:
        """Return the number of a kernel among those that have several routes."""
        return list(self._routed).index(kernel.name)

    def of_call(self, call: Call) -> tuple[Kernel, ...]:
        """Return the C function of a call of an operator on tensors, such as a view, as a kernel of
        its own; its operands are those of the call, tuples field by field. Raises NotInC."""
        assert isinstance(call.callee, Op)
        has_body = isinstance(inside(call.callee.lowering), Pointwise | Elementwise)
        if not has_body or not has_elements(call):
            raise NotInC(f"it calls `{call.callee.name}`")
        name = f"{call.callee.name}.{len(self._made) + 1}"
        function = _alone(call)
        (result,) = results_of(function.body)
        group = Group(Kind.POINTWISE, function, (Output(result, 0, None),))
        self._groups[name] = group
        return self.of(name)

    def parts(self) -> Parts | None:
        """Return the kernels as text; None if there are none."""
        kernels = [kernel for made in self._made.values() for kernel in made]
        head = LIBRARY if self._routed else ""
        return in_parts(kernels, host_target(), head) if kernels else None


def _layout(kernel: KernelFunction, lying: Sequence[Lying | None]) -> Layout:
    forms = [
        Form.CONTIGUOUS if number_dtype(type_of(p)) is None else Form.NUMBER
        for p in kernel.function.params
    ]
    if not any(lying):
        return Layout(tuple(forms))
    found = [f if own is None else Form.STRIDED for f, own in zip(forms, lying, strict=True)]
    return Layout(tuple(found), units=tuple(None if own is None else own.unit for own in lying))


def _alone(call: Call) -> Function:
    """Return the function of one call."""
    params: list[Var] = []
    bindings: list[Binding] = []

    def param(ty: Type) -> Var:
        params.append(Var(f"x{len(params) + 1}", ty, span=call.span))
        return params[-1]

    args: list[Expr] = []
    for arg in call.args:
        ty = type_of(arg)
        if is_unit(arg) or _is_number(arg):
            args.append(arg)
        elif isinstance(ty, TupleType):
            fields = tuple(param(t) for t in ty.fields)
            whole = Var(f"t{len(bindings) + 1}", ty, span=call.span)
            bindings.append(Binding(whole, Tuple(fields, ty, span=call.span)))
            args.append(whole)
        else:
            args.append(param(ty))
    result = Var("result", type_of(call), span=call.span)
    bindings.append(Binding(result, replace(call, args=tuple(args))))
    body = LetBlock(tuple(bindings), result, Flavour.PURE, result.ty, span=call.span)
    return Function(tuple(params), body, result.ty, span=call.span)


def _is_number(arg: Expr) -> bool:
    """Return whether an argument is a number that stands in the text of a kernel."""
    return isinstance(arg, Constant) and not isinstance(arg.value, TensorData)


def operands_of(call: Call, atom: Callable[[Expr], str]) -> list[str]:
    """Return the expressions of the operands of the kernel that a call is alone."""
    found: list[str] = []
    for arg in call.args:
        ty = type_of(arg)
        if is_unit(arg) or _is_number(arg):
            continue
        if isinstance(ty, TupleType):
            found += (f"{atom(arg)}.f{index}" for index in range(len(ty.fields)))
        else:
            found.append(atom(arg))
    return found
