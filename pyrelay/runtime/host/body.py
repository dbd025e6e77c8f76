"""The code of one global function: its straight-line part, statement by statement.

`BodyWriter` holds what the parts share: names, sizes in scope, the Python function under
construction. `branches`, `loops` and `functions` write the rest with it. Whatever may nest is a
step of `ir.traverse.run`, so no program nests too deeply for the compiler itself.
"""

from __future__ import annotations

import ast
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Final, final

from ...ir.dims import Dim
from ...ir.expr import (
    Binding,
    Call,
    Constant,
    Constructor,
    Expr,
    Flavour,
    Function,
    GlobalVar,
    If,
    LetBlock,
    Match,
    RefCreate,
    RefRead,
    RefWrite,
    TensorData,
    Transform,
    Tuple,
    TupleGet,
    Var,
    type_of,
)
from ...ir.op import Op
from ...ir.traverse import Steps
from ...ir.types import UNIT, DType
from ...lower_torch.apply import is_omitted
from ...lower_torch.code import Code
from ...lower_torch.constants import dtype_of as constant_dtype
from ...lower_torch.constants import is_host_number
from ...lower_torch.emit import call_body, emit_op
from ...lower_torch.terms import (
    Form,
    Number,
    Term,
    dtype_of,
    form_of,
    leaf,
    tuple_term,
    write,
)
from ...operators.host.debugging import is_debugging
from . import branches, functions, loops, methods
from .debugging import is_written, leave_lines, source_names, write_debugging
from .dispatched import dispatched_call
from .exits import Assigned, Exit, InLoop, Returned, final_exit
from .frame import Frame, Mode
from .liveness import Liveness, Region, holds_tensors
from .names import Identifiers
from .plan import Planned
from .program import Program
from .sizes import Sizes


@final
class BodyWriter:
    """Writes the Python functions of one global function; the context of the calls in them."""

    def __init__(self, program: Program, home: Planned) -> None:
        self.program: Final = program
        self.home: Final = home
        self.names: Final = Identifiers(
            program.function_names(),
            source_names(program.plan, home.function) if program.is_debugged else {},
        )
        self.written: Final[list[ast.FunctionDef]] = []
        self.bases: Final[dict[Planned, str]] = {}
        self.frame: Frame = Frame(Mode.SHALLOW)
        self.live: Liveness = program.liveness(home)
        self.loops_made: int = 0
        self.definitions: int = 0
        self._code: Final = Code(home.function.span.file)
        self._terms: Final[dict[Var, Term]] = {}
        self._holders: Final[dict[Var, str]] = {}
        self._sizes: Sizes = Sizes(self, home.needed_sizes)

    @property
    def code(self) -> Code:
        """The maker of syntax nodes."""
        return self._code

    def scalar(self, value: Number, dtype: DType) -> ast.expr:
        """Return a 0-d tensor that is made once, at compile time."""
        return self.code.name(self.program.pool.scalar(value, dtype))

    def body(self, op: Op) -> ast.expr:
        """Return the body of an operator's lowering, as a global name."""
        return self.code.name(self.program.pool.body(op))

    def kernel(self, name: str) -> ast.expr:
        """Return a function of torch's lowest layer, as a global name."""
        return self.code.name(self.program.pool.kernel(name))

    def size(self, dim: Dim) -> ast.expr:
        """Return the integer value of a dim."""
        return self._sizes.value(dim)

    def bind(self, value: ast.expr, hint: str) -> ast.expr:
        """Assign a value to a new local name; give the name."""
        name = self.names.fresh(hint)
        self.assign(name, value)
        return self.load(name)

    def bind_unless(
        self, value: ast.expr, hint: str, test: functions.Make, instead: functions.Make
    ) -> ast.expr:
        """Assign a value to a new local name, and another to it if a test of it holds; give the
        name."""
        name = self.names.fresh(hint)
        self.assign(name, value)
        other = self.code.assign(name, instead(self.code.name(name)))
        self.emit(self.code.branch(test(self.load(name)), [other], []))
        return self.load(name)

    def is_in_range(self, call: Call) -> bool:
        """Return whether the integer that a call gives is known to fit into its dtype."""
        return call in self.program.in_range

    def load(self, name: str) -> ast.expr:
        """Return the value of a local name."""
        self.frame.read(name)
        return self.code.name(name)

    def emit(self, statement: ast.stmt) -> None:
        """Add a statement."""
        self.frame.statements.append(statement)

    def assign(self, name: str, value: ast.expr) -> None:
        """Add an assignment to a local name."""
        self.frame.writes.add(name)
        self.emit(self.code.assign(name, value))

    def give(self, name: str | None, value: ast.expr) -> None:
        """Add an assignment, or if there is no name the bare expression."""
        if name is None:
            self.evaluate(value)
        else:
            self.assign(name, value)

    def evaluate(self, value: ast.expr) -> None:
        """Add an expression for its effect, if it can have one."""
        is_unit = isinstance(value, ast.Tuple) and not value.elts
        if not isinstance(value, ast.Name | ast.Constant) and not is_unit:
            self.emit(self.code.evaluate(value))

    def delete(self, variables: Sequence[Var]) -> None:
        """Add a deletion of the names of variables, if there are any."""
        names = [self._holders.get(v) or self.names.of(v) for v in variables]
        for name in names:
            self.frame.read(name)
        if names:
            self.emit(self.code.delete(names))

    @contextmanager
    def nested(self) -> Generator[list[ast.stmt]]:
        """Collect the statements of a nested block; what it learns of sizes stays inside."""
        outer, sizes = self.frame.statements, self._sizes
        self.frame.statements, self._sizes = [], sizes.copy()
        self.frame.nesting += 1
        yield self.frame.statements
        self.frame.nesting -= 1
        self.frame.statements, self._sizes = outer, sizes

    @contextmanager
    def inside(self, frame: Frame) -> Generator[None]:
        """Write into another Python function."""
        outer, sizes, live = self.frame, self._sizes, self.live
        self.frame, self._sizes = frame, sizes.copy()
        yield
        self.frame, self._sizes, self.live = outer, sizes, live

    def forget_sizes(self, names: Sequence[str]) -> None:
        """Drop sizes that a function quantifies itself."""
        self._sizes.forget(names)

    def define(self, var: Var, form: Form | None = None) -> None:
        """Bring a variable, just assigned under its name, into scope with its sizes."""
        ty = type_of(var)
        if ty == UNIT:
            self._terms[var] = leaf(lambda: self.code.tuple(()), Form.OTHER)
            return
        name = self.names.of(var)
        self._terms[var] = leaf(lambda: self.load(name), form or form_of(ty), dtype_of(ty))
        self._sizes.provide(name, ty)

    def define_as(self, var: Var, name: str) -> None:
        """Bring a variable into scope whose value another name holds."""
        self._holders[var] = name
        self._terms[var] = leaf(lambda: self.load(name), Form.OTHER)

    def target(self, var: Var) -> str | None:
        """Return the name to assign a variable's value to; None if nothing will read it."""
        if type_of(var) == UNIT:
            return None
        if var not in self.live.uses and not self._sizes.wants(type_of(var)):
            return None
        return self.names.of(var)

    def dying(self, region: Region, position: int) -> list[Var]:
        """Return the variables that can be deleted once a position is done: none that a debugger
        may look at."""
        if self.program.is_debugged:
            return []
        return [v for v in region.dying(position) if self._deletable(v, region)]

    def _deletable(self, var: Var, region: Region) -> bool:
        if self._terms[var].parts is not None:
            return False  # a tuple that was never made
        owned = var in region.inherited or self.live.is_home(var, region)
        return owned and var not in self.live.captured and holds_tensors(var.ty)

    def block(self, body: Expr, region: Region, exit_: Exit) -> Steps[None]:
        """Write a region: its bindings in order, then its result."""
        position = 0
        while isinstance(body, LetBlock):
            if body.flavour is Flavour.REC:
                yield functions.write_local(self, body.bindings)
                position += len(body.bindings)
            else:
                for place, binding in enumerate(body.bindings):
                    yield from self._binding(binding, region, position)
                    if self.program.is_debugged and self._is_compound(binding.value):
                        leave_lines(self, body, place)
                    position += 1
            body = body.body
        yield self._result(body, region, position, exit_)

    def _binding(self, binding: Binding, region: Region, position: int) -> Steps[None]:
        value = binding.value
        if isinstance(value, Function):
            yield functions.write_local(self, [binding])
        elif is_debugging(value):
            write_debugging(self, value)
            self.define(binding.var)
        elif self._is_compound(value):
            target = Assigned(self.target(binding.var))
            yield self._compound(value, region, position, target)
            self.define(binding.var)
        else:
            self._simple(binding.var, value)
            self.delete(self.dying(region, position))

    def _is_compound(self, value: Expr) -> bool:
        if isinstance(value, If | Match):
            return True
        if not isinstance(value, Call):
            return False
        callee = self.program.plan.callee(value)
        return callee is not None and callee.place is not None

    def _compound(self, value: Expr, region: Region, position: int, exit_: Exit) -> Steps[None]:
        self.code.at(value.span)
        match value:
            case If():
                yield branches.write_if(self, value, region, position, exit_)
            case Match():
                yield branches.write_match(self, value, region, position, exit_)
            case _:
                assert isinstance(value, Call)
                yield loops.enter(self, value, region, position, exit_)

    def _simple(self, var: Var, value: Expr) -> None:
        self._at(value)
        target = self.target(var)
        term = self.value(value)
        if isinstance(value, Tuple) and self.live.is_only_operand(var):
            self._terms[var] = term  # written where the operator is called
            return
        node = write(term, self, var.name)
        self.give(target, node)
        self.define(var, term.form)

    def _at(self, expr: Expr) -> None:
        """Move to the place of an expression. A debugger stops at no line for what the source does
        not say there."""
        if not self.program.is_debugged or is_written(expr):
            self.code.at(expr.span)

    def _result(self, expr: Expr, region: Region, position: int, exit_: Exit) -> Steps[None]:
        self._at(expr)
        if isinstance(expr, Call) and loops.is_jump(self, expr, exit_):
            loops.jump(self, expr, region, position, exit_)
        elif self._is_compound(expr):
            yield self._compound(expr, region, position, exit_)
        elif isinstance(expr, Function):
            name = yield functions.write_value(self, expr)
            self.finish(self.load(name), region, position, exit_)
        else:
            is_tail = isinstance(exit_, Returned)
            term = self.value(expr, is_tail=is_tail)
            self.finish(write(term, self, "result"), region, position, exit_)

    def finish(self, value: ast.expr, region: Region, position: int, exit_: Exit) -> None:
        """Write where the value of a region goes."""
        match final_exit(exit_):
            case Returned():
                self._return(value)
                return
            case Assigned(name):
                self.give(name, value)
            case _:
                self.emit(self.code.returned(self.code.tuple([self.code.literal(-1), value])))
                return
        self.delete(self.dying(region, position))
        if isinstance(exit_, InLoop):
            loops.leave(self, exit_)

    def _return(self, value: ast.expr) -> None:
        statements = self.frame.statements
        if isinstance(value, ast.Name | ast.Constant):
            # What would be deleted just before the end is deleted by it.
            while statements and isinstance(statements[-1], ast.Delete):
                statements.pop()
        self.emit(self.code.returned(value))

    def value(self, expr: Expr, *, is_tail: bool = False) -> Term:
        """Return the value of an expression that is one Python expression."""
        match expr:
            case Call():
                return self._call(expr, is_tail=is_tail)
            case Tuple(fields):
                return tuple_term(self.code, tuple(self.atom(f) for f in fields))
            case TupleGet(value, index):
                return self._derived(
                    expr, value, lambda v: self.code.item(v, self.code.literal(index))
                )
            case RefCreate(value):
                make = self.code.name("Cell")
                return self._derived(expr, value, lambda v: self.code.call(make, [v]))
            case RefRead(ref):
                return self._derived(expr, ref, lambda r: self.code.attribute(r, "value"))
            case RefWrite(ref, value):
                cell, new = self._node(ref), self._node(value)
                self.emit(self.code.set_attribute(cell, "value", new))
                return leaf(lambda: self.code.tuple(()), Form.OTHER)
            case _:
                return self.atom(expr)

    def atom(self, expr: Expr) -> Term:
        """Return the value of an atom."""
        match expr:
            case Var():
                return self._terms[expr]
            case Constant():
                return self._constant(expr)
            case GlobalVar():
                return functions.global_value(self, expr)
            case Constructor():
                return functions.constructor_value(self, expr)
            case Tuple(()):
                return leaf(lambda: self.code.tuple(()), Form.OTHER)
            case _:
                kind = "a transform" if isinstance(expr, Transform) else "not an operand"
                raise AssertionError(f"the program is not in its last stage: {kind}")

    def _constant(self, constant: Constant) -> Term:
        value = constant.value
        if isinstance(value, TensorData | str):
            return self._held(constant)
        if is_host_number(constant):
            return Term((), lambda: self.code.literal(value), Form.NUMBER, None, value)
        dtype = constant_dtype(constant)
        return Term((), lambda: self.scalar(value, dtype), Form.TENSOR, dtype, value)

    def _held(self, constant: Constant) -> Term:
        if isinstance(constant.value, str):
            text = constant.value
            return leaf(lambda: self.code.literal(text), Form.OTHER)
        name = self.program.pool.tensor(constant)
        dtype = dtype_of(type_of(constant))
        return leaf(lambda: self.code.name(name), Form.TENSOR, dtype)

    def arguments(self, call: Call) -> list[ast.expr]:
        """Return the arguments of a function's call."""
        return [
            self.code.method(node, "clone") if self.program.copies(call, i) else node
            for i, node in enumerate(self.nodes(call.args))
        ]

    def _node(self, expr: Expr) -> ast.expr:
        return write(self.atom(expr), self, "value")

    def nodes(self, exprs: Sequence[Expr]) -> list[ast.expr]:
        """Return the syntax of atoms."""
        return [self._node(e) for e in exprs]

    def _derived(self, expr: Expr, source: Expr, make: functions.Make) -> Term:
        ty = type_of(expr)
        return Term((self.atom(source),), make, form_of(ty), dtype_of(ty))

    def _call(self, call: Call, *, is_tail: bool) -> Term:
        ty = type_of(call)
        match call.callee:
            case Op() as op:
                types = [type_of(a) for a in call.args]
                unit = [() if t == UNIT else None for t in types]
                operands = [
                    None if is_omitted(op, i, unit[i]) else self.atom(a)
                    for i, a in enumerate(call.args)
                ]
                if self.program.plan.view.applies_to(call):
                    return dispatched_call(self, call, operands)
                if self.program.may_overwrite(call):
                    body = self.code.name(self.program.pool.in_place_body(op))
                    return call_body(call, operands, self, body)
                by_site = methods.chosen(self, call, operands)
                return emit_op(call, operands, self) if by_site is None else by_site
            case Constructor(adt, name):
                layout = self.program.layout
                return Term(
                    tuple(self.atom(a) for a in call.args),
                    lambda *nodes: layout.construct(self.code, adt, name, nodes),
                    Form.OTHER,
                )
            case _:
                node = functions.call(self, call, is_tail=is_tail)
                return Term((), lambda: node, form_of(ty), dtype_of(ty))
