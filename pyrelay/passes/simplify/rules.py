"""Rewrite rules: equations between calls of operators, applied from left to right.

A rule holds for every value. It is its `statement`, the code that applies it, and a program in
which it applies, from which its test is made. `simplify/algebra.py` has the laws that `fold`
applies, `peepholes.py` those that move or combine calls.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeAlias, final

from ...analysis.bindings import uses
from ...dataclass import dataclass
from ...ir.block_builder import BlockBuilder
from ...ir.expr import Binding, Call, Expr, Function
from ...ir.module import Module
from ...ir.op import Op
from ...ir.rewriter import Rewriter
from ...ir.traverse import Steps, map_bindings
from ..base import Opaque, nothing_opaque

Definitions: TypeAlias = Mapping[Expr, Expr]
"""The values of variables, where they are known."""


@final
@dataclass(frozen=True, slots=True)
class Redex:
    """A call that a rule may apply to, with the definitions around it."""

    call: Call
    known: Definitions
    uses: Counter[Expr]
    combined: set[Expr]
    """The variables whose calls rules have put into others."""
    before: list[Binding]
    """Bindings that precede the replacement of the call."""

    def made_by(self, atom: Expr, *ops: Op) -> Call | None:
        """Return the call that an atom is the value of, if it is one of the operators."""
        made = self.known.get(atom)
        return made if isinstance(made, Call) and made.callee in ops else None

    def made_for_it(self, atom: Expr, *ops: Op) -> Call | None:
        """Return such a call if nothing else uses its value."""
        return self.made_by(atom, *ops) if self.uses[atom] == 1 else None

    def combine(self, atom: Expr) -> None:
        """Note that the call that an atom is the value of is part of another now."""
        if self.uses[atom] == 1:
            self.combined.add(atom)


@final
@dataclass(frozen=True, slots=True)
class Rewrite:
    """An equation between calls: its left side is a call of `op`.

    `apply` returns the right side, or None where the rule does not apply. `params` and `body` are a
    program in which it does. Where one of the operators `also` on the left side is dispatched to an
    implementation from outside, the rule does not apply.
    """

    statement: str
    op: Op
    apply: Callable[[Redex], Expr | None]
    params: str
    body: str
    also: tuple[Op, ...] = ()


def by_operator(rules: Iterable[Rewrite]) -> Mapping[Op, tuple[Rewrite, ...]]:
    """Return rules by the operator whose calls they apply to, in order."""
    found: dict[Op, tuple[Rewrite, ...]] = {}
    for rule in rules:
        found[rule.op] = (*found.get(rule.op, ()), rule)
    return found


def apply_rules(
    module: Module, rules: Iterable[Rewrite], opaque: Opaque = nothing_opaque
) -> Module:
    """Return the module, in A-normal form, with rules applied to the calls of each body, but for
    those with an operator that is `opaque`."""
    table = by_operator(r for r in rules if not any(map(opaque, (r.op, *r.also))))
    return module.map_functions(lambda function: _applied(module, function, table))


def _applied(
    module: Module, function: Function, rules: Mapping[Op, tuple[Rewrite, ...]]
) -> Function:
    walk = _Peepholes(module, function, rules)
    found = walk.walked(function)
    if not walk.combined:
        return found

    def kept(binding: Binding) -> Sequence[Binding]:
        return () if binding.var in walk.combined else (binding,)

    return replace(found, body=map_bindings(found.body, kept))


@final
class _Peepholes(Rewriter):
    """One walk over a function."""

    def __init__(
        self, module: Module, function: Function, rules: Mapping[Op, tuple[Rewrite, ...]]
    ) -> None:
        super().__init__(module)
        self._rules: Final = rules
        self._uses: Final = uses(function)
        self._known: dict[Expr, Expr] = {}
        self.combined: Final[set[Expr]] = set()

    def body(self, expr: Expr) -> Steps[Expr]:
        """Return a body; what it binds is known in it alone, so no call moves into a loop."""
        outside, self._known = self._known, {}
        found = yield super().body(expr)
        self._known = outside
        return found

    def binding(self, binding: Binding, code: BlockBuilder) -> Steps[None]:
        """Add a binding, rewritten by the first rule that applies."""
        value = yield self.node(binding.value, code)
        found = self._rewritten(value, code) if isinstance(value, Call) else None
        if found is None or isinstance(found, Call):
            self._known[binding.var] = value if found is None else found
        code.bind(binding.var, value if found is None else found)

    def _rewritten(self, call: Call, code: BlockBuilder) -> Expr | None:
        rules = self._rules.get(call.callee, ()) if isinstance(call.callee, Op) else ()
        for rule in rules:
            site = Redex(call, self._known, self._uses, self.combined, [])
            found = rule.apply(site)
            if found is not None:
                for binding in site.before:
                    code.bind(binding.var, binding.value)
                return found
        return None
