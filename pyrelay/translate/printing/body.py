"""Bodies as statements: a binding is an assignment, or part of the expression that uses it.

A value that only A-normal form named, and that is used once, is written where it is used if that
keeps the order of evaluation: the values that wait are a stack, and an expression takes its
operands off the top. Expressions stay small, so Python's parser takes the text of any program;
statements that nest deeper than Python takes them are refused.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Final, final

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
    is_atom,
    is_unit,
    type_of,
)
from ...ir.op import Op, Promotion
from ...ir.traverse import post_order, spine
from ...ir.types import BOOL, DEFAULT_DTYPE, INT, UNIT, DType, SizeType, TensorType, int64
from . import syntax
from .file import File, refuse
from .names import Identifiers
from .operators import gives_first, operator

_MOST_PARTS: Final = 12
"""How many nodes an expression has at most that is written into another."""

_MOST_IN_AN_ARM: Final = 3
"""How many values an arm of a conditional expression computes at most."""

_DEEPEST: Final = 60
"""How deep statements nest; Python's own limit is 100 levels of indentation."""


@final
@dataclass(frozen=True, slots=True)
class Surroundings:
    """What all bodies of one function share. `kept` are the variables that keep a name, `uses`
    says how often each is mentioned."""

    file: File
    names: Identifiers
    kept: AbstractSet[Var]
    uses: Mapping[Var, int]
    known: dict[Var, ast.expr] = field(default_factory=dict[Var, ast.expr])
    """What a variable is mentioned as: its name, or what it is another name of."""
    functions: dict[Expr, tuple[str, ...]] = field(default_factory=dict[Expr, tuple[str, ...]])
    """The parameter names of the functions that have been printed."""
    first: set[Expr] = field(default_factory=set[Expr])
    """The tuples of which Python's call gives the first field alone."""
    sizes: set[str] = field(default_factory=set[str])
    """The sizes that annotations may mention."""


def uses_of(function: Function) -> Counter[Var]:
    """Give how often each variable is mentioned."""
    return Counter(node for node in post_order(function) if isinstance(node, Var))


def printed_function(
    around: Surroundings,
    function: Function,
    title: str,
    depth: int,
    decorators: Sequence[ast.expr] = (),
) -> ast.FunctionDef:
    """Give a function as a `def`. Raises CheckError."""
    file = around.file
    names: list[str] = []
    annotations: list[ast.expr | None] = []
    for param in function.params:
        name = around.names.fresh(param.name)
        around.known[param] = syntax.name(name)
        annotation = file.annotation(type_of(param))
        if annotation is None and decorators:
            refuse(param.span, f"the type of the parameter `{name}`")
        names.append(name)
        annotations.append(annotation)
    around.sizes.update(p.name for p in function.type_params)
    result = None if function.result is None else file.result(function.result, around.sizes)
    body = _Body(around, depth + 1)
    body.returned(function.body)
    if len(body.statements) > 1 and ast.unparse(body.statements[-1]) == "return":
        body.statements.pop()
    args = syntax.parameters(names, annotations)
    return syntax.definition(title, args, body.statements, result, decorators)


@final
@dataclass(frozen=True, slots=True)
class _Waiting:
    """A value that is computed and not yet written down."""

    var: Var
    value: ast.expr


@final
class _Body:
    """The statements of one scope, in order."""

    def __init__(self, around: Surroundings, depth: int) -> None:
        self.statements: Final[list[ast.stmt]] = []
        self._around: Final = around
        self._file: Final = around.file
        self._depth: Final = depth
        self._waiting: Final[list[_Waiting]] = []

    # Bodies

    def returned(self, body: Expr) -> None:
        """Write a body whose value the function gives."""
        while True:
            body = self._bindings(body)
            if not isinstance(body, If):
                break
            test = self._test(body)
            self._limit(body)
            then = _Body(self._around, self._depth + 1)
            then.returned(body.then)
            self.statements.append(ast.If(test, then.statements, []))
            body = body.otherwise
        if isinstance(body, Match):
            refuse(body.span, "a match")
        value = self._value(body)
        self._flush()
        self.statements.append(ast.Return(None if _is_unit(body) and is_atom(body) else value))

    def given(self, body: Expr, target: str | None) -> None:
        """Write a body whose value a name gets; None where it is unit."""
        body = self._bindings(body)
        match body:
            case If():
                self._branch(body, target)
            case Match():
                refuse(body.span, "a match")
            case _ if target is None and is_atom(body):
                self._flush()
            case _ if target is None:
                value = self._value(body)
                self._flush()
                self.statements.append(ast.Expr(value))
            case _:
                self._assign(target, body)
        if not self.statements:
            self.statements.append(ast.Pass())

    def _bindings(self, body: Expr) -> Expr:
        """Write the let blocks of a body, and give what it ends in."""
        while isinstance(body, LetBlock):
            if body.flavour is Flavour.REC:
                self._definitions(body.bindings)
                body = body.body
                continue
            *most, last = body.bindings
            for binding in most:
                self._binding(binding)
            if last.var is body.body and self._is_passing(last):
                return last.value
            self._binding(last)
            body = body.body
        return body

    def _is_passing(self, binding: Binding) -> bool:
        """Tell whether a binding has a name only in A-normal form, and is one expression."""
        if binding.var in self._around.kept or self._around.uses[binding.var] != 1:
            return False
        return isinstance(binding.value, Call | Tuple | TupleGet | RefCreate | RefRead | Transform)

    # Bindings

    def _binding(self, binding: Binding) -> None:
        var, value = binding.var, binding.value
        match value:
            case Function():
                self._definitions((binding,))
            case If():
                self._joined(var, value)
            case Match():
                refuse(value.span, "a match")
            case RefWrite(ref, new):
                self._write(var, ref, new)
            case _ if is_atom(value):
                self._second_name(var, value)
            case TupleGet(Var() as whole, 0) if whole in self._around.first:
                self._around.known[var] = self._around.known[whole]
            case _:
                self._named(var, value)

    def _named(self, var: Var, value: Expr) -> None:
        is_buffered = isinstance(value, Call) and gives_first(value)
        found = self._value(value)
        if is_buffered:
            self._around.first.add(var)
        if _is_unit(value):
            self._flush()
            self.statements.append(ast.Expr(found))
            self._around.known[var] = syntax.tuple_of([])
        else:
            self._keep(var, found, may_wait=not is_buffered)

    def _keep(self, var: Var, value: ast.expr, *, may_wait: bool = True) -> None:
        """Write a value down under a name, or let it wait for the expression that uses it."""
        if may_wait and self._may_wait(var, value):
            self._waiting.append(_Waiting(var, value))
            return
        self._flush()
        self.statements.append(syntax.assign(self._name(var), value))

    def _second_name(self, var: Var, value: Expr) -> None:
        if _is_unit(value):
            self._around.known[var] = syntax.tuple_of([])
        elif isinstance(value, Constant) or var.ty != value.ty:
            self._flush()
            self._annotated(self._name(var), var, value)
        else:
            (self._around.known[var],) = self._operands((value,))

    def _annotated(self, name: str, var: Var | Constant, value: Expr) -> None:
        """Write `name: type = value`: the type is not the one that the value has alone."""
        annotation = self._file.annotation(type_of(var))
        found = self._literal(value) if isinstance(value, Constant) else self._operands((value,))[0]
        if annotation is None or (isinstance(value, Constant) and _is_plain(value)):
            self.statements.append(syntax.assign(name, found))
            return
        target = ast.Name(name, syntax.STORE)
        self.statements.append(ast.AnnAssign(target, annotation, found, 1))

    def _may_wait(self, var: Var, value: ast.expr) -> bool:
        if var in self._around.kept or self._around.uses[var] != 1:
            return False
        return sum(1 for _ in ast.walk(value)) <= 3 * _MOST_PARTS

    def _name(self, var: Var) -> str:
        name = self._around.names.fresh(var.name)
        self._around.known[var] = syntax.name(name)
        return name

    def _flush(self) -> None:
        """Write down all values that wait."""
        for waiting in self._waiting:
            self.statements.append(syntax.assign(self._name(waiting.var), waiting.value))
        self._waiting.clear()

    def _definitions(self, bindings: Sequence[Binding]) -> None:
        self._flush()
        titles = [self._name(b.var) for b in bindings]
        for binding, title in zip(bindings, titles, strict=True):
            function = binding.value
            assert isinstance(function, Function)
            self._limit(function)
            made = printed_function(self._around, function, title, self._depth)
            self._around.functions[binding.var] = tuple(a.arg for a in made.args.args)
            self.statements.append(made)

    def _write(self, var: Var, ref: Expr, new: Expr) -> None:
        if any(w.var is ref for w in self._waiting):
            self._flush()
        cell, value = self._operands((ref, new))
        self._flush()
        target = ast.Attribute(cell, "value", syntax.STORE)
        self.statements.append(ast.Assign([target], value, lineno=0))
        self._around.known[var] = syntax.tuple_of([])

    # Branches

    def _joined(self, var: Var, value: If) -> None:
        chosen = self._chosen(value)
        if chosen is not None:
            self._keep(var, chosen)
            return
        if _is_unit(value):
            self._branch(value, None)
            self._around.known[var] = syntax.tuple_of([])
            return
        name = self._around.names.fresh(var.name)
        self._branch(value, name)
        self._around.known[var] = syntax.name(name)
        if not self._around.uses[var]:  # a name that is never read would not be joined
            self.statements.append(ast.Expr(syntax.name(name)))

    def _chosen(self, value: If) -> ast.expr | None:
        """Give a branch as a conditional expression, `and` or `or`; None if its arms are more."""
        arms = [self._arm(value.then), self._arm(value.otherwise)]
        if arms[0] is None or arms[1] is None or _is_unit(value):
            return None
        (test,) = self._operands((value.condition,))
        if not _is_dynamic(test):
            test = self._named_test(test)
        if _is_truth(value.otherwise, False) and value.ty == BOOL:
            return ast.BoolOp(ast.And(), [test, arms[0]])
        if _is_truth(value.then, True) and value.ty == BOOL:
            return ast.BoolOp(ast.Or(), [test, arms[1]])
        return ast.IfExp(test, arms[0], arms[1])

    def _arm(self, body: Expr) -> ast.expr | None:
        """Give an arm that is one expression; None for another."""
        blocks, _ = spine(body)
        bindings = [b for block in blocks for b in block.bindings]
        if len(bindings) > _MOST_IN_AN_ARM or not all(map(self._is_passing, bindings)):
            return None
        inside = _Body(self._around, self._depth)
        end = inside._bindings(body)
        if isinstance(end, If | Match | Function) or (
            isinstance(end, Constant) and not _is_plain(end)
        ):
            return None
        value = inside._value(end)
        return None if inside.statements or inside._waiting else value

    def _branch(self, value: If, target: str | None) -> None:
        test = self._test(value)
        self._limit(value)
        arms: list[list[ast.stmt]] = []
        for arm in (value.then, value.otherwise):
            inside = _Body(self._around, self._depth + 1)
            inside.given(arm, target)
            arms.append(inside.statements)
        otherwise = [] if [type(s) for s in arms[1]] == [ast.Pass] else arms[1]
        self.statements.append(ast.If(test, arms[0], otherwise))

    def _test(self, value: If) -> ast.expr:
        (test,) = self._operands((value.condition,))
        self._flush()
        return test if _is_dynamic(test) else self._named_test(test)

    def _named_test(self, test: ast.expr) -> ast.expr:
        """Give a condition that is known a name: Python's `if True` is no branch."""
        self._flush()
        name = self._around.names.fresh("condition")
        self.statements.append(syntax.assign(name, test))
        return syntax.name(name)

    def _limit(self, node: Expr) -> None:
        if self._depth >= _DEEPEST:
            refuse(node.span, f"branches and functions more than {_DEEPEST} deep in each other")

    def _assign(self, target: str, value: Expr) -> None:
        if isinstance(value, Constant):
            self._flush()
            self._annotated(target, value, value)
            return
        found = self._value(value)
        self._flush()
        self.statements.append(syntax.assign(target, found))

    # Expressions

    def _operands(self, operands: Sequence[Expr], call: Call | None = None) -> list[ast.expr]:
        """Give atoms as Python, with the values that wait for them put in."""
        named = [o for o in operands if isinstance(o, Constant) and not self._fits(o, call)]
        waiting = {w.var for w in self._waiting}
        wanted = [o for o in operands if isinstance(o, Var) and o in waiting]
        top = self._waiting[len(self._waiting) - len(wanted) :]
        if named or [w.var for w in top] != wanted:
            self._flush()
            top = []
        del self._waiting[len(self._waiting) - len(top) :]
        values = {w.var: w.value for w in top}
        return [
            values[o] if isinstance(o, Var) and o in values else self._atom(o, call)
            for o in operands
        ]

    def _atom(self, atom: Expr, call: Call | None) -> ast.expr:
        match atom:
            case Var() if atom in self._around.first:
                return refuse(atom.span, "the new buffers of a layer that is not trained")
            case Var():
                return self._around.known[atom]
            case Constant() if self._fits(atom, call):
                return self._literal(atom)
            case Constant():
                name = self._around.names.fresh("number")
                self._annotated(name, atom, atom)
                return syntax.name(name)
            case GlobalVar(name):
                return self._file.function(name, atom.span)
            case Constructor():
                return refuse(atom.span, "a data type")
            case _:
                return syntax.tuple_of([])

    def _fits(self, constant: Constant, call: Call | None) -> bool:
        """Tell whether a literal means this constant: alone, or beside the tensors it meets."""
        if _is_plain(constant):
            return True
        if call is None:
            return False
        if not isinstance(call.callee, Op):
            return constant.ty == INT  # a parameter is annotated, so a literal is no size there
        if call.callee.promotion is Promotion.NONE:
            return False
        met = [a.ty for a in call.args if not isinstance(a, Constant)]
        ty = constant.ty
        assert isinstance(ty, TensorType)
        return any(isinstance(m, TensorType) and m.dtype == ty.dtype for m in met)

    def _literal(self, constant: Constant) -> ast.expr:
        match constant.value:
            case TensorData() as data:
                return self._file.constant(data)
            case bool() | str() as value:
                return ast.Constant(value)
            case value:
                return self._file.number(value)

    def _value(self, value: Expr) -> ast.expr:
        """Give a value that is one expression."""
        match value:
            case _ if is_atom(value):
                return self._operands((value,))[0]
            case Tuple(fields):
                return syntax.tuple_of(self._operands(fields))
            case TupleGet():
                return self._field(value)
            case Call():
                return self._call(value)
            case RefCreate(content):
                cell = syntax.attribute(self._file.use("relay"), "ref")
                return syntax.call(cell, self._operands((content,)))
            case RefRead(ref):
                return syntax.attribute(self._operands((ref,))[0], "value")
            case Transform():
                return self._transform(value)
            case _:
                return refuse(value.span, "this expression here")

    def _field(self, value: TupleGet) -> ast.expr:
        (found,) = self._operands((value.value,))
        return syntax.item(found, ast.Constant(value.index))

    def _call(self, call: Call) -> ast.expr:
        callee = call.callee
        if isinstance(callee, Op):
            return operator(self._file, call, self._operands(call.args, call))
        function, *args = self._operands((callee, *call.args), call)
        return syntax.call(function, args)

    def _transform(self, transform: Transform) -> ast.expr:
        (function,) = self._operands((transform.function,))
        keywords: dict[str, ast.expr] = {}
        wrt = transform.wrt
        if wrt is not None and transform.single and len(wrt) == 1:
            keywords["wrt"] = self._parameter(transform, wrt[0])
        elif wrt is not None and not transform.single:
            keywords["wrt"] = syntax.tuple_of([self._parameter(transform, i) for i in wrt])
        if transform.has_aux:
            keywords["has_aux"] = ast.Constant(True)
        head = syntax.attribute(self._file.use("relay"), transform.rule.value)
        return syntax.call(head, [function], keywords)

    def _parameter(self, transform: Transform, index: int) -> ast.expr:
        """Give the parameter to differentiate in: its name, where the function has one here."""
        function = transform.function
        if isinstance(function, GlobalVar):
            return ast.Constant(self._file.parameters(function.name)[index])
        names = self._around.functions.get(function)
        return ast.Constant(index if names is None else names[index])


def _is_dynamic(condition: ast.expr) -> bool:
    """Tell whether Python takes a condition for one that the program decides."""
    return any(isinstance(n, ast.Name) for n in ast.walk(condition))


def _is_truth(expr: Expr, value: bool) -> bool:
    return isinstance(expr, Constant) and expr.value is value


def _is_unit(expr: Expr) -> bool:
    return is_unit(expr) or expr.ty == UNIT


def _is_plain(constant: Constant) -> bool:
    """Tell whether a literal alone has the type of the constant."""
    if isinstance(constant.value, TensorData | str):
        return True
    match constant.ty:
        case SizeType() | None:
            return True
        case TensorType((), DType() as dtype):  # an integer alone is a size
            return DEFAULT_DTYPE[dtype.kind] == dtype and dtype != int64
        case _:
            return False
