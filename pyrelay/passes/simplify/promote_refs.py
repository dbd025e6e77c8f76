"""Cells that are not passed around, as values.

A cell that is only read and written, by the function that makes it and by local functions that are
only called, is a variable: a read is its value so far, a write replaces it. A branch that writes it
returns its value beside its own; a local function, such as a loop, takes it as a parameter and, if
it writes it, returns it. Tail calls inside a loop stay tail calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Final, TypeAlias, final

from ...dataclass import dataclass
from ...ir.block_builder import BlockBuilder
from ...ir.expr import (
    Binding,
    Call,
    Clause,
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
    function_type,
    is_atom,
    type_of,
)
from ...ir.names import Names
from ...ir.traverse import Steps, children, post_order, rebuild, run, spine
from ...ir.types import UNIT, FnType, RefType, TupleType, Type
from ...ir.verify import Stage
from ..base import Context, Pass

if TYPE_CHECKING:
    from ...ir.module import Module

_Cells: TypeAlias = "dict[Var, None]"
"""A set with an order."""


def promote_refs(module: Module) -> Module:
    """Return a module in A-normal form without cells that are not passed around; itself if there
    are none."""
    return module.map_functions(_threaded)


@final
@dataclass(frozen=True, slots=True)
class PromoteRefs(Pass):
    """Replace references that do not escape by values."""

    name: ClassVar = "promote-refs"
    needs: ClassVar = Stage.ANF

    def run(self, module: Module, _: Context) -> Module:
        """Return the module after the pass."""
        return promote_refs(module)


def _threaded(function: Function) -> Function:
    uses = _Uses(function)
    changed = run(_Threading(uses).function(function)) if uses.cells else function
    assert isinstance(changed, Function)
    return changed


@final
@dataclass(frozen=True, slots=True)
class _Threaded:
    """A local function with its cells as parameters: those it takes, those it gives back."""

    var: Var
    taken: tuple[Var, ...]
    given: tuple[Var, ...]


@final
class _Uses:
    """The cells of a global function that can be values, and what local functions do to them."""

    def __init__(self, root: Function) -> None:
        self.cells: Final[dict[Var, Type]] = {}
        self.local: Final[dict[Var, Function]] = {}
        self.written_in: Final[dict[Expr, _Cells]] = {}
        """The cells that a branch writes, itself or through calls, if any."""
        self._homes: Final[dict[Var, Function]] = {}
        self._touched: Final[dict[Function, _Cells]] = {}
        self._written: Final[dict[Function, _Cells]] = {}
        self._calls: Final[dict[Function, dict[Var, None]]] = {}
        self._around: Final[dict[Function, Function]] = {}
        self._odd: Final[set[Var]] = set()
        self._branches: Final[dict[Expr, Expr | None]] = {}
        """The branches, with the branch around each in the same function."""
        self._events: Final[list[tuple[Expr, Expr | None]]] = []
        """Writes and calls, with the branch around each."""
        if not any(isinstance(node, RefCreate) for node in post_order(root)):
            return
        self._collect(root)
        escaping = self._escaping(root)
        for var in escaping:
            del self.cells[var]
        if self.cells:
            self._forget(escaping)
            self._find_branches()

    def taken(self, function: Function) -> tuple[Var, ...]:
        """Return the cells that a local function reads or writes and does not make."""
        return tuple(self._touched[function])

    def given(self, function: Function) -> tuple[Var, ...]:
        """Return those of them that it writes."""
        return tuple(self._written[function])

    def _collect(self, root: Function) -> None:
        pending: list[tuple[Expr, Function, Expr | None]] = [(root.body, root, None)]
        self._enter(root)
        while pending:
            node, owner, branch = pending.pop()
            self._note(node, owner, branch)
            if isinstance(node, If | Match):
                self._branches[node] = branch
                branch = node
            for child in reversed(children(node)):
                if isinstance(child, Function):
                    self._enter(child)
                    self._around[child] = owner
                    pending.append((child.body, child, None))
                elif not is_atom(child):
                    pending.append((child, owner, branch))

    def _note(self, node: Expr, owner: Function, branch: Expr | None) -> None:
        match node:
            case LetBlock(bindings):
                for binding in bindings:
                    self._bind(binding, owner)
            case RefRead(Var() as ref):
                self._touched[owner][ref] = None
            case RefWrite(Var() as ref):
                self._touched[owner][ref] = self._written[owner][ref] = None
                self._events.append((node, branch))
            case Call(Var() as callee):
                self._calls[owner][callee] = None
                self._events.append((node, branch))
            case _:
                pass

    def _enter(self, function: Function) -> None:
        self._touched[function], self._written[function] = {}, {}
        self._calls[function] = {}

    def _bind(self, binding: Binding, owner: Function) -> None:
        value = binding.value
        if isinstance(value, RefCreate):
            ty = type_of(value)
            assert isinstance(ty, RefType)
            self.cells[binding.var] = ty.value
            if type_of(value.value) != ty.value:
                self._odd.add(binding.var)  # an integer where a size is, or the other way round
            self._homes[binding.var] = owner
        elif isinstance(value, Function):
            self.local[binding.var] = value

    # What escapes.

    def _escaping(self, root: Function) -> set[Var]:
        """Return the cells that are passed around; `local` keeps functions that are only called."""
        found: set[Expr] = set(self._odd)
        values: set[Expr] = set()
        for node in post_order(root):
            for atom in _mentions(node):
                (found if atom in self.cells else values).add(atom)
            match node:
                case RefWrite(Var() as ref, value) if type_of(value) != self.cells.get(ref):
                    found.add(ref)
                case _:
                    pass
        for var in [v for v in self.local if v in values]:
            del self.local[var]
        self._close()
        known = frozenset(self.local.values())
        for function, touched in self._touched.items():
            if function is not root and function not in known:
                found.update(touched)
        for node in post_order(root):
            for clause in node.clauses if isinstance(node, Match) else ():
                if clause.guard is not None:
                    found.update(self._written_by(clause.guard))
        return {v for v in self.cells if v in found}

    def _close(self) -> None:
        """Let functions touch what those touch that they call, but for the cells they make."""
        callers: dict[Function, list[Function]] = {}
        for caller, called in self._calls.items():
            for var in called:
                if var in self.local:
                    callers.setdefault(self.local[var], []).append(caller)
        for sets in (self._touched, self._written):
            for function in sets:
                sets[function] = {v: None for v in sets[function] if self._is_outside(v, function)}
            self._hand_up(sets, callers)

    def _hand_up(
        self, sets: dict[Function, dict[Var, None]], callers: Mapping[Function, Sequence[Function]]
    ) -> None:
        """Add to the cells of each function those of the functions that it calls."""
        pending = list(sets)
        while pending:
            callee = pending.pop()
            for caller in callers.get(callee, ()):
                missing = (v for v in sets[callee] if v not in sets[caller])
                new = [v for v in missing if self._is_outside(v, caller)]
                if new:
                    sets[caller].update(dict.fromkeys(new))
                    pending.append(caller)

    def _is_outside(self, cell: Var, function: Function) -> bool:
        """Return whether a cell is not made in a function, nor in one inside it."""
        home: Function | None = self._homes.get(cell)
        while home is not None:
            if home is function:
                return False
            home = self._around.get(home)
        return cell in self._homes

    def _forget(self, escaping: set[Var]) -> None:
        for sets in (self._touched, self._written):
            for function in sets:
                sets[function] = {v: None for v in sets[function] if v not in escaping}

    def _written_by(self, expr: Expr) -> Iterator[Var]:
        """Return the cells that evaluating an expression may write."""
        pending = [expr]
        while pending:
            node = pending.pop()
            yield from self._writes(node)
            pending += (c for c in children(node) if not isinstance(c, Function))

    def _writes(self, node: Expr) -> Iterable[Var]:
        match node:
            case RefWrite(Var() as ref):
                return (ref,)
            case Call(Var() as callee) if callee in self.local:
                return self._written[self.local[callee]]
            case _:
                return ()

    def _find_branches(self) -> None:
        """Find what branches write."""
        for node, branch in self._events:
            for cell in self._writes(node):
                around = branch if cell in self.cells else None
                while around is not None:
                    found = self.written_in.setdefault(around, {})
                    if cell in found:
                        break
                    found[cell] = None
                    around = self._branches[around]


def _mentions(node: Expr) -> Iterator[Expr]:
    """Return the atoms that a node uses as values: not what it calls, reads or writes."""
    match node:
        case Call(Var(), args):
            yield from args
        case RefRead():
            pass
        case RefWrite(_, value):
            yield value
        case LetBlock(bindings, body):
            yield from (b.value for b in bindings)
            yield body
        case _:
            yield from children(node)


@final
class _Threading:
    """One walk over a global function, which knows the content of each cell so far."""

    def __init__(self, uses: _Uses) -> None:
        self._uses: Final = uses
        self._names: Final = Names()
        self._content: Final[dict[Var, Expr]] = {}
        self._log: Final[list[tuple[Var, Expr | None]]] = []
        self._threaded: Final[dict[Var, _Threaded]] = {}

    def function(self, function: Function) -> Steps[Expr]:
        """Return a function whose own signature stays."""
        mark = len(self._log)
        body = yield self._body(function.body, ())
        self._undo(mark)
        return rebuild(function, (body,))

    def _set(self, cell: Var, value: Expr) -> None:
        self._log.append((cell, self._content.get(cell)))
        self._content[cell] = value

    def _undo(self, mark: int) -> None:
        while len(self._log) > mark:
            cell, value = self._log.pop()
            if value is None:
                del self._content[cell]
            else:
                self._content[cell] = value

    def _fresh(self, cell: Var, hint: str = "") -> Var:
        name = self._names.fresh(hint or cell.name)
        return Var(name, self._uses.cells[cell], span=cell.span)

    # Bodies.

    def _body(self, expr: Expr, given: Sequence[Var]) -> Steps[Expr]:
        """Return a body whose value is a tuple of its own and the contents of the cells, if any."""
        code = BlockBuilder()
        blocks, end = spine(expr)
        for block in blocks:
            if block.flavour is Flavour.REC:
                code.bind_rec((yield self._functions(block.bindings)))
                continue
            code.flavour = block.flavour
            for binding in block.bindings:
                yield self._binding(binding, code)
        return code.close((yield self._end(end, given, code)))

    def _end(self, end: Expr, given: Sequence[Var], code: BlockBuilder) -> Steps[Expr]:
        if isinstance(end, If | Match) and (given or end in self._uses.written_in):
            return (yield self._branch(end, given))
        threaded = self._callee(end)
        if threaded is not None and threaded.given == tuple(given):
            return self._call(end, threaded)
        if isinstance(end, Call | If | Match) and (given or threaded is not None):
            var = Var(self._names.fresh("result"), type_of(end), span=end.span)
            yield self._binding(Binding(var, end), code)
            end = var
        elif not is_atom(end):
            end = yield self._inside(end)
        if not given:
            return end
        fields = (end, *(self._content[c] for c in given))
        ty = self._with(type_of(end), given)
        whole = Var(self._names.fresh("both"), ty, span=end.span)
        return code.bind(whole, Tuple(fields, ty, span=end.span))

    def _with(self, ty: Type, given: Sequence[Var]) -> Type:
        return TupleType((ty, *(self._uses.cells[c] for c in given))) if given else ty

    # Bindings.

    def _binding(self, binding: Binding, code: BlockBuilder) -> Steps[None]:
        var, value = binding.var, binding.value
        cells = self._uses.cells
        match value:
            case RefCreate(content) if var in cells:
                self._set(var, content)
            case RefRead(Var() as ref) if ref in cells:
                code.bind(var, self._content[ref])
            case RefWrite(Var() as ref, content) if ref in cells:
                self._set(ref, content)
                code.bind(var, Tuple((), UNIT, span=value.span))
            case Function():
                ((new, function),) = ((b.var, b.value) for b in (yield self._functions((binding,))))
                code.bind(new, function)
            case If() | Match() if value in self._uses.written_in:
                written = [c for c in self._uses.written_in[value] if c in self._content]
                branch = yield self._branch(value, written)
                self._unpack(var, branch, written, code)
            case Call() if self._callee(value) is not None:
                threaded = self._callee(value)
                assert threaded is not None
                self._unpack(var, self._call(value, threaded), threaded.given, code)
            case _:
                inside = value if is_atom(value) else (yield self._inside(value))
                code.bind(var, inside)

    def _unpack(self, var: Var, whole: Expr, given: Sequence[Var], code: BlockBuilder) -> None:
        """Bind the value of a branch or call, and record the contents of the cells after it."""
        if not given:
            code.bind(var, whole)
            return
        both = code.bind(Var(self._names.fresh("both"), type_of(whole), span=whole.span), whole)
        code.bind(var, TupleGet(both, 0, type_of(var), span=whole.span))
        for index, cell in enumerate(given, 1):
            new = self._fresh(cell)
            code.bind(new, TupleGet(both, index, new.ty, span=whole.span))
            self._set(cell, new)

    def _branch(self, branch: If | Match, given: Sequence[Var]) -> Steps[Expr]:
        ty = self._with(type_of(branch), given)
        if isinstance(branch, If):
            then = yield self._arm(branch.then, given)
            otherwise = yield self._arm(branch.otherwise, given)
            return replace(branch, then=then, otherwise=otherwise, ty=ty)
        clauses: list[Clause] = []
        for clause in branch.clauses:
            guard = None if clause.guard is None else (yield self._arm(clause.guard, ()))
            body = yield self._arm(clause.body, given)
            clauses.append(Clause(clause.pattern, body, guard))
        return replace(branch, clauses=tuple(clauses), ty=ty)

    def _arm(self, body: Expr, given: Sequence[Var]) -> Steps[Expr]:
        mark = len(self._log)
        made = yield self._body(body, given)
        self._undo(mark)
        return made

    def _inside(self, expr: Expr) -> Steps[Expr]:
        """Return a node that writes no cell of this walk, its branches and functions walked."""
        match expr:
            case If() | Match():
                return (yield self._branch(expr, ()))
            case Function():
                return (yield self.function(expr))
            case _:
                parts: list[Expr] = []
                for child in children(expr):
                    part = (yield self.function(child)) if isinstance(child, Function) else child
                    parts.append(part)
                return rebuild(expr, parts)

    # Functions.

    def _callee(self, expr: Expr) -> _Threaded | None:
        if isinstance(expr, Call) and isinstance(expr.callee, Var):
            return self._threaded.get(expr.callee)
        return None

    def _call(self, call: Expr, threaded: _Threaded) -> Call:
        assert isinstance(call, Call)
        args = (*call.args, *(self._content[c] for c in threaded.taken))
        ty = self._with(type_of(call), threaded.given)
        return replace(call, callee=threaded.var, args=args, ty=ty)

    def _functions(self, bindings: Sequence[Binding]) -> Steps[list[Binding]]:
        for binding in bindings:
            function = self._uses.local.get(binding.var)
            taken = () if function is None else self._uses.taken(function)
            if function is not None and taken:
                given = self._uses.given(function)
                ty = self._signature(function, taken, given)
                new = replace(binding.var, ty=ty)
                self._threaded[binding.var] = _Threaded(new, taken, given)
        made: list[Binding] = []
        for binding in bindings:
            assert isinstance(binding.value, Function)
            threaded = self._threaded.get(binding.var)
            if threaded is None:
                made.append(Binding(binding.var, (yield self.function(binding.value))))
                continue
            made.append(Binding(threaded.var, (yield self._taking(binding.value, threaded))))
        return made

    def _signature(self, function: Function, taken: Sequence[Var], given: Sequence[Var]) -> FnType:
        ty = function_type(function)
        params = (*ty.params, *(self._uses.cells[c] for c in taken))
        return FnType(params, self._with(ty.result, given), ty.type_params)

    def _taking(self, function: Function, threaded: _Threaded) -> Steps[Expr]:
        """Return a local function that takes the contents of cells, and returns those that it
        writes."""
        mark = len(self._log)
        params = [self._fresh(cell) for cell in threaded.taken]
        for cell, param in zip(threaded.taken, params, strict=True):
            self._set(cell, param)
        body = yield self._body(function.body, threaded.given)
        self._undo(mark)
        ty = function_type(threaded.var)
        every = (*function.params, *params)
        return replace(function, params=every, body=body, result=ty.result, ty=ty)
