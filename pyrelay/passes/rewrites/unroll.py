"""Unrolling: the rounds of a loop over tensors, written out one after the other.

A kernel ends where a round does, so a loop that changes tensors element by element, such as

    for _ in range(5):
        y = relay.tanh(y * 1.1 + 0.1)

reads and writes them in every round. Written out, its rounds are one kernel, and so are those of
its gradient, which then saves nothing. Loops of many rounds become loops of several at once.

Only loops with a known number of rounds are written out, and only if each operator in them is
pointwise: others end a kernel anyway, and loops over numbers are C loops as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, Final, final

from ...analysis.bindings import used_as_values
from ...dataclass import dataclass
from ...ir.block_builder import BlockBuilder
from ...ir.effect import own_effect
from ...ir.expr import (
    Binding,
    Call,
    Constant,
    Expr,
    Flavour,
    Function,
    If,
    LetBlock,
    Tuple,
    TupleGet,
    Var,
    is_atom,
)
from ...ir.module import Module
from ...ir.op import Effect, Op, ShapeBehaviour
from ...ir.rewriter import Rewriter
from ...ir.traverse import Steps, post_order, pre_order, rebuild, refresh, spine
from ...ir.types import TensorType
from ...ir.verify import Stage
from ...operators.primitive.arithmetic import add, subtract
from ...operators.primitive.compare import greater, less
from ..base import Context, Pass

MOST: Final = 64
"""How many operators on tensors are written out at most."""


def unroll(module: Module) -> Module:
    """Return the module, in A-normal form, with short loops over tensors written out; itself if
    there are none."""
    return module.map_functions(lambda function: _Unroller(module, function).walked(function))


@final
@dataclass(frozen=True, slots=True)
class UnrollLoops(Pass):
    """Write out the rounds of loops that change tensors element by element."""

    name: ClassVar = "unroll"
    needs: ClassVar = Stage.ANF

    def run(self, module: Module, context: Context) -> Module:
        """Return the module after the pass."""
        return unroll(module)


@final
@dataclass(frozen=True, slots=True)
class _Round:
    """The body of a loop: it goes on if a condition holds."""

    before: Sequence[LetBlock]
    test: If
    onward: Sequence[LetBlock]
    again: Call

    @property
    def bindings(self) -> list[Binding]:
        """The bindings that every round evaluates that goes on."""
        return [b for block in (*self.before, *self.onward) for b in block.bindings]


@final
@dataclass(frozen=True, slots=True)
class _Loop:
    """A loop to be written out: `rounds` of them in all, `at_once` of them in each new round."""

    var: Var
    function: Function
    rounds: int
    at_once: int


@final
class _Unroller(Rewriter):
    """One walk over a function, inner loops first."""

    def __init__(self, module: Module, function: Function) -> None:
        super().__init__(module)
        self._escaping: Final = used_as_values(function)
        self._calls: Final[dict[Var, list[Call]]] = {}
        self._loops: Final[dict[Var, _Loop]] = {}
        for node in post_order(function.body):
            if isinstance(node, Call) and isinstance(node.callee, Var):
                self._calls.setdefault(node.callee, []).append(node)

    def recursive(self, block: LetBlock, code: BlockBuilder) -> Steps[None]:
        """Add recursive functions, but for a loop that is written out where it is called."""
        bound: list[Binding] = []
        for binding in block.bindings:
            value = yield self.node(binding.value, code)
            bound.append(Binding(binding.var, value))
        loop = self._loop(block.bindings[0], bound[0].value) if len(bound) == 1 else None
        if loop is None:
            code.bind_rec(bound)
        else:
            self._loops[loop.var] = loop

    def node(self, expr: Expr, code: BlockBuilder) -> Steps[Expr]:
        """Return a node, or, of a call of a loop, the end of the rounds in its place."""
        if not isinstance(expr, Call) or not isinstance(expr.callee, Var):
            return (yield super().node(expr, code))
        args = tuple(map(self.atom, expr.args))
        loop = self._loops.get(expr.callee)
        if loop is None:
            return rebuild(expr, (self.atom(expr.callee), *args))
        is_whole = loop.at_once == loop.rounds
        for _ in range(loop.rounds if is_whole else loop.rounds % loop.at_once):
            args = yield self._next(loop, args, code)
        if not is_whole:
            code.bind_rec([Binding(loop.var, (yield self._several(loop)))])
            return replace(expr, args=args)
        last = self._entered(loop, args, code)
        yield self.blocks(last.before, code)
        return (yield self.splice(last.test.otherwise, code))

    def _loop(self, written: Binding, function: Expr) -> _Loop | None:
        """Return the loop that a function is after the walk over it, if it is written out."""
        var, calls = written.var, self._calls.get(written.var, ())
        if var in self._escaping or len(calls) != 2 or not isinstance(function, Function):
            return None
        found = _round_of(function, var)
        if found is None or function.type_params or not all(map(_is_pointwise, found.bindings)):
            return None
        inside = frozenset(pre_order(written.value))
        outside = [call for call in calls if call not in inside]
        size = sum(_is_tensor(b.value) for b in found.bindings)
        if len(outside) != 1 or not 0 < size <= MOST // 2:
            return None
        rounds = _rounds(function, found, outside[0])
        return _Loop(var, function, rounds, min(rounds, MOST // size)) if rounds else None

    def _entered(self, loop: _Loop, args: Sequence[Expr], code: BlockBuilder) -> _Round:
        """Return a copy of a round whose parameters have these values."""
        function = refresh(loop.function)
        assert isinstance(function, Function)
        for param, arg in zip(function.params, args, strict=True):
            self.let(param, arg, code)
        found = _round_of(function, loop.var)
        assert found is not None
        return found

    def _next(
        self, loop: _Loop, args: Sequence[Expr], code: BlockBuilder
    ) -> Steps[tuple[Expr, ...]]:
        """Add a round that goes on; return the arguments of the next one."""
        found = self._entered(loop, args, code)
        yield self.blocks((*found.before, *found.onward), code)
        return tuple(map(self.atom, found.again.args))

    def _several(self, loop: _Loop) -> Steps[Expr]:
        """Return the function of a loop that goes through several rounds before it tests again."""
        found = _round_of(loop.function, loop.var)
        assert found is not None
        code, onward = BlockBuilder(), BlockBuilder()
        yield self.blocks(found.before, code)
        yield self.blocks(found.onward, onward)
        args = tuple(map(self.atom, found.again.args))
        for _ in range(loop.at_once - 1):
            args = yield self._next(loop, args, onward)
        then = onward.close(replace(found.again, args=args))
        otherwise = yield self.body(found.test.otherwise)
        test = rebuild(found.test, (self.atom(found.test.condition), then, otherwise))
        return rebuild(loop.function, (code.close(test),))


def _round_of(function: Function, var: Var) -> _Round | None:
    """Return the round of a loop, if its body has that form."""
    before, test = spine(function.body)
    if not isinstance(test, If):
        return None
    onward, again = spine(test.then)
    if any(block.flavour is Flavour.REC for block in (*before, *onward)):
        return None
    if not isinstance(again, Call) or again.callee is not var:
        return None
    return _Round(before, test, onward, again)


def _is_pointwise(binding: Binding) -> bool:
    """Return whether a binding ends no kernel."""
    match binding.value:
        case Call(Op() as op) as call:
            return op.shape is ShapeBehaviour.POINTWISE and own_effect(call) is Effect.NONE
        case Tuple() | TupleGet():
            return True
        case value:
            return is_atom(value)


def _is_tensor(value: Expr) -> bool:
    """Return whether a value is that of an operator, and no number."""
    return isinstance(value, Call) and isinstance(value.ty, TensorType) and bool(value.ty.shape)


def _rounds(function: Function, found: _Round, start: Call) -> int | None:
    """Return how many rounds a loop goes on, if it counts from one number to another."""
    known: dict[Expr, Expr] = {b.var: b.value for b in found.bindings}
    match known.get(found.test.condition):
        case Call(callee, (Var() as counter, Constant(value=int(stop)))):
            pass
        case _:
            return None
    if counter not in function.params:
        return None
    place = function.params.index(counter)
    first, following = start.args[place], known.get(found.again.args[place])
    match first, following:
        case Constant(value=int(begin)), Call(change, (passed, Constant(value=int(step)))):
            pass
        case _:
            return None
    if passed is not counter or change not in (add, subtract):
        return None
    step = step if change is add else -step
    if (callee, step > 0) not in ((less, True), (greater, False)) or step == 0:
        return None
    return len(range(begin, stop, step))
