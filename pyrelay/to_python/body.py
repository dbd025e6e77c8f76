"""Bodies as statements: a binding is an assignment, or part of the expression that uses it.

A branch is a conditional expression where its arms are expressions, else an `if`; one that ends a
function returns from its first arm and goes on with the second, so a chain of cases stays flat.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final, final

from ..ir.expr import (
    Binding,
    Call,
    Constant,
    Expr,
    Flavour,
    Function,
    If,
    LetBlock,
    Match,
    RefCreate,
    RefRead,
    RefWrite,
    Transform,
    Tuple,
    TupleGet,
    Var,
    is_atom,
    type_of,
)
from ..ir.traverse import spine
from ..ir.types import BOOL, Type, dim_names
from ..operators.host.sizes import equal_sizes, solved_size
from . import syntax
from .expressible import ends, gives_first, is_plain
from .expressions import Expressions, Surroundings, is_nothing
from .file import File
from .patterns import case_pattern, takes_none

_MOST_IN_AN_ARM: Final = 3
"""How many values an arm of a conditional expression computes at most."""


def printed_function(
    around: Surroundings,
    function: Function,
    title: str,
    depth: int,
    decorators: Sequence[ast.expr] = (),
) -> ast.FunctionDef:
    """Return a function as a `def`."""
    file = around.file
    names: list[str] = []
    annotations: list[ast.expr | None] = []
    for param in function.params:
        name = around.names.fresh(param.name)
        around.known[param] = syntax.name(name)
        annotation = _parameter_type(file, function, type_of(param))
        assert annotation is not None or not decorators, "a global function's types are written"
        names.append(name)
        annotations.append(annotation)
    around.sizes.update(p.name for p in function.type_params)
    result = None if function.result is None else file.result(function.result, around.sizes)
    body = _Body(around, depth + 1)
    body.returned(function.body)
    returns = list(_returns(body.statements))
    if any(r.value is not None for r in returns):
        for each in returns:  # beside values the language wants None written
            each.value = each.value or ast.Constant(None)
    elif len(body.statements) > 1 and isinstance(body.statements[-1], ast.Return):
        body.statements.pop()
    args = syntax.parameters(names, annotations)
    return syntax.definition(title, args, body.statements, result, decorators)


def _parameter_type(file: File, function: Function, ty: Type) -> ast.expr | None:
    return file.iterable(function) if file.is_iterable(ty) else file.annotation(ty)


@final
class _Body(Expressions):
    """The statements of one scope, in order."""

    def __init__(self, around: Surroundings, depth: int) -> None:
        super().__init__(around)
        self._depth: Final = depth

    # Bodies

    def returned(self, body: Expr) -> None:
        """Write a body whose value the function gives."""
        while True:
            body = self._bindings(body)
            if not isinstance(body, If):
                break
            test = self._test(body)
            then = _Body(self.around, self._depth + 1)
            then.returned(body.then)
            self.statements.append(ast.If(test, then.statements, []))
            body = body.otherwise
        if isinstance(body, Match) and body.clauses:
            self._cases(body, lambda arm, inside: inside.returned(arm))
            return
        value = self.value(body)
        self.flush()
        self.statements.append(ast.Return(None if is_nothing(body) and is_atom(body) else value))

    def given(self, body: Expr, target: str | None) -> None:
        """Write a body whose value a name gets; None where it is unit."""
        body = self._bindings(body)
        match body:
            case If():
                self._branch(body, target)
            case Match() if body.clauses:
                self._cases(body, lambda arm, inside: inside.given(arm, target))
            case _ if target is None and is_atom(body):
                self.flush()
            case _ if target is None:
                value = self.value(body)
                self.flush()
                self.statements.append(ast.Expr(value))
            case _:
                self._assign(target, body)
        if not self.statements:
            self.statements.append(ast.Pass())

    def _bindings(self, body: Expr) -> Expr:
        """Write the let blocks of a body; return its end."""
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
        """Return whether a binding has a name only in A-normal form, and is one expression."""
        if binding.var in self.around.kept or self.around.uses[binding.var] != 1:
            return False
        if self.file.leaves_open(binding.value):
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
            case Match() if value.clauses:
                self._joined_cases(var, value)
            case RefWrite(ref, new):
                self._write(var, ref, new)
            case _ if is_atom(value):
                self._second_name(var, value)
            case Call(callee) if callee in (equal_sizes, solved_size):
                # What needs the sizes has them compared, or computed, again.
                self.around.known[var] = syntax.tuple_of([])
            case TupleGet(Var() as whole, 0) if whole in self.around.first:
                self.around.known[var] = self.around.known[whole]
            case _:
                self._named(var, value)

    def _named(self, var: Var, value: Expr) -> None:
        is_determined = is_nothing(value) and isinstance(value, Call)
        if self.file.leaves_open(value) or (not is_determined and self._is_nowhere(value)):
            self.annotate(var, value)
            return
        is_buffered = gives_first(value)
        found = self.value(value)
        if is_buffered:
            self.around.first.add(var)
        if is_nothing(value):
            self.flush()
            self.statements.append(ast.Expr(found))
            self.around.known[var] = syntax.tuple_of([])
        else:
            self.keep(var, found, may_wait=not is_buffered)

    def _is_nowhere(self, value: Expr) -> bool:
        """Return whether a value does not return, so that its type is annotated. Sizes that the
        program finds have no names to write; the other arms determine them."""
        return ends(value) and dim_names(type_of(value)) <= self.around.sizes

    def _second_name(self, var: Var, value: Expr) -> None:
        if is_nothing(value):
            self.around.known[var] = syntax.tuple_of([])
        elif isinstance(value, Constant) or var.ty != value.ty:
            self.flush()
            self.annotated(self.name(var), var, value)
        else:
            (self.around.known[var],) = self.operands((value,))

    def _definitions(self, bindings: Sequence[Binding]) -> None:
        self.flush()
        titles = [self.name(b.var) for b in bindings]
        for binding, title in zip(bindings, titles, strict=True):
            function = binding.value
            assert isinstance(function, Function)
            made = printed_function(self.around, function, title, self._depth)
            self.around.functions[binding.var] = tuple(a.arg for a in made.args.args)
            self.statements.append(made)

    def _write(self, var: Var, ref: Expr, new: Expr) -> None:
        if any(w.var is ref for w in self.waiting):
            self.flush()
        cell, value = self.operands((ref, new))
        self.flush()
        target = ast.Attribute(cell, "value", syntax.STORE)
        self.statements.append(ast.Assign([target], value, lineno=0))
        self.around.known[var] = syntax.tuple_of([])

    # Branches

    def _joined(self, var: Var, value: If) -> None:
        chosen = self._chosen(value)
        if chosen is not None:
            self.keep(var, chosen)
            return
        if is_nothing(value):
            self._branch(value, None)
            self.around.known[var] = syntax.tuple_of([])
            return
        name = self.around.names.fresh(var.name)
        self._branch(value, name)
        self.around.known[var] = syntax.name(name)
        if not self.around.uses[var]:  # a name that is never read would not be joined
            self.statements.append(ast.Expr(syntax.name(name)))

    # Cases

    def _joined_cases(self, var: Var, value: Match) -> None:
        if is_nothing(value):
            self._cases(value, lambda arm, inside: inside.given(arm, None))
            self.around.known[var] = syntax.tuple_of([])
            return
        name = self.around.names.fresh(var.name)
        self._cases(value, lambda arm, inside: inside.given(arm, name))
        self.around.known[var] = syntax.name(name)
        if not self.around.uses[var]:
            self.statements.append(ast.Expr(syntax.name(name)))

    def _cases(self, value: Match, write: Callable[[Expr, _Body], None]) -> None:
        """Write a match whose arms `write` writes."""
        (subject,) = self.operands((value.value,))
        self.flush()
        cases: list[ast.match_case] = []
        is_there = False
        for clause in value.clauses:
            pattern = case_pattern(self.file, clause.pattern, self.name, is_there=is_there)
            is_there = is_there or (takes_none(clause.pattern) and clause.guard is None)
            guard = None
            if clause.guard is not None:
                # A guard has no place for statements, so what it names goes into it all the same.
                whole = replace(self.around, kept=frozenset(), is_whole=True)
                guard = _Body(whole, self._depth).one_expression(clause.guard, most=None)
                assert guard is not None, "`sayable` makes long guards local functions"
                assert _is_dynamic(guard), "`sayable` decides guards that are known"
            inside = _Body(self.around, self._depth + 2)
            write(clause.body, inside)
            cases.append(ast.match_case(pattern, guard, inside.statements))
        self.statements.append(ast.Match(subject, cases))

    def _chosen(self, value: If) -> ast.expr | None:
        """Return a branch as a conditional expression, `and` or `or`; None if its arms are more."""
        arms = [self.one_expression(value.then), self.one_expression(value.otherwise)]
        if arms[0] is None or arms[1] is None or is_nothing(value):
            return None
        (test,) = self.operands((value.condition,))
        if not _is_dynamic(test):
            test = self._named_test(test)
        if _is_truth(value.otherwise, False) and value.ty == BOOL:
            return ast.BoolOp(ast.And(), [test, arms[0]])
        if _is_truth(value.then, True) and value.ty == BOOL:
            return ast.BoolOp(ast.Or(), [test, arms[1]])
        return ast.IfExp(test, arms[0], arms[1])

    def one_expression(self, body: Expr, most: int | None = _MOST_IN_AN_ARM) -> ast.expr | None:
        """Return a body that is one expression of at most so many values; None for another."""
        blocks, _ = spine(body)
        bindings = [b for block in blocks for b in block.bindings]
        is_small = most is None or len(bindings) <= most
        if not is_small or not all(map(self._is_passing, bindings)):
            return None
        inside = _Body(self.around, self._depth)
        end = inside._bindings(body)
        is_typed = isinstance(end, Constant) and not is_plain(end)
        if isinstance(end, If | Match | Function) or is_typed:
            return None
        value = inside.value(end)
        return None if inside.statements or inside.waiting else value

    def _branch(self, value: If, target: str | None) -> None:
        test = self._test(value)
        arms: list[list[ast.stmt]] = []
        for arm in (value.then, value.otherwise):
            inside = _Body(self.around, self._depth + 1)
            inside.given(arm, target)
            arms.append(inside.statements)
        otherwise = [] if [type(s) for s in arms[1]] == [ast.Pass] else arms[1]
        self.statements.append(ast.If(test, arms[0], otherwise))

    def _test(self, value: If) -> ast.expr:
        (test,) = self.operands((value.condition,))
        self.flush()
        return test if _is_dynamic(test) else self._named_test(test)

    def _named_test(self, test: ast.expr) -> ast.expr:
        """Return a condition that is known a name: Python's `if True` is no branch."""
        self.flush()
        name = self.around.names.fresh("condition")
        self.statements.append(syntax.assign(name, test))
        return syntax.name(name)

    def _assign(self, target: str, value: Expr) -> None:
        if isinstance(value, Constant):
            self.flush()
            self.annotated(target, value, value)
            return
        if self._is_nowhere(value):
            self.stated(target, value, value)
            return
        found = self.value(value)
        self.flush()
        self.statements.append(syntax.assign(target, found))


def _returns(statements: Sequence[ast.stmt]) -> Iterator[ast.Return]:
    """Return the `return`s of a function of these statements, not those of functions inside."""
    pending: list[ast.AST] = list(statements)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Return):
            yield node
        elif not isinstance(node, ast.FunctionDef | ast.expr):
            pending += ast.iter_child_nodes(node)


def _is_dynamic(condition: ast.expr) -> bool:
    """Return whether Python takes a condition for one that the program decides."""
    return any(isinstance(n, ast.Name) for n in ast.walk(condition))


def _is_truth(expr: Expr, value: bool) -> bool:
    return isinstance(expr, Constant) and expr.value is value
