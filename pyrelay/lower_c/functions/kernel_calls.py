"""Calls of kernels in C functions: the C of a kernel, and its arguments where it is called.

Tensors lie row by row, in memory that lives until the function that Python called has ended, or
until the round of the loop is over in which they are made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final, final

from ...dataclass import dataclass
from ...ir.declaration.lowering import Elementwise, Pointwise, inside
from ...ir.dims import ZERO, Dim, DimOp, DimVar, product
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
from ...ir.types import DType, TensorType, TupleType, Type, known_dtype
from ...kernels.backend import KernelFunction
from ...kernels.calling import (
    Argument,
    Form,
    Layout,
    NoKernel,
    Number,
    Read,
    Scratch,
    Size,
    Stride,
    Written,
)
from ...kernels.fusion.nodes import has_elements
from ...kernels.groups import Group, Kind, Output
from ...kernels.reading import results_of
from ..launching.threads import PRODUCTS, torch_functions
from ..math import element_of, host_target
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
        types = [*(type_of(p) for p in function.params), *parts_of(function.result)]
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


def is_tensor(ty: Type) -> bool:
    """Return whether a type is that of a tensor that is no number."""
    return isinstance(ty, TensorType) and bool(ty.shape)


def parts_of(ty: Type) -> tuple[Type, ...]:
    """Return the types of the results of a kernel."""
    return ty.fields if isinstance(ty, TupleType) else (ty,)


@final
@dataclass(frozen=True, slots=True)
class Hoisted:
    """Scratch of a kernel that lives longer than the rounds of a loop, by name, and the name of the
    number that says whether it is filled."""

    rooms: Mapping[Scratch, str]
    flag: str


@final
@dataclass(frozen=True, slots=True)
class Surroundings:
    """Where the call of a kernel is written: `line` adds a line before it, `scratch` makes room
    where a condition holds, `size` is the expression of one of its dims, `kept` returns where it
    keeps operands packed from call to call, `stride` is the expression of a stride of an operand,
    `number` that of a kernel with several routes, and `fresh` makes names."""

    line: Callable[[str], None]
    scratch: Callable[[Scratch, str | None], str]
    size: Callable[[Dim], str]
    kept: Callable[[Kernel], Hoisted | None]
    stride: Callable[[Stride], str]
    number: Callable[[Kernel], int]
    fresh: Callable[[str], str]


def kernel_lines(
    made: Sequence[Kernel], args: Sequence[str], results: Sequence[str], around: Surroundings
) -> list[str]:
    """Return the lines that call a kernel: `args` are the expressions of its operands, `results`
    the addresses of its results."""
    lines: list[str] = []
    for kernel in made:
        hoisted = around.kept(kernel) if kernel.kept else None
        trial = None if kernel.route is None else _trial(kernel, kernel.route, hoisted, around)
        room = _Room({} if hoisted is None else hoisted.rooms, trial, around)
        texts = [_argument(a, args, results, room.of, around) for a in kernel.arguments]
        for argument, text in zip(kernel.arguments, texts, strict=True):
            if isinstance(argument, Written | Scratch) and argument.starts_zero:
                count = bytes_of(argument.shape, argument.dtype, around.size)
                lines.append(f"memset({text}, 0, {count});")
        lines += _call_lines(kernel, texts, hoisted, trial)
        if kernel.may_fail:
            lines.append("if (RELAY_RARELY(s->run.failed)) relay_fail(s, RELAY_AGAIN, 0, 0);")
    return lines


@final
@dataclass(frozen=True, slots=True)
class _Room:
    """Where the scratch of a call of a kernel lies: in `kept`, or in room that is made for the
    call, and only for the route that needs it."""

    kept: Mapping[Scratch, str]
    trial: str | None
    around: Surroundings

    def of(self, argument: Scratch) -> str:
        """Return the name of the room for some scratch."""
        if argument in self.kept:
            return self.kept[argument]
        if argument.way is None:
            return self.around.scratch(argument, None)
        way = f"{self.trial}.is_measured || {self.trial}.way == {argument.way}"
        return self.around.scratch(argument, way)


def _trial(kernel: Kernel, route: Route, hoisted: Hoisted | None, around: Surroundings) -> str:
    """Write what decides which route a call takes, or begins to compare them; return its name."""
    trial = around.fresh("trial")
    sizes = [around.size(d) for d in (*route.shape, sum(route.summed, start=ZERO))]
    begun = ", ".join(("s", str(around.number(kernel)), str(int(hoisted is not None)), *sizes))
    around.line(f"relay_trial {trial} = relay_try({begun});")
    return trial


def _call_lines(
    kernel: Kernel, texts: Sequence[str], hoisted: Hoisted | None, trial: str | None
) -> list[str]:
    """Return the lines of the call itself, which is repeated where its routes are compared."""
    flag = [] if not kernel.kept else ["0" if hoisted is None else hoisted.flag]
    if trial is None:
        packed = [] if hoisted is None else [f"{hoisted.flag} = 1;"]
        return [f"{kernel.name}({', '.join(('&s->run', *texts, *flag))});", *packed]
    return [
        f"while (relay_goes_on(s, &{trial})) {{",
        f"    {kernel.name}({', '.join(('&s->run', *texts, f'{trial}.way', *flag))});",
        *([] if hoisted is None else [f"    {hoisted.flag} |= !{trial}.way;"]),
        "}",
    ]


def no_stride(argument: Stride) -> str:
    """Refuse the stride of an operand that lies row by row."""
    raise AssertionError(argument)


def _argument(
    argument: Argument,
    args: Sequence[str],
    results: Sequence[str],
    scratch: Callable[[Scratch], str],
    around: Surroundings,
) -> str:
    """Return the expression of an argument of a kernel."""
    match argument:
        case Read(operand, dtype):
            return f"(const {element_of(dtype).c} *){args[operand]}"
        case Written(result, dtype, overwrites=None):
            return f"({element_of(dtype).c} *){results[result]}"
        case Scratch(_, dtype):
            return f"({element_of(dtype).c} *){scratch(argument)}"
        case Number(operand, _):
            return args[operand]
        case Size(dim):
            return around.size(dim)
        case Stride():
            return around.stride(argument)
        case Written():
            raise NotInC("it changes tensors in place")


def bytes_of(shape: Sequence[Dim], dtype: DType, size: Callable[[Dim], str]) -> str:
    """Return the expression of the bytes that a tensor takes."""
    count = product(shape) * element_of(dtype).bytes
    return size(count)


def tensor_bytes(ty: TensorType, size: Callable[[Dim], str]) -> str:
    """Return the expression of the bytes that a tensor of a type takes."""
    return bytes_of(ty.shape, known_dtype(ty), size)


def dim_text(dim: Dim, known: Callable[[Dim], str | None]) -> str:
    """Return the expression of a dim; `known` returns that of a dim that a variable has. Raises
    NotInC."""
    found = known(dim)
    if found is not None:
        return found
    if dim.constant is not None:
        return str(dim.constant)
    total: list[str] = []
    for monomial, factor in dim.terms:
        parts = [_atom_text(atom, known) for atom in monomial]
        total.append(" * ".join([*parts, *([str(factor)] if factor != 1 or not parts else [])]))
    return f"({' + '.join(total)})"


def _atom_text(atom: object, known: Callable[[Dim], str | None]) -> str:
    match atom:
        case DimVar() as var if (found := known(Dim.atom(var))) is not None:
            return found
        case DimOp("max", left, right):
            return f"RELAY_MAXIMUM({dim_text(left, known)}, {dim_text(right, known)})"
        case DimOp(kind, left, right):
            function = "relay_floor_divide" if kind == "floordiv" else "relay_modulo"
            return f"{function}({dim_text(left, known)}, {dim_text(right, known)})"
        case _:
            raise NotInC(f"it computes with the size {atom}, which only tensors show")


def sizes_inside(function: Function, call: Call) -> dict[Dim, Dim]:
    """Return the sizes that a callee names, as the caller has them."""
    return {
        Dim.atom(param): argument
        for param, argument in zip(function.type_params, call.type_args, strict=True)
        if isinstance(param, DimVar) and isinstance(argument, Dim)
    }
