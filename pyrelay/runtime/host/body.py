"""The code of one global function: its straight-line part, statement by statement.

`branches`, `loops` and `functions` write the rest, and come back here for the blocks inside.
"""

from __future__ import annotations

import ast
from typing import final

from ...ir.expr import (
    Binding,
    Call,
    Constructor,
    Expr,
    Flavour,
    Function,
    If,
    LetBlock,
    Match,
    RefCreate,
    RefRead,
    RefWrite,
    Tuple,
    TupleGet,
    Var,
    type_of,
)
from ...ir.op import Op
from ...ir.traverse import Steps
from ...ir.types import UNIT, dtype_of
from ...lower_torch.apply import is_omitted
from ...lower_torch.emit import call_body, emit_op
from ...lower_torch.terms import Form, Term, form_of, leaf, tuple_term, write
from ...operators.host.debugging import is_debugging
from . import branches, functions, loops, methods
from .debugging import is_written, leave_lines, write_debugging
from .exits import Assigned, Exit, InLoop, Returned, final_exit
from .frame import Make
from .liveness import Region
from .writer import Writer


@final
class BodyWriter(Writer):
    """Writes the straight-line code of the functions of one global function."""

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
                cell, new = self.node(ref), self.node(value)
                self.emit(self.code.set_attribute(cell, "value", new))
                return leaf(lambda: self.code.tuple(()), Form.OTHER)
            case _:
                return self.atom(expr)

    def _derived(self, expr: Expr, source: Expr, make: Make) -> Term:
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
                    return methods.dispatched(self, call, operands)
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
