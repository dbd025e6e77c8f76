"""The values of the forward function that backward code needs, found after dead code is dropped.

`prune` drops bindings whose value nothing uses. `collect` then finds, for each piece of code, the
forward variables and sizes it mentions. Values that cost nothing are not needed but computed
again: constants, sizes, tensors made of a size, and views of a value that is at hand anyway. A
branch of an `If` whose arms need nothing that was made inside them needs no residual of its own:
the condition says which arm ran.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, final

from ...analysis.dim_availability import needed
from ...ir.dims import Dim
from ...ir.expr import Binding, Call, Constant, Expr, If, Tuple, TupleGet, Var
from ...ir.op import Effect, Op, View
from ...ir.traverse import Steps, children, free_vars
from ...ir.types import Type
from .code import Branching, Code, Ending, Fork, Needs, Scope, Work

if TYPE_CHECKING:
    from ..deriving.bodies import Step

MAX_HOISTED: Final = 8
"""The most values that arms may need from outside for the condition to be saved in their place:
saving more, on every path, would cost more than a residual for the path that ran."""

MAX_CHAIN: Final = 16
"""The longest chain of views that is done again."""


def prune(code: Code, live: set[Var]) -> Steps[None]:
    """Drop the bindings that neither lead to a live variable nor work on shadows."""
    kept: list[Binding] = []
    for binding in reversed(code.bindings):
        if binding.var not in live and binding.var not in code.effects:
            code.forks.pop(binding.var, None)
            continue
        kept.append(binding)
        fork = code.forks.get(binding.var)
        if fork is None:
            live.update(mentioned(binding.value))
            continue
        for _, inside in fork.arms:
            live.update(r for r in inside.results if isinstance(r, Var))
            yield prune(inside, live)
    code.bindings[:] = reversed(kept)


def mentioned(expr: Expr) -> tuple[Var, ...]:
    """Return the free variables of the value of a binding."""
    inside = children(expr)
    if any(children(c) for c in inside):
        return free_vars(expr)
    own = (expr,) if isinstance(expr, Var) else inside
    return tuple(c for c in own if isinstance(c, Var))


def mentioned_dims(expr: Expr) -> Iterator[Dim]:
    """Return the dims whose values an expression takes."""
    pending = [expr]
    while pending:
        node = pending.pop()
        yield from needed(node)
        pending += children(node)


def register(work: Work, code: Code) -> Steps[None]:
    """Inform the forward function of the forks in code that has been pruned."""
    for fork in code.forks.values():
        branching = _branching(work, fork)
        branching.forks.append(fork)
        for arm, inside in fork.arms:
            branching.scopes.setdefault(arm, Scope()).codes.append(inside)
            yield register(work, inside)


def _branching(work: Work, fork: Fork) -> Branching:
    key = (fork.step, fork.ending)
    if key not in work.branchings:
        var = Var(f"{fork.step.var.name}_path", span=fork.step.value.span)
        work.branchings[key] = Branching(fork.step, var)
        work.residuals[var] = fork.step
    return work.branchings[key]


@final
class Collector:
    """Finds needs in the code of one function."""

    def __init__(self, work: Work, threaded: frozenset[int]) -> None:
        self._work: Final = work
        params = work.source.function.params
        self._threaded: Final = frozenset(params[i] for i in threaded)
        self._order: Final = {s: i for i, s in enumerate(work.source.definitions.values())}

    def collect(self, code: Code) -> Steps[None]:
        """Fill in what a piece of code, and those inside it, need."""
        for index, binding in enumerate(code.bindings):
            fork = code.forks.get(binding.var)
            if fork is None:
                code.bindings[index] = binding = self._direct(binding)
                self._mention(code.needs, binding)
                continue
            for _, inside in fork.arms:
                yield self.collect(inside)
            self._fork(code.needs, fork)
        for result in code.results:
            if self._is_forward(result):
                assert isinstance(result, Var)
                code.needs.vars[result] = None
        self._recompute(code)

    def _is_forward(self, atom: Expr) -> bool:
        work = self._work
        return isinstance(atom, Var) and (atom in work.source.homes or atom in work.residuals)

    def _direct(self, binding: Binding) -> Binding:
        """Let a field of a tuple that the forward function made stand for itself."""
        match binding.value:
            case TupleGet(Var() as var, index):
                step = self._work.source.definitions.get(var)
                if step is not None and isinstance(step.value, Tuple):
                    return Binding(binding.var, step.value.fields[index])
                return binding
            case _:
                return binding

    def _mention(self, needs: Needs, binding: Binding) -> None:
        needs.dims.update(dict.fromkeys(mentioned_dims(binding.value)))
        atoms = mentioned(binding.value)
        pulled = self._work.open_calls.get(binding.var)
        if pulled is not None:
            # The values of threaded parameters count only if the callee turns out to use them.
            assert isinstance(binding.value, Call)
            skipped = len(pulled.instance.candidates)
            args = binding.value.args
            atoms = tuple(a for a in (args[0], *args[1 + skipped :]) if isinstance(a, Var))
        needs.vars.update((a, None) for a in atoms if self._is_forward(a))

    def _fork(self, needs: Needs, fork: Fork) -> None:
        branching = self._work.branchings[fork.step, fork.ending]
        condition = fork.step.value.condition if isinstance(fork.step.value, If) else None
        if condition is None or not self._is_conditional(fork, branching):
            needs.vars[branching.var] = None
            return
        branching.by_condition = True
        if isinstance(condition, Var):
            needs.vars[condition] = None
        for _, code in fork.arms:
            needs.vars.update(code.needs.vars)
            needs.dims.update(code.needs.dims)
            code.needs = Needs()

    def _is_conditional(self, fork: Fork, branching: Branching) -> bool:
        if fork.ending is not Ending.ALL or len(branching.forks) > 1:
            return False
        outside: set[Var] = set()
        for arm, code in fork.arms:
            for var in code.needs.vars:
                step = self._work.residuals.get(var)
                home = self._work.source.homes[var if step is None else step.var]
                if home is arm.body:
                    return False
                outside.add(var)
        return len(outside - self._threaded) <= MAX_HOISTED

    # Values that are computed again.

    def _recompute(self, code: Code) -> None:
        again: dict[Step, None] = {}
        for var in list(code.needs.vars):
            chain = self._chain(var, code.needs)
            if chain:
                del code.needs.vars[var]
                again.update(dict.fromkeys(chain))
        code.recomputed = sorted(again, key=self._order.__getitem__)
        for step in code.recomputed:
            code.needs.dims.update(dict.fromkeys(mentioned_dims(step.value)))
            for atom in mentioned(step.value):
                if self._work.source.definitions.get(atom) not in again:
                    code.needs.vars[atom] = None

    def _chain(self, var: Var, needs: Needs) -> list[Step]:
        """Return the steps that compute a value again from what is at hand; none if they cannot."""
        chain: list[Step] = []
        while len(chain) < MAX_CHAIN:
            step = self._work.source.definitions.get(var)
            if step is None:
                return []
            chain.append(step)
            if _is_made_of_nothing(step.value):
                return chain
            source = _viewed(step.value)
            if source is None:
                return []
            if source in self._threaded or source in needs.vars:
                return chain
            var = source
        return []


def _is_made_of_nothing(expr: Expr) -> bool:
    match expr:
        case Constant():
            return True
        case Call(Op() as op, ()):
            return op.effect is Effect.NONE
        case _:
            return False


def _viewed(expr: Expr) -> Var | None:
    """Return the variable of which an expression is a view."""
    match expr:
        case TupleGet(Var() as var) | (Var() as var):
            return var
        case Call(Op(lowering=View()), (Var() as var,)):
            return var
        case _:
            return None


def type_of_saved(work: Work, var: Var) -> Type:
    """Return the type of something that is saved."""
    found = work.types.get(var) or var.ty
    assert found is not None, f"the type of {var.name} is known before it is saved"
    return found
