"""The body of one instance: local functions followed, function values made data where they end.

The walk gives every variable of the source a value: an atom of the new program or a known
function. A known function leaves no trace until it is called, or stored, or given back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, final

from ...analysis.free_names import names_in
from ...ir.block_builder import BlockBuilder
from ...ir.dims import Dim
from ...ir.expr import (
    Binding,
    BindPattern,
    Call,
    Clause,
    Constructor,
    ConstructorPattern,
    Expr,
    Flavour,
    Function,
    GlobalVar,
    If,
    LetBlock,
    LiteralPattern,
    Match,
    Pattern,
    Transform,
    TuplePattern,
    Var,
    Wildcard,
    is_atom,
    is_tail,
    type_of,
)
from ...ir.nested import map_nested
from ...ir.op import Op
from ...ir.traverse import Steps, children, rebuild, run, spine
from ...ir.types import AdtType, FnType, TupleType, Type
from ..deriving.ruled import rule_of
from .calls import Caller
from .closures import Instance, NotFirstOrder, Value

if TYPE_CHECKING:
    from .program import FirstOrderProgram


@final
class Converter:
    """Makes the function of an instance."""

    def __init__(self, program: FirstOrderProgram, instance: Instance, source: Function) -> None:
        self._instance: Final = instance
        self._source: Final = source
        self._table: Final = program.table
        self._types: Final[dict[Type, Type]] = {}
        self._calls: Final = Caller(program, instance)

    def function(self) -> Function:
        """Return the first-order function."""
        source, instance = self._source, self._instance
        assert source.result is not None
        rule = rule_of(source)
        body = run(self._body(source.body)) if rule is None else self._ruled(rule)
        params = tuple(instance.params)
        result = self._type(source.result)
        ty = FnType(tuple(type_of(p) for p in params), result, instance.type_params)
        return Function(
            params,
            body,
            result,
            instance.type_params,
            instance.name,
            instance.assumptions,
            ty,
            span=source.span,
        )

    def _ruled(self, rule: Transform) -> Expr:
        """Return the body of a function that consists of an annotation of global functions."""
        instance, span = self._instance, rule.span
        functions: list[Expr] = []
        for part in (rule.function, *rule.rules):
            value = self._value(part)
            assert not isinstance(value, Expr), "a ruled function is of global functions"
            functions.append(self._calls.as_global(value, span))
        if any(not isinstance(instance.values[p], Var) for p in self._source.params):
            raise NotFirstOrder("a function with a derivative of its own is passed functions", span)
        params = tuple(instance.params)
        result = self._type(type_of(self._source.body))
        ty = FnType(tuple(type_of(p) for p in params), result)
        function, *rules = functions
        made = replace(rule, function=function, rules=tuple(rules), ty=ty)
        var = Var("own", ty, span=span)
        call = Call(var, params, ty=result, span=span)
        return LetBlock((Binding(var, made),), call, Flavour.PURE, ty=result, span=span)

    # Types, in the terms of the instance.

    def _type(self, ty: Type) -> Type:
        found = self._types.get(ty)
        if found is None:
            found = self._types[ty] = self._table.convert(self._instance.change(ty))
        return found

    def _arg(self, arg: Type | Dim) -> Type | Dim:
        return self._instance.change.dim(arg) if isinstance(arg, Dim) else self._type(arg)

    def _attr(self, value: Any) -> Any:
        return self._instance.change.dim(value) if isinstance(value, Dim) else value

    def _fresh(self, var: Var) -> Var:
        """Return the variable of the new program for one of the source."""
        new = replace(var, ty=self._type(type_of(var)))
        self._instance.values[var] = new
        self._instance.sizes.update(dict.fromkeys(names_in((type_of(new),))))
        return new

    # Bodies and bindings.

    def _body(self, expr: Expr) -> Steps[Expr]:
        code = BlockBuilder()
        blocks, end = spine(expr)
        for block in blocks:
            yield self._block(block, code)
        result = yield self._node(end, code)
        if not is_tail(result):  # a call of what turns out to be a constructor
            result = code.bind(Var("t", result.ty, span=result.span), result)
        return code.close(result)

    def _block(self, block: LetBlock, code: BlockBuilder) -> Steps[None]:
        if block.flavour is Flavour.REC:
            self._calls.close(block.bindings, code)
            return
        code.flavour = block.flavour
        for binding in block.bindings:
            yield self._binding(binding, code)

    def _binding(self, binding: Binding, code: BlockBuilder) -> Steps[None]:
        var, value = binding.var, binding.value
        if isinstance(value, Function):
            self._calls.close((binding,), code)
        elif is_atom(value):
            self._instance.values[var] = self._value(value)
        elif isinstance(value, Transform):
            self._instance.values[var] = self._calls.transformed(
                value, self._value(value.function), self._instance.change(type_of(value))
            )
        else:
            built = yield self._node(value, code)
            code.bind(self._fresh(var), built)

    def _value(self, atom: Expr) -> Value:
        """Return the value of an atom of the source."""
        match atom:
            case Var():
                return self._instance.values[atom]
            case GlobalVar(name):
                ty = self._instance.change(type_of(atom))
                assert isinstance(ty, FnType)
                return self._calls.of_global(name, ty, atom.span)
            case Constructor() if isinstance(atom.ty, FnType):
                ty = self._instance.change(atom.ty)
                assert isinstance(ty, FnType)
                return self._calls.of_constructor(atom.name, ty)
            case Constructor():
                ty = self._type(type_of(atom))
                assert isinstance(ty, AdtType)
                return replace(atom, adt=ty.name, ty=ty)
            case _:
                return replace(atom, ty=self._type(type_of(atom)))

    def _data(self, atom: Expr, code: BlockBuilder) -> Expr:
        """Return an atom of the source as an atom of the new program."""
        return self._calls.as_data(self._value(atom), code, atom.span)

    def _node(self, expr: Expr, code: BlockBuilder) -> Steps[Expr]:
        if is_atom(expr):
            return self._data(expr, code)
        match expr:
            case Call():
                return self._call(expr, code)
            case If(condition, then, otherwise):
                condition = self._data(condition, code)
                then = yield self._body(then)
                otherwise = yield self._body(otherwise)
                ty = self._type(type_of(expr))
                return If(condition, then, otherwise, ty, span=expr.span)
            case Match():
                return (yield self._match(expr, code))
            case _:
                inside = tuple(self._data(child, code) for child in children(expr))
                return replace(rebuild(expr, inside), ty=self._type(type_of(expr)))

    def _call(self, expr: Call, code: BlockBuilder) -> Expr:
        ty = self._type(type_of(expr))
        callee = expr.callee
        if isinstance(callee, Op):
            args = tuple(self._data(a, code) for a in expr.args)
            attrs = {k: map_nested(v, self._attr) for k, v in expr.attrs.items()}
            return replace(expr, args=args, attrs=attrs, ty=ty)
        if isinstance(callee, Constructor):
            assert isinstance(ty, AdtType)
            args = tuple(self._data(a, code) for a in expr.args)
            return self._calls.construct(callee.name, args, ty, expr.span)
        values = tuple(self._value(a) for a in expr.args)
        if isinstance(callee, GlobalVar):
            type_args = tuple(self._arg(a) for a in expr.type_args)
            return self._calls.call_global(callee.name, type_args, values, ty, expr.span, code)
        known = self._value(callee)
        return self._calls.call(known, values, ty, expr.span, code)

    # Case analysis.

    def _match(self, expr: Match, code: BlockBuilder) -> Steps[Expr]:
        value = self._data(expr.value, code)
        clauses: list[Clause] = []
        for clause in expr.clauses:
            pattern = self._pattern(clause.pattern, type_of(value))
            guard = None if clause.guard is None else (yield self._body(clause.guard))
            body = yield self._body(clause.body)
            clauses.append(Clause(pattern, body, guard))
        ty = self._type(type_of(expr))
        return Match(value, tuple(clauses), expr.partial, ty, span=expr.span)

    def _pattern(self, pattern: Pattern, ty: Type) -> Pattern:
        """Return a pattern for values of a first-order type. Patterns nest as deep as written."""
        match pattern:
            case BindPattern(var, inner):
                new = None if inner is None else self._pattern(inner, ty)
                return BindPattern(self._fresh(var), new, span=pattern.span)
            case ConstructorPattern(name=name, fields=fields):
                assert isinstance(ty, AdtType)
                types = self._field_types(ty, name)
                inside = tuple(map(self._pattern, fields, types))
                return ConstructorPattern(ty.name, name, inside, span=pattern.span)
            case TuplePattern(fields):
                assert isinstance(ty, TupleType)
                return replace(pattern, fields=tuple(map(self._pattern, fields, ty.fields)))
            case Wildcard() | LiteralPattern():
                return pattern

    def _field_types(self, ty: AdtType, name: str) -> Sequence[Type]:
        definition = self._table.definition(ty.name)
        # A list of functions is a list of data: its arguments, not its fields, hold functions.
        return tuple(map(self._table.convert, definition.field_types(ty, name)))
