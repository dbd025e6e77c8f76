"""IR as text: `def @f[N: Dim](%x: Tensor[(N,), float32]) -> float32 { ... }`.

What is printed parses back (`parser.py`) to the same program. Names are made unique per function.
In a typed module, one where every node has a type, a type is written at each binding and otherwise
only where it is not implied by its surroundings (`text/implied.py`): `(expr : type)`.

    let %a: T = e;              a binding; consecutive ones form one block
    let %a: T = e;;             the last of a block whose body is another block of the same flavour
    let! %a: T = e;             a binding with effects
    let rec %f = fn ..., %g = fn ...;
    op(%x, %y, attribute=value) only attributes that differ from their defaults
    %f[type args](%x)           a call of a polymorphic function
    @[0:10:20]                  after a node: its span, in the file declared by #[source 0 = "..."]

The layout is rigid, one binding a line, and indentation stops growing at a depth no one reads, so
that the text of a program is linear in its size. Nothing recurses on program depth.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias, assert_never, final

from ..ir.dims import Dim
from ..ir.expr import (
    Assumption,
    Binding,
    BindPattern,
    Call,
    Clause,
    Constant,
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
    RefCreate,
    RefRead,
    RefWrite,
    Transform,
    Tuple,
    TupleGet,
    TuplePattern,
    Var,
    Wildcard,
    is_atom,
    is_unit,
)
from ..ir.module import EMPTY, AdtDef, Module
from ..ir.op import Op
from ..ir.traverse import free_vars
from ..ir.types import DTYPES, UNIT, DType, TupleType, Type
from .attributes import transform_text, written
from .constants import constant_text, constant_type, literal_text
from .implied import KNOWN_ALONE, Implied, declared
from .lexis import TYPE_RESERVED, VERSION, global_text, name_text, number_text, string_text
from .types import TypeScope, dim_text, items_text, type_arg_text, type_params_text, type_text
from .var_names import VarNames

if TYPE_CHECKING:
    from ..diagnostics.source import SourceFile, Span

Pieces: TypeAlias = "Iterator[str | Pieces]"
"""Text in the making: strings, and the pieces of what stands between them."""

_DEEPEST: Final = 40
_APPLIED_BARE: Final = (Var, GlobalVar, Constructor, Call, TupleGet, Tuple, Transform)


def to_text(program: Module | Expr, *, spans: bool = False) -> str:
    """Return a module or an expression as text; with `spans`, with the place of every node.

    >>> from pyrelay.diagnostics.source import NOWHERE
    >>> from pyrelay.ir.expr import Tuple
    >>> to_text(Tuple((), span=NOWHERE))
    '()\\n'
    """
    if isinstance(program, Module):
        printer = _Printer(program, typed=is_typed(program), spans=spans)
        return printer.module(program)
    printer = _Printer(EMPTY, typed=program.ty is not None, spans=spans)
    return _joined(printer.open_expr(program))


def is_typed(module: Module) -> bool:
    """Return whether the text of a module leaves out the types that are implied."""
    types = [ty for f in module.functions.values() for ty in (f.ty, f.body.ty)]
    return bool(types) and None not in types


def _joined(pieces: Pieces) -> str:
    """Return all strings among the pieces, in order, without recursion."""
    text: list[str] = []
    stack = [pieces]
    while stack:
        for piece in stack[-1]:
            if not isinstance(piece, str):
                stack.append(piece)
                break
            text.append(piece)
        else:
            stack.pop()
    return "".join(text)


def _line(indent: int) -> str:
    return "\n" + "  " * min(indent, _DEEPEST)


@final
class _Printer:
    """The text of one module. Every method gives pieces, in order, so names come out in order."""

    def __init__(self, module: Module, *, typed: bool, spans: bool) -> None:
        self._typed: Final = typed
        self._spans: Final = spans
        self._scope: Final = TypeScope(module.adts)
        signatures = {n: s for n, f in module.functions.items() if (s := declared(f)) is not None}
        self._implied: Final = Implied(signatures if typed else {}, module.adts)
        self._sources: Final[dict[SourceFile, int]] = {}
        self._names = VarNames()
        owners = [(c.name, adt.name) for adt in module.adts.values() for c in adt.constructors]
        counts = Counter(name for name, _ in owners)
        self._bare: Final = {owner for owner in owners if counts[owner[0]] == 1}

    # Modules

    def module(self, module: Module) -> str:
        """Return a whole module, header first."""
        parts = [_joined(self._adt(adt)) for adt in module.adts.values()]
        parts += [_joined(self._global(name, f)) for name, f in module.functions.items()]
        flags = (", typed" if self._typed else "") + (", strict" if module.strict_dtypes else "")
        header = f'#[pyrelay = "{VERSION}"{flags}]\n'
        for file, number in self._sources.items():
            header += f"#[source {number} = {string_text(file.name)}]\n"
        return "\n".join([header, *parts])

    def open_expr(self, expr: Expr) -> Pieces:
        """Return an expression on its own, after its free variables."""
        for var in free_vars(expr):
            yield f"free_var {self._binder(var)};\n"
        yield self._block(expr, 0, None)
        yield "\n"

    def _adt(self, adt: AdtDef) -> Pieces:
        yield f"type {name_text(adt.name, TYPE_RESERVED)}{self._span(adt.span)}"
        yield type_params_text(adt.type_params)
        yield " {"
        with self._scope.inside(adt.type_params):
            for constructor in adt.constructors:
                fields = [self._type(f) for f in constructor.fields]
                if constructor.field_names:
                    names = map(name_text, constructor.field_names)
                    fields = [f"{n}: {f}" for n, f in zip(names, fields, strict=True)]
                inside = f"({', '.join(fields)})" if fields else ""
                yield f"{_line(1)}{name_text(constructor.name)}{inside},"
        yield "\n}\n"

    def _global(self, name: str, function: Function) -> Pieces:
        self._names = VarNames()
        yield f"def {global_text(name)}{self._span(function.span)}"
        yield self._rest_of_function(function, 0)
        yield "\n"

    def _rest_of_function(self, function: Function, indent: int) -> Pieces:
        with self._scope.inside(function.type_params):
            params = ", ".join(self._binder(p) for p in function.params)
            yield f"{type_params_text(function.type_params)}({params})"
            if function.result is not None:
                yield f" -> {self._type(function.result)}"
            if function.assumptions:
                yield " where " + ", ".join(map(self._assumption, function.assumptions))
            yield " "
            yield self._braces(function.body, indent, function.result)

    def _assumption(self, assumption: Assumption) -> str:
        equation = f"{dim_text(assumption.left)} == {dim_text(assumption.right)}"
        inside = " ?" if assumption.is_inside else ""
        return equation + inside + self._span(assumption.span)

    # Blocks

    def _braces(self, expr: Expr, indent: int, expected: Type | None) -> Pieces:
        yield "{" + _line(indent + 1)
        yield self._block(expr, indent + 1, expected)
        yield _line(indent) + "}"

    def _block(self, expr: Expr, indent: int, expected: Type | None) -> Pieces:
        """Return a chain of let blocks and the body under them, without braces."""
        while isinstance(expr, LetBlock) and self._is_implied(expr, expected):
            if expr.flavour is Flavour.REC:
                yield self._rec_block(expr, indent)
            else:
                yield self._straight_block(expr, indent)
            yield _line(indent)
            expr = expr.body
        yield self._expr(expr, indent, expected)

    def _straight_block(self, block: LetBlock, indent: int) -> Pieces:
        word = "let" if block.flavour is Flavour.PURE else "let!"
        first = word + self._span(block.span)
        for index, binding in enumerate(block.bindings):
            yield f"{_line(indent) if index else ''}{word if index else first} "
            yield self._binding(binding, indent)
            yield ";"
        body = block.body
        if isinstance(body, LetBlock) and body.flavour is block.flavour:
            yield ";"

    def _rec_block(self, block: LetBlock, indent: int) -> Pieces:
        yield f"let rec{self._span(block.span)} "
        for index, binding in enumerate(block.bindings):
            yield f"{_line(indent)}and " if index else ""
            yield self._binding(binding, indent)
        yield ";"

    def _binding(self, binding: Binding, indent: int) -> Pieces:
        var, value = binding.var, binding.value
        if self._typed and isinstance(value, Function) and declared(value) == var.ty:
            yield self._names.text(var) + self._span(var.span)
        else:
            yield self._binder(var)
        yield " = "
        yield self._expr(value, indent, var.ty)

    # Expressions

    def _is_implied(self, expr: Expr, expected: Type | None) -> bool:
        """Return whether the parser finds the type of a node without its being written."""
        if expr.ty is None or isinstance(expr, Var):
            return True
        if isinstance(expr, Constant):
            return constant_type(expr, typed=self._typed) == expr.ty
        if not self._typed:
            return False
        if expected is not None and not isinstance(expr, KNOWN_ALONE):
            return expr.ty == expected
        return self._implied.type(expr) == expr.ty

    def _expr(self, expr: Expr, indent: int, expected: Type | None = None) -> Pieces:
        if self._is_implied(expr, expected):
            yield self._plain(expr, indent, expected)
            return
        yield "("
        yield self._plain(expr, indent, expr.ty)
        assert expr.ty is not None
        yield f" : {self._type(expr.ty)})"

    def _plain(self, expr: Expr, indent: int, expected: Type | None) -> Pieces:  # noqa: C901
        """Return a node without its own type."""
        match expr:
            case Var():
                yield self._names.text(expr)
                return
            case LetBlock():
                yield self._braces(expr, indent, expected)
                return
            case GlobalVar(name):
                yield global_text(name)
            case Constant():
                yield constant_text(expr)
            case Constructor(adt, name):
                yield self._constructor(adt, name)
            case Tuple(fields):
                yield self._tuple(fields, indent, expected)
            case TupleGet(value, index):
                yield self._operand(value, indent)
                yield f".{index}"
            case Call():
                yield self._call(expr, indent)
            case If():
                yield self._if(expr, indent, expected)
                return
            case Function():
                yield f"fn{self._span(expr.span)} "
                yield self._rest_of_function(expr, indent)
                return
            case Match():
                yield self._match(expr, indent, expected)
                return
            case RefCreate(value):
                yield self._applied("ref", (value,), indent)
            case RefRead(ref):
                yield self._applied("ref_read", (ref,), indent)
            case RefWrite(ref, value):
                yield self._applied("ref_write", (ref, value), indent)
            case Transform():
                yield self._applied(transform_text(expr), (expr.function, *expr.rules), indent)
            case other:
                assert_never(other)
        yield self._span(expr.span)

    def _operand(self, expr: Expr, indent: int) -> Pieces:
        """Return an expression that something is applied to: a callee, or the tuple of a field."""
        bare = isinstance(expr, _APPLIED_BARE)
        if bare or not self._is_implied(expr, None):
            yield self._expr(expr, indent)
            return
        yield "("
        yield self._expr(expr, indent)
        yield ")"

    def _applied(self, head: str, args: tuple[Expr, ...], indent: int) -> Pieces:
        yield head
        yield "("
        for index, arg in enumerate(args):
            yield ", " if index else ""
            yield self._expr(arg, indent)
        yield ")"

    def _tuple(self, fields: tuple[Expr, ...], indent: int, expected: Type | None) -> Pieces:
        types: tuple[Type | None, ...] = (None,) * len(fields)
        if isinstance(expected, TupleType) and len(expected.fields) == len(fields):
            types = expected.fields
        yield "("
        for index, (field, ty) in enumerate(zip(fields, types, strict=True)):
            yield ", " if index else ""
            yield self._expr(field, indent, ty)
        yield ",)" if len(fields) == 1 else ")"

    def _call(self, call: Call, indent: int) -> Pieces:
        match call.callee:
            case Op(name=name):
                yield name_text(name)
            case GlobalVar() | Constructor():  # their type follows from the type arguments
                yield self._plain(call.callee, indent, None)
            case callee:
                yield self._operand(callee, indent)
        if call.type_args:
            inside = ", ".join(type_arg_text(a, self._scope) for a in call.type_args)
            yield f"[{inside}]"
        yield "("
        separator = ""
        for arg in self._given(call):
            yield separator
            yield self._expr(arg, indent)
            separator = ", "
        for name, value in self._attrs(call).items():
            yield f"{separator}{name_text(name)}="
            yield self._attribute(value, indent)
            separator = ", "
        yield ")"

    def _given(self, call: Call) -> tuple[Expr, ...]:
        """Return the arguments without omitted operands at the end."""
        count = len(call.args)
        if self._spans or not isinstance(call.callee, Op) or count != len(call.callee.operands):
            return call.args
        optional = [p.default is None for p in call.callee.operands]
        absent = UNIT if self._typed else None
        while count and optional[count - 1] and is_unit(last := call.args[count - 1]):
            if last.ty != absent:
                break
            count -= 1
        return call.args[:count]

    def _attrs(self, call: Call) -> Mapping[str, Any]:
        if self._typed and isinstance(call.callee, Op):
            return written(call.callee, call.attrs)
        return call.attrs

    def _attribute(self, value: Any, indent: int) -> Pieces:  # noqa: C901  one case a form
        match value:
            case None | bool():
                yield repr(value)
            case int() | float():
                yield number_text(value, None)
            case str():
                yield string_text(value)
            case Dim():
                text = dim_text(value)
                is_other = value.constant is not None or text in DTYPES
                yield f"Dim({text})" if is_other else text
            case DType(name):
                yield name
            case tuple():
                yield "("
                for index, item in enumerate(value):
                    yield ", " if index else ""
                    yield self._attribute(item, indent)
                yield ",)" if len(value) == 1 else ")"
            case _ if isinstance(value, Expr) and is_atom(value):
                yield "{"
                yield self._expr(value, indent)
                yield "}"
            case _ if isinstance(value, Expr):
                yield self._braces(value, indent, None)
            case _ if isinstance(value, Type):
                yield f"Type({self._type(value)})"
            case _:
                raise TypeError(f"an attribute cannot be {value!r}")

    def _if(self, expr: If, indent: int, expected: Type | None) -> Pieces:
        """Return a conditional; those that stand as the else branch of another in a row."""
        while True:
            yield f"if{self._span(expr.span)} ("
            yield self._expr(expr.condition, indent)
            yield ") "
            yield self._braces(expr.then, indent, expected)
            yield " else "
            rest = expr.otherwise
            if not isinstance(rest, If) or not self._is_implied(rest, expected):
                break
            expr = rest
        yield self._braces(expr.otherwise, indent, expected)

    def _match(self, expr: Match, indent: int, expected: Type | None) -> Pieces:
        yield f"{'match?' if expr.partial else 'match'}{self._span(expr.span)} ("
        yield self._expr(expr.value, indent)
        yield ") {"
        for clause in expr.clauses:
            yield _line(indent + 1)
            yield self._clause(clause, indent + 1, expected)
        yield _line(indent) + "}"

    def _clause(self, clause: Clause, indent: int, expected: Type | None) -> Pieces:
        yield self._pattern(clause.pattern)
        if clause.guard is not None:
            yield " if "
            yield self._braces(clause.guard, indent, None)
        yield " => "
        yield self._braces(clause.body, indent, expected)
        yield ","

    # What stands inside a line

    def _pattern(self, pattern: Pattern) -> str:
        """Return a pattern. Patterns nest only as deep as a user writes them."""
        match pattern:
            case Wildcard():
                text = "_"
            case BindPattern(var, None):
                text = self._binder(var)
            case BindPattern(var, inner):
                assert inner is not None
                text = f"{self._pattern(inner)} as {self._binder(var)}"
            case ConstructorPattern(adt, name, fields):
                inside = ", ".join(map(self._pattern, fields))
                text = self._constructor(adt, name) + (f"({inside})" if fields else "")
            case TuplePattern(fields):
                text = items_text(list(map(self._pattern, fields)))
            case LiteralPattern(value):
                text = literal_text(value)
            case other:
                assert_never(other)
        return text + self._span(pattern.span)

    def _constructor(self, adt: str, name: str) -> str:
        bare = (name, adt) in self._bare and name[:1].isupper()
        return name_text(name) if bare else f"{name_text(adt)}::{name_text(name)}"

    def _binder(self, var: Var) -> str:
        text = self._names.text(var) + self._span(var.span)
        return text if var.ty is None else f"{text}: {self._type(var.ty)}"

    def _type(self, ty: Type) -> str:
        return type_text(ty, self._scope)

    def _span(self, span: Span) -> str:
        if not self._spans:
            return ""
        number = self._sources.setdefault(span.file, len(self._sources))
        because = f" {string_text(span.because)}" if span.because else ""
        return f"@[{number}:{span.start}:{span.end}{because}]"
