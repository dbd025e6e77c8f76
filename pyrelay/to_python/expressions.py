"""Expressions: values that wait to be written into the expression that uses them.

A value that only A-normal form named, and that is used once, is written where it is used if that
keeps the order of evaluation: the values that wait are a stack, and an expression takes its
operands off the top. Expressions stay small, so Python's parser takes the text of any program.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import field, fields
from typing import Final, final

from ..dataclass import dataclass
from ..ir.expr import (
    Batching,
    Call,
    Constant,
    Constructor,
    Expr,
    GlobalVar,
    Match,
    RefCreate,
    RefRead,
    Rule,
    TensorData,
    Transform,
    Tuple,
    TupleGet,
    Var,
    is_atom,
    is_unit,
    type_of,
)
from ..ir.op import Op
from ..ir.transforms import narrow_name
from ..ir.types import UNIT
from . import syntax
from .expressible import fits, is_plain
from .file import File
from .names import Identifiers
from .operators import operator
from .sizes import Witness, static_dims

_MOST_PARTS: Final = 12
"""How many nodes an expression has at most that is written into another."""


@final
@dataclass(frozen=True, slots=True)
class Surroundings:
    """The state that all bodies of one function share. `kept` are the variables that keep a name,
    `uses` counts the mentions of each, `witnesses` show the sizes found while the program runs."""

    file: File
    names: Identifiers
    kept: AbstractSet[Var]
    uses: Mapping[Expr, int]
    witnesses: Mapping[str, tuple[Witness, ...]]
    known: dict[Var, ast.expr] = field(default_factory=dict[Var, ast.expr])
    """The text of a variable's mention: its name, or that of the value it aliases."""
    functions: dict[Expr, tuple[str, ...]] = field(default_factory=dict[Expr, tuple[str, ...]])
    """The parameter names of the functions that have been printed."""
    first: set[Expr] = field(default_factory=set[Expr])
    """The tuples of which Python's call gives the first field alone."""
    sizes: set[str] = field(default_factory=set[str])
    """The sizes that annotations may mention."""
    is_whole: bool = False
    """Whether all of it is one expression, however large."""


@final
@dataclass(frozen=True, slots=True)
class Waiting:
    """A value that is computed and not yet written down."""

    var: Var
    value: ast.expr


class Expressions:
    """Writes values as expressions, and those that cannot wait as statements before."""

    def __init__(self, around: Surroundings) -> None:
        self.statements: Final[list[ast.stmt]] = []
        self.around: Final = around
        self.file: Final = around.file
        self.waiting: Final[list[Waiting]] = []

    def operands(self, operands: Sequence[Expr], call: Call | None = None) -> list[ast.expr]:
        """Return atoms as Python, with the values that wait for them put in."""
        named = [o for o in operands if isinstance(o, Constant) and not fits(o, call)]
        waiting = {w.var for w in self.waiting}
        wanted = [o for o in operands if isinstance(o, Var) and o in waiting]
        top = self.waiting[len(self.waiting) - len(wanted) :]
        if named or [w.var for w in top] != wanted:
            self.flush()
            top = []
        del self.waiting[len(self.waiting) - len(top) :]
        values = {w.var: w.value for w in top}
        return [
            values[o] if isinstance(o, Var) and o in values else self._atom(o, call)
            for o in operands
        ]

    def _atom(self, atom: Expr, call: Call | None) -> ast.expr:
        match atom:
            case Var():
                assert atom not in self.around.first, "`sayable` gives old buffers for new ones"
                return self.around.known[atom]
            case Constant() if fits(atom, call):
                return self._literal(atom)
            case Constant():
                name = self.around.names.fresh("number")
                self.annotated(name, atom, atom)
                return syntax.name(name)
            case GlobalVar(name):
                return self.file.function(name)
            case Constructor(adt, name):
                return self.file.constructor(adt, name)
            case _:
                return syntax.tuple_of([])

    def _literal(self, constant: Constant) -> ast.expr:
        match constant.value:
            case TensorData() as data:
                return self.file.constant(data)
            case bool() | str() as value:
                return ast.Constant(value)
            case value:
                return self.file.number(value)

    def value(self, value: Expr) -> ast.expr:
        """Return a value that is one expression."""
        match value:
            case _ if is_atom(value):
                return self.operands((value,))[0]
            case Tuple(fields):
                return syntax.tuple_of(self.operands(fields))
            case TupleGet():
                return self._field(value)
            case Call():
                return self._call(value)
            case RefCreate(content):
                cell = syntax.attribute(self.file.use("relay"), "ref")
                return syntax.call(cell, self.operands((content,)))
            case RefRead(ref):
                return syntax.attribute(self.operands((ref,))[0], "value")
            case Transform():
                return self._transform(value)
            case Match(subject, ()):
                return syntax.call(self.file.use("assert_never"), self.operands((subject,)))
            case _:
                raise AssertionError("in A-normal form the rest has statements of its own")

    def _field(self, value: TupleGet) -> ast.expr:
        whole = value.value
        if value.index == 0 and isinstance(whole, Var) and whole in self.around.first:
            return self.around.known[whole]
        (found,) = self.operands((value.value,))
        return syntax.item(found, ast.Constant(value.index))

    def _call(self, call: Call) -> ast.expr:
        callee = call.callee
        if isinstance(callee, Op):
            return operator(self.file, call, self.operands(call.args, call), self._sizes(call))
        if isinstance(callee, GlobalVar):
            args = self.operands(call.args, call)
            return syntax.call(self.file.instance(call, callee.name, self.around.sizes), args)
        function, *args = self.operands((callee, *call.args), call)
        return syntax.call(function, args)

    def _sizes(self, call: Call) -> dict[str, ast.expr]:
        """Return the sizes in a call's static arguments that are found while the program runs."""
        found: dict[str, ast.expr] = {}
        for name in {n for dim in static_dims(call) for n in dim.names()}:
            known = (t for t in self.around.witnesses.get(name, ()) if t.var in self.around.known)
            witness = next(known, None)
            if witness is not None:
                value = self.around.known[witness.var]
                shape = syntax.attribute(value, "shape")
                place = witness.place
                found[name] = value if place is None else syntax.item(shape, ast.Constant(place))
        return found

    def _transform(self, transform: Transform) -> ast.expr:
        function, *rules = self.operands((transform.function, *transform.rules))
        head = syntax.attribute(self.file.use("relay"), transform.rule.value)
        if transform.rules:
            return syntax.call(syntax.call(head, rules), [function])
        if transform.rule is Rule.STOP_GRADIENT:
            return head
        if transform.rule in (Rule.AUTOCAST, Rule.CHECKPOINT):
            return syntax.call(head, [function], _policy(transform))
        keywords: dict[str, ast.expr] = {}
        options = transform.options
        head = syntax.attribute(self.file.use("relay"), transform.rule.value)
        if isinstance(options, Batching):
            for field in fields(options):
                value = getattr(options, field.name)
                if value != field.default:
                    keywords[field.name] = ast.parse(repr(value), mode="eval").body
            return syntax.call(head, [function], keywords)
        wrt = options.wrt
        if wrt is not None and options.single and len(wrt) == 1:
            keywords["wrt"] = self._parameter(transform, wrt[0])
        elif wrt is not None and not options.single:
            keywords["wrt"] = syntax.tuple_of([self._parameter(transform, i) for i in wrt])
        if options.has_aux:
            keywords["has_aux"] = ast.Constant(True)
        return syntax.call(head, [function], keywords)

    def _parameter(self, transform: Transform, index: int) -> ast.expr:
        """Return the parameter to differentiate in: its name, where the function has one here."""
        function = transform.function
        if isinstance(function, GlobalVar):
            return ast.Constant(self.file.parameters(function.name)[index])
        names = self.around.functions.get(function)
        return ast.Constant(index if names is None else names[index])

    def keep(self, var: Var, value: ast.expr, *, may_wait: bool = True) -> None:
        """Write a value down under a name, or let it wait for the expression that uses it."""
        if may_wait and self._may_wait(var, value):
            self.waiting.append(Waiting(var, value))
            return
        self.flush()
        self.statements.append(syntax.assign(self.name(var), value))

    def annotated(self, name: str, var: Var | Constant, value: Expr) -> None:
        """Write `name: type = value`: the type is not the one that the value has alone."""
        if isinstance(value, Constant) and is_plain(value):
            self.statements.append(syntax.assign(name, self._literal(value)))
            return
        found = self._literal(value) if isinstance(value, Constant) else self.operands((value,))[0]
        annotation = self.file.annotation(type_of(var))
        assert annotation is not None, "annotations express the types of numbers"
        target = ast.Name(name, syntax.STORE)
        self.statements.append(ast.AnnAssign(target, annotation, found, 1))

    def annotate(self, var: Var, value: Expr) -> None:
        """Write `name: type = value`, for a value whose type cannot be inferred from its parts."""
        target = self.around.names.fresh(var.name)
        self.stated(target, var, value)
        self.around.known[var] = syntax.name(target)

    def stated(self, target: str, typed: Expr, value: Expr) -> None:
        """Write `target: type = value`, with the type of `typed`."""
        found = self.value(value)
        self.flush()
        annotation = self.file.annotation(type_of(typed))
        assert annotation is not None, "annotations express the types of data"
        name = ast.Name(target, syntax.STORE)
        self.statements.append(ast.AnnAssign(name, annotation, found, 1))

    def _may_wait(self, var: Var, value: ast.expr) -> bool:
        if var in self.around.kept or self.around.uses[var] != 1:
            return False
        return self.around.is_whole or sum(1 for _ in ast.walk(value)) <= 3 * _MOST_PARTS

    def name(self, var: Var) -> str:
        """Return a variable a name of its own, and the name."""
        name = self.around.names.fresh(var.name)
        self.around.known[var] = syntax.name(name)
        return name

    def flush(self) -> None:
        """Write down all values that wait."""
        for waiting in self.waiting:
            self.statements.append(syntax.assign(self.name(waiting.var), waiting.value))
        self.waiting.clear()


def is_nothing(expr: Expr) -> bool:
    """Return whether a value is unit."""
    return is_unit(expr) or expr.ty == UNIT


def _policy(transform: Transform) -> dict[str, ast.expr]:
    """Return the policy of a transform as a keyword; nothing for the default one."""
    if transform.rule is Rule.AUTOCAST:
        return {"policy": ast.Constant(narrow_name(transform.policy))}
    if not transform.policy:
        return {}
    return {"policy": syntax.tuple_of([ast.Constant(name) for name in transform.policy])}
