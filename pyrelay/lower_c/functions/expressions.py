"""Values in C: names of variables, and expressions of one binding."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import Final

from ...diagnostics.source import BUILTIN, Span
from ...ir.dims import ZERO, Dim, product
from ...ir.expr import (
    Call,
    Constant,
    Constructor,
    Expr,
    Function,
    TensorData,
    Tuple,
    TupleGet,
    Var,
    is_unit,
    type_of,
)
from ...ir.op import Host, Op
from ...ir.own_sizes import has_own_sizes
from ...ir.types import UNIT, AdtType, SizeType, TupleType, Type, subtypes
from ...kernels.calling import Stride
from ...kernels.function_plan import Planned
from ...kernels.reading import shape_of, types_of_results
from ...operators.host.failing import check, fail, no_element
from ...operators.host.sizes import as_bound, dim_size, size
from ...operators.primitive.collect import collect
from .c_types import NotInC, is_tensor, number_dtype, result_of
from .collected import collected
from .kernel_calls import KernelCallWriter
from .kernels import operands_of
from .numbers import NumberWriter, literal
from .rooms import RoomWriter
from .sizes import dim_params, dim_text, sizes_inside
from .views import Lying, Row, Strided, lying_of, row_of

MOST_BYTES: Final = 4096
"""Constant tensors that are larger are not written into a text."""


class ExpressionWriter(RoomWriter):
    """Writes the straight-line code of one C function."""

    # Expressions.

    def _simple(self, expr: Expr, wish: str) -> str | None:
        """Return the C expression of a value; None for unit."""
        match expr:
            case Call():
                return self._call(expr, wish)
            case Tuple(fields) if fields:
                return self._made(type_of(expr), [self._atom(f) for f in fields], fields)
            case TupleGet(value, index):
                return None if type_of(expr) == UNIT else f"{self._atom(value)}.f{index}"
            case Var() | Constant() | Tuple():
                return None if type_of(expr) == UNIT else self._atom(expr)
            case _:
                raise NotInC(_WHY.get(type(expr).__name__, "it has values that C has not"))

    def _made(self, ty: Type, texts: Sequence[str], fields: Sequence[Expr]) -> str:
        pairs = zip(texts, fields, strict=True)
        inside = ", ".join(text for text, field in pairs if type_of(field) != UNIT)
        return f"({self.c_type(ty)}){{{inside}}}"

    def _atom(self, atom: Expr) -> str:
        match atom:
            case Var() if atom in self._values:
                return self._values[atom]
            case Var() if atom in self._views:
                return self._operator(self._views[atom].call, atom.name)
            case Constant(value=bool() | int() | float() as number):
                dtype = number_dtype(type_of(atom))
                assert dtype is not None
                self.c_type(type_of(atom))
                return str(literal(number, dtype))
            case Constant(value=TensorData() as data):
                return self._tensor(data, type_of(atom))
            case _ if is_unit(atom):
                return ""
            case _:
                raise NotInC("it has a function or a string as a value")

    def _tensor(self, data: TensorData, ty: Type) -> str:
        """Return the address of a constant tensor, or the number in it."""
        if len(data.data) > MOST_BYTES:
            raise NotInC("it has a large constant tensor")
        name = self.fresh("constant")
        elements = ", ".join(map(str, data.data)) or "0"
        aligned = "__attribute__((aligned(64)))"
        self.line(f"static const uint8_t {name}[] {aligned} = {{{elements}}};")
        if is_tensor(ty):
            return f"({self.c_type(ty)}){name}"
        number = self.fresh("number")
        self.line(f"{self.c_type(ty)} {number};")
        self.line(f"memcpy(&{number}, {name}, sizeof {number});")
        return number

    def _call(self, call: Call, wish: str) -> str | None:
        match call.callee:
            case Op() as op if isinstance(op.lowering, Host):
                return self._host(call, op)
            case Op() as op if op is collect:
                return self._collected(call, wish)
            case Op():
                return self._operator(call, wish)
            case Constructor(name=name):
                return self._data(call, name, wish)
            case _:
                callee = self.program.callee(call)
                assert callee is not None  # `CProgram` has looked
                return self._called(call, callee)

    def _called(self, call: Call, callee: Planned) -> str | None:
        if self.program.is_kernel(callee):
            return self._kernel(call, callee)
        args = ["s"]
        if callee in self.program.deep:
            before = "waiting" if self._planned in self.program.deep else "s->first_waiting"
            waiting = f"{before} + 1"
            self.line(f"relay_wait(s, {waiting}, {self.site(call)});")
            args.append(waiting)
        inside = sizes_inside(callee.function, call)
        args += [self.size(inside[Dim.atom(p)]) for p in dim_params(callee.function)]
        args += [self._atom(a) for a in call.args if type_of(a) != UNIT]
        text = f"{self.program.names[callee]}({', '.join(args)})"
        if self.c_type(result_of(callee.function)) != "void":
            return text
        self.line(f"{text};")
        return None

    def _kernel(self, call: Call, callee: Planned) -> str:
        """Write the call of a kernel, and return the expression of its results."""
        row = row_of(callee.function)
        if row is not None:
            return self._row(call, callee.function, row)
        views = [self._views.get(a) if isinstance(a, Var) else None for a in call.args]
        try:
            made = self.program.kernels.of(callee.name, [view and view.lying for view in views])
        except NotInC:
            made, views = self.program.kernels.of(callee.name), [None for _ in views]
        inside = {dim: self.size(own) for dim, own in sizes_inside(callee.function, call).items()}
        for param, arg in zip(callee.function.params, call.args, strict=True):
            ty = type_of(param)
            if isinstance(ty, SizeType):
                inside[ty.dim] = self._atom(arg)

        def size_inside(dim: Dim) -> str:
            return dim_text(dim, inside.get)

        def stride(argument: Stride) -> str:
            view = views[argument.operand]
            assert view is not None
            return self.size(view.lying.strides[argument.axis])

        args = [
            view.address if view is not None else self._atom(a) if type_of(a) != UNIT else ""
            for a, view in zip(call.args, views, strict=True)
        ]
        ty = result_of(callee.function)
        kernel = KernelCallWriter(self, args, size_inside, stride)
        names = kernel.write(made, types_of_results(ty), callee.name.replace("kernel", "made"))
        self._results[call] = names
        if not isinstance(ty, TupleType):
            return names[0]
        return f"({self.c_type(type_of(call))}){{{', '.join(names)}}}"

    def _row(self, call: Call, function: Function, row: Row) -> str:
        """Write what finds a row, and return the address of its first element."""
        given = dict(zip(function.params, call.args, strict=True))
        source = given[row.source]
        shape = shape_of(type_of(source))
        place = "0"
        for number, dim in zip(row.indices, shape, strict=False):
            index = self._atom(given[number] if isinstance(number, Var) else number)
            at = self.fresh("at")
            self.line(f"const int64_t {at} = relay_place(s, {index}, {self.size(dim)});")
            place = at if place == "0" else f"({place} * {self.size(dim)} + {at})"
        apart = self.size(product(shape[len(row.indices) :]))
        return f"({self._atom(source)} + {place} * {apart})"

    def _data(self, call: Call, constructor: str, wish: str) -> str:
        """Write what makes a value of a data type, and return its name."""
        ty = type_of(call)
        assert isinstance(ty, AdtType)
        shape = self.program.types.shape(ty, constructor)
        name = self.fresh(wish)
        if shape.bytes == "0":
            self.line(f"static {shape.struct} {name}_only = {{.tag = {shape.tag}}};")
            return f"(&{name}_only)"
        self.line(f"{shape.struct} *{name} = relay_data(s, {shape.bytes});")
        self.line(f"{name}->tag = {shape.tag};")
        for (member, part), arg in zip(shape.fields, call.args, strict=True):
            if self.c_type(part) != "void":
                self.line(f"{name}->{member} = {self._atom(arg)};")
        return name

    def _collected(self, call: Call, wish: str) -> str:
        """Write what puts the fields in lists side by side; return the tuple of the tensors."""
        (lists,) = call.args
        ty, of = type_of(call), type_of(lists)
        assert isinstance(ty, TupleType)
        assert isinstance(of, TupleType)
        if any(has_own_sizes(part) for part in subtypes(of)):
            raise NotInC("it joins tensors of different sizes")
        given = [(f"{self._atom(lists)}.f{i}", field) for i, field in enumerate(of.fields)]
        sweeps = self._sweeps(call)
        names = collected(self, given, ty.fields, wish, sweeps=sweeps)
        return f"({self.c_type(ty)}){{{', '.join(names)}}}"

    def _host(self, call: Call, op: Op) -> str | None:
        if op in (size, dim_size):
            ty = type_of(call)
            assert isinstance(ty, SizeType)
            return self.size(ty.dim)
        if op is as_bound:
            return self._atom(call.args[0])
        if op not in (check, fail, no_element):
            raise NotInC(f"it calls `{op.name}`")
        dtypes = ((number_dtype(type_of(a)), a) for a in call.args)
        failing = self.failure(call, [(d, self._atom(a)) for d, a in dtypes if d is not None])
        if op is check:
            self.line(f"if (RELAY_RARELY(!{self._atom(call.args[0])})) {failing}")
            return None
        self.line(failing)
        if type_of(call) == UNIT:
            return None
        return f"({self.c_type(type_of(call))}){{0}}"

    def _operator(self, call: Call, wish: str) -> str:
        ty = type_of(call)
        if any(is_tensor(t) for t in (ty, *map(type_of, call.args))):
            lying = lying_of(call)
            if lying is not None and lying.is_row_by_row:
                return self._behind(call, lying)
            made = self.program.kernels.of_call(call)
            kernel = KernelCallWriter(self, operands_of(call, self._atom), self.size)
            return kernel.write(made, (ty,), wish)[0]
        if not all(map(_is_numeric, (ty, *map(type_of, call.args)))):
            assert isinstance(call.callee, Op)
            raise NotInC(f"it calls `{call.callee.name}`")
        operands = [None if type_of(a) == UNIT else self._atom(a) for a in call.args]
        is_checked = self.program.may_overflow(call)
        results = NumberWriter(self, call, operands).write(is_checked=is_checked)
        if isinstance(ty, TupleType):
            return f"({self.c_type(ty)}){{{', '.join(text for text, _ in results)}}}"
        ((text, _),) = results
        return text

    def _behind(self, call: Call, lying: Lying) -> str:
        """Return the address of the first element of a view."""
        (source,) = call.args
        address = self._atom(source)
        return address if lying.offset == ZERO else f"({address} + {self.size(lying.offset)})"

    def _strided(self, var: Var, value: Expr) -> bool:
        """Let a view be read where it lies, if it can be; return whether it is."""
        lying = lying_of(value)
        if lying is None or lying.is_row_by_row or lying.is_worth_a_copy:
            return False
        assert isinstance(value, Call)
        self._views[var] = Strided(self._behind(value, lying), lying, value)
        return True

    def _comment(self, span: Span) -> None:
        """Show the line of the user's that the next lines come from, once."""
        place = (span.file.name, span.line)
        if span.file is BUILTIN or place == self._shown:
            return
        self._shown = place
        shown = span.file.line(span.line).strip().rstrip("\\")
        self.line(f"// {PurePath(span.file.name).name}:{span.line}  {shown}")


_WHY: Final = {
    "RefCreate": "it has a mutable cell",
    "RefRead": "it reads a mutable cell",
    "RefWrite": "it writes to a mutable cell",
    "Function": "it has a function as a value",
    "GlobalVar": "it has a function as a value",
}


def _is_numeric(ty: Type) -> bool:
    """Return whether a value is a number, or a tuple of numbers."""
    if isinstance(ty, TupleType):
        return all(map(_is_numeric, ty.fields))
    return number_dtype(ty) is not None
