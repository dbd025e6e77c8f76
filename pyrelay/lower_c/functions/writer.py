"""The body of one C function: bindings are declarations, branches `if`, loops `for (;;)`.

A function in place (`kernels/function_plan.py`) stands where it is called. A call of it in tail
position assigns its parameters and jumps to its beginning; so does a tail call of another function
that calls back in tail position, which gets a labelled block in the same C function.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Final, final

from ...dataclass import dataclass
from ...ir.dims import Dim
from ...ir.expr import (
    Binding,
    BindPattern,
    Call,
    Clause,
    Constant,
    ConstructorPattern,
    Expr,
    Function,
    If,
    LetBlock,
    LiteralPattern,
    Match,
    Pattern,
    TuplePattern,
    Var,
    Wildcard,
    is_unit,
    type_of,
)
from ...ir.traverse import Steps, run
from ...ir.types import UNIT, AdtType, TensorType, TupleType, Type
from ...kernels.function_plan import Planned
from .c_types import NotInC, declared, is_tensor, leaves_of, number_dtype, result_of
from .dying import row_type
from .expressions import ExpressionWriter
from .numbers import literal
from .program import CProgram
from .rooms import Around
from .sizes import dim_params, tensor_bytes
from .views import read_where_they_lie

DEEPEST: Final = 100
"""How many blocks may lie in each other; compilers allow more than twice as many."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Loop:
    """A function in place, or a block, while it is written: its parameters, and its label."""

    planned: Planned
    params: tuple[str | None, ...]
    label: str
    mark: str | None = None
    """The name of what memory is used before the loop, if it carries tensors."""


@final
@dataclass(frozen=True, slots=True)
class _Exit:
    """Where the value of a body goes: it is returned, or assigned to a name (None: it is unit), and
    into data where it `escapes`. `loops` are those that may be gone on with here, innermost
    first."""

    is_returned: bool
    target: str | None
    escapes: bool
    loops: tuple[_Loop, ...] = ()


@final
class BodyWriter(ExpressionWriter):
    """Writes one C function, that of a function of the program."""

    def __init__(self, program: CProgram, planned: Planned) -> None:
        super().__init__(program, planned)
        self._labels: Final[set[str]] = set()
        self._blocks: Final[dict[Planned, _Loop]] = {}
        self._pending: Final[list[Planned]] = []
        self._read_where_they_lie: Final = read_where_they_lie(planned.function, self._is_kernel)

    # The function.

    def write(self) -> str:
        """Return the definition of the function. Raises NotInC."""
        function = self._planned.function
        head = self.head()
        main = self._block(self._planned, declared=True)
        start: list[str] = []
        if self._planned.has_jumps:
            known = frozenset((*self._unchanged(), *self._sizes.values()))
            self._around = Around(known, [])
            self._columns = self._columns_of(self._planned, self._own_calls())
            with self._nested() as start:
                main = self._blocks[self._planned] = self._carrying(main)
        bodies = [(main, self._body_of(main, function))]
        if self._around is not None:
            start[:0] = (*self._column_lines(), *self._around.lines)
            self._around = self._columns = None
        while self._pending:
            loop = self._blocks[self._pending.pop(0)]
            bodies.append((loop, self._body_of(loop, loop.planned.function)))
        lines = [f"{head} {{"]
        for loop, _ in bodies[1:]:
            lines += [f"    {d};" for d in self._declared(loop)]
        lines += _in(start)
        for loop, body in bodies:
            label = [f"{loop.label}:;"] if loop.label in self._labels else []
            inside = body if len(bodies) == 1 else ["{", *_in(body), "}"]
            lines += [*label, *_in(inside)]
        return "\n".join((*lines, "}")) + "\n"

    def head(self) -> str:
        """Return the declaration of the function."""
        function = self._planned.function
        own = ["relay_state *s"]
        own += ["int64_t waiting"] if self._planned in self.program.deep else []
        for size in dim_params(function):
            name = self._sizes.setdefault(Dim.atom(size), self.fresh(f"size_{size.name}"))
            own.append(f"int64_t {name}")
        for param in function.params:
            if type_of(param) == UNIT:
                continue
            if param not in self._values:
                self._bind(param, self.fresh(param.name))
            own.append(declared(self.c_type(type_of(param)), self._values[param]))
        result = declared(self.c_type(result_of(function)), self.program.names[self._planned])
        return f"static {result}({', '.join(own)})"

    def _column_lines(self) -> list[str]:
        columns = self._columns
        if columns is None or not columns.columns:
            return []
        dying = self.program.dying.get(columns.loop)
        if dying is not None and dying.walker is columns.loop:
            columns.dying = dying.fields[0]
        elif dying is not None:
            saved = (dying.node.args[field] for field in dying.fields)
            made = [self._named.get(v) for v in saved if isinstance(v, Var)]
            columns.side_by_side = [names[0] for names in made if names]
            if dying.ahead is not None:
                row = tensor_bytes(row_type(dying.ahead.param), self.size)
                columns.ahead = self._values[dying.ahead.param], row
        return columns.lines(self.program.types, self._atom, self.fresh)

    def _unchanged(self) -> Iterator[str]:
        """Yield the names of the parameters that all jumps to the beginning leave as they are."""
        calls = [site.call for site in self._jumping_sites()]
        for index, param in enumerate(self._planned.function.params):
            if param in self._values and all(call.args[index] is param for call in calls):
                yield self._values[param]

    def _block(self, planned: Planned, *, declared: bool) -> _Loop:
        """Return the block of a function that is jumped to, which is written later."""
        found = self._blocks.get(planned)
        if found is None:
            if not declared:
                if any(is_tensor(type_of(p)) for p in planned.function.params):
                    raise NotInC("functions of tensors call each other in tail position")
                for param in planned.function.params:
                    self._bind(param, self.fresh(param.name))
                self._pending.append(planned)
            found = self._loop_of(planned)
            self._blocks[planned] = found
        return found

    def _loop_of(self, planned: Planned) -> _Loop:
        params = tuple(
            None if type_of(p) == UNIT else self._values[p] for p in planned.function.params
        )
        return _Loop(planned, params, self._names.fresh(f"next_{planned.name}"))

    def _declared(self, loop: _Loop) -> list[str]:
        types = [self.c_type(type_of(p)) for p in loop.planned.function.params]
        pairs = zip(types, loop.params, strict=True)
        return [declared(ty, name) for ty, name in pairs if name is not None]

    def _body_of(self, loop: _Loop, function: Function) -> list[str]:
        with self._nested() as lines:
            escapes = any(map(self.program.escapes.has, (loop.planned, self._planned)))
            run(self._body(function.body, _Exit(is_returned=True, target=None, escapes=escapes)))
        return lines

    @contextmanager
    def _nested(self) -> Generator[list[str]]:
        outer, self._lines = self._lines, []
        sizes = dict(self._sizes)
        self._depth += 1
        if self._depth > DEEPEST:
            raise NotInC("its branches lie too deep in each other")
        try:
            yield self._lines
        finally:
            self._lines = outer
            self._sizes.clear()
            self._sizes.update(sizes)  # the names of the others end with the block
            self._depth -= 1

    # Bodies.

    def _body(self, body: Expr, exit_: _Exit) -> Steps[None]:
        while isinstance(body, LetBlock):
            for binding in body.bindings:
                if not isinstance(binding.value, Function):  # it stands where it is called
                    yield self._binding(binding)
            body = body.body
        yield self._end(body, exit_)

    def _binding(self, binding: Binding) -> Steps[None]:
        var, value = binding.var, binding.value
        escapes = self.program.escapes.has(var)
        if self._is_compound(value):
            exit_ = _Exit(is_returned=False, target=self._target(var), escapes=escapes)
            yield self._end(value, exit_)
            return
        self._comment(value.span)
        if var in self._read_where_they_lie and not escapes and self._strided(var, value):
            return
        columns = self._columns
        if columns is not None and var not in columns.rounds.bound:
            self._columns = None
        mark = self._marked(value)
        is_ahead = var in self.program.read_by_rows
        self.row = tensor_bytes(row_type(var), self.size) if is_ahead else None
        with self._making(escapes=escapes):
            text = self._simple(value, var.name)
        self.row = None
        self._columns = columns
        self._name_made(var, value)
        if text is not None and type_of(var) != UNIT:
            self._name(var, value, text)
        if mark is not None:
            self.line(f"relay_forget(s, {mark});")
        self._drop_ended(binding)

    def _name(self, var: Var, value: Expr, text: str) -> None:
        """Declare a name for a value, unless it has one."""
        if isinstance(value, Var | Constant) or text.isidentifier():
            self._bind(var, text)
            return
        name = self.fresh(var.name)
        c_type = self.c_type(type_of(var))
        head = f"{c_type}const" if c_type.endswith("*") else f"const {c_type}"
        self.line(f"{head} {name} = {text};")
        self._bind(var, name)

    def _target(self, var: Var) -> str | None:
        """Declare the variable that a branch or a loop assigns."""
        c_type = self.c_type(type_of(var))
        if c_type == "void":
            return None
        name = self.fresh(var.name)
        self.line(f"{declared(c_type, name)};")
        self._bind(var, name)
        return name

    def _is_compound(self, value: Expr) -> bool:
        if isinstance(value, If | Match):
            return True
        callee = self.program.callee(value) if isinstance(value, Call) else None
        return callee is not None and callee.place is not None

    def _end(self, expr: Expr, exit_: _Exit) -> Steps[None]:
        match expr:
            case If():
                yield self._if(expr, exit_)
            case Match():
                yield self._match(expr, exit_)
            case Call() if (callee := self.program.callee(expr)) is not None:
                loop = next((o for o in exit_.loops if o.planned is callee), None)
                if loop is not None:
                    self._jump(expr, loop, exit_)
                elif callee.place is not None:
                    yield self._enter(expr, callee, exit_)
                elif exit_.is_returned and self.program.jumps_to(self._planned, callee):
                    self._jump(expr, self._block(callee, declared=False), exit_)
                else:
                    self._give(expr, exit_)
            case _:
                self._give(expr, exit_)

    def _give(self, expr: Expr, exit_: _Exit) -> None:
        with self._making(escapes=exit_.escapes):
            text, ty = self._simple(expr, "result"), type_of(expr)
        if exit_.is_returned:
            self.line("return;" if text is None or ty == UNIT else f"return {text};")
        elif exit_.target is not None:
            self.line(f"{exit_.target} = {text};")

    def _if(self, node: If, exit_: _Exit) -> Steps[None]:
        with self._nested() as then:
            yield self._body(node.then, exit_)
        with self._nested() as otherwise:
            yield self._body(node.otherwise, exit_)
        condition = self._atom(node.condition)
        self._branch(condition, then, otherwise)

    def _branch(self, condition: str, then: list[str], otherwise: list[str]) -> None:
        if not then:
            negated = condition if condition.isidentifier() else f"({condition})"
            condition, then, otherwise = f"!{negated}", otherwise, []
        if not then:
            return
        self._lines += [f"if ({condition}) {{", *_in(then)]
        if not otherwise:
            self.line("}")
        elif _leaves(then):
            self._lines += ["}", *otherwise]
        else:
            self._lines += ["} else {", *_in(otherwise), "}"]

    # Loops.

    def _enter(self, call: Call, callee: Planned, exit_: _Exit) -> Steps[None]:
        """Write the body of a function in place."""
        function = callee.function
        self._comment(function.span)
        known = frozenset((*self._values.values(), *self._sizes.values()))
        for param, arg in zip(function.params, call.args, strict=True):
            if type_of(param) == UNIT:
                continue
            name = self.fresh(param.name)
            head = declared(self.c_type(type_of(param)), name)
            self.line(f"{head} = {self._atom(arg)};")
            self._bind(param, name)
        if not callee.has_jumps:
            yield self._body(function.body, exit_)
            return
        if function.type_params:
            raise NotInC("the sizes of tensors change from round to round")
        around = Around(known, [])
        outer, self._around = self._around, around
        columns, again = self._columns, [s.call for s in callee.sites if s.call is not call]
        self._columns = self._columns_of(callee, again)
        begin = len(self._lines)
        loop = self._carrying(self._loop_of(callee))
        inner = replace(exit_, loops=(loop, *exit_.loops))
        with self._nested() as body:
            yield self._body(function.body, inner)
        self._lines[begin:begin] = (*self._column_lines(), *around.lines)
        self._around, self._columns = outer, columns
        if body and body[-1] == "continue;":
            body.pop()
        elif not _leaves(body):
            body.append("break;")
        if loop.label in self._labels:
            self.line(f"{loop.label}:;")
        self._lines += ["for (;;) {", *_in(body), "}"]

    def _carrying(self, loop: _Loop) -> _Loop:
        """Return a loop with room for the tensors that it carries, which is declared here. What
        a round makes besides is forgotten when it ends."""
        if not self.program.has_tensors:
            return loop
        known = frozenset[str]() if self._around is None else self._around.known
        for param, name in zip(loop.planned.function.params, loop.params, strict=True):
            ty = type_of(param)
            if self.program.escapes.has(param) or name in known:
                continue
            if isinstance(ty, TupleType) and any(is_tensor(t) for _, t in leaves_of(ty)):
                raise NotInC("a loop carries a tuple with a tensor in it")
            if isinstance(ty, TensorType) and is_tensor(ty):
                c_type = self.c_type(ty).rstrip("* ")
                room = f"relay_room(s, {tensor_bytes(ty, self.size)})"
                self.line(f"{c_type} *{name}_next = {room}, *{name}_last = {room};")
        mark = self.fresh("mark")
        self.line(f"const relay_mark {mark} = relay_marked(s);")
        return replace(loop, mark=mark)

    def _jump(self, call: Call, loop: _Loop, exit_: _Exit) -> None:
        """Write a call in tail position of what is being written."""
        columns = self._columns
        for arg, name in zip(call.args, loop.params, strict=True):
            made = self._named.get(arg) if isinstance(arg, Var) else None
            if columns is not None and columns.loop is loop.planned and made and name:
                columns.lead_with(made[0], name)
        self._assign(loop, [None if is_unit(a) else self._atom(a) for a in call.args])
        if loop.mark is not None:
            self.line(f"relay_forget(s, {loop.mark});")
        self.line("relay_tick(s);")
        if exit_.loops and exit_.loops[0] is loop:
            self.line("continue;")
        else:
            self._labels.add(loop.label)
            self.line(f"goto {loop.label};")

    def _assign(self, loop: _Loop, values: Sequence[str | None]) -> None:
        """Assign parameters at once; a value that an earlier one overwrites is kept before. The
        elements of a tensor go to a place of the loop, as what a round makes is forgotten."""
        written: list[str] = []
        late: list[str] = []
        for param, name, value in zip(
            loop.planned.function.params, loop.params, values, strict=True
        ):
            if name is None or value is None or name == value:
                continue
            ty = type_of(param)
            if isinstance(ty, TensorType) and is_tensor(ty) and not self.program.escapes.has(param):
                if loop.mark is None:
                    raise NotInC("functions of tensors call each other in tail position")
                self.line(f"RELAY_CARRY({name}, {value}, {tensor_bytes(ty, self.size)});")
                late.append(f"RELAY_TURN({name}, {value});")
                continue
            if re.split(r"\W", value, maxsplit=1)[0] in written:
                kept = self.fresh("kept")
                self.line(f"{declared(self.c_type(ty), kept)} = {value};")
                value = kept
            written.append(name)
            late.append(f"{name} = {value};")
        self._lines += late

    # Matches.

    def _match(self, node: Match, exit_: _Exit) -> Steps[None]:
        value = self._atom(node.value) if type_of(node.value) != UNIT else ""
        yield self._clauses(node.clauses, value, type_of(node.value), exit_, node)

    def _clauses(
        self, clauses: Sequence[Clause], value: str, ty: Type, exit_: _Exit, node: Match
    ) -> Steps[None]:
        first, *rest = clauses
        if first.guard is not None:
            raise NotInC("it has a `case` with a guard")
        tests = list(self._tests(first.pattern, value, ty))
        is_last = not rest and not node.partial
        if not rest and node.partial:
            raise NotInC("it has a `match` that may fail")
        if not tests or is_last:
            self._name_parts(first.pattern)
            yield self._body(first.body, exit_)
            return
        with self._nested() as then:
            self._name_parts(first.pattern)
            yield self._body(first.body, exit_)
        with self._nested() as otherwise:
            yield self._clauses(rest, value, ty, exit_, node)
        self._branch(" && ".join(tests), then, otherwise)

    def _tests(self, pattern: Pattern, value: str, ty: Type) -> Iterator[str]:
        """Yield what must hold for a pattern to match, and bind its names."""
        match pattern:
            case Wildcard():
                return
            case BindPattern(var, inner):
                self._bind(var, value)
                if inner is not None:
                    yield from self._tests(inner, value, ty)
            case TuplePattern(fields):
                assert isinstance(ty, TupleType)
                for index, (field, part) in enumerate(zip(fields, ty.fields, strict=True)):
                    yield from self._tests(field, f"{value}.f{index}", part)
            case ConstructorPattern(_, name, fields):
                assert isinstance(ty, AdtType)
                shape = self.program.types.shape(ty, name)
                yield f"{value}->tag == {shape.tag}"
                for field, (member, part) in zip(fields, shape.fields, strict=True):
                    yield from self._tests(field, f"{value}->{member}", part)
            case LiteralPattern(value=bool() | int() | float() as number):
                dtype = number_dtype(ty)
                assert dtype is not None
                yield f"{value} == {literal(number, dtype)}"
            case _:
                raise NotInC("it matches strings")

    def _name_parts(self, pattern: Pattern) -> None:
        """Declare the names that a pattern binds to parts of data."""
        pending = [pattern]
        while pending:
            match pending.pop():
                case BindPattern(var, inner):
                    pending += [] if inner is None else [inner]
                    text = self._values[var]
                    if "->" in text and type_of(var) != UNIT:
                        name = self.fresh(var.name)
                        head = declared(self.c_type(type_of(var)), name)
                        self.line(f"{head} = {text};")
                        self._bind(var, name)
                case ConstructorPattern(fields=fields) | TuplePattern(fields):
                    pending += reversed(fields)
                case _:
                    pass


def _in(lines: Sequence[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def _leaves(lines: Sequence[str]) -> bool:
    """Return whether the last line goes somewhere else."""
    return bool(lines) and lines[-1].startswith(("return", "continue;", "goto ", "relay_fail("))
