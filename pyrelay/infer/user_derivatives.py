"""Derivatives that users write, typed: the rules of a function fit the function.

For `f: (A...) -> B` the rules of `custom_vjp` are `fwd: (A...) -> (B, R)` and `bwd: (R, B) ->
Awrt`, where `Awrt` are the parameters that hold floats: one bare, several as a tuple. The rule of
`custom_jvp` is `((A...), (Awrt...)) -> (B, B)`, of two tuples. The captures of the function and its
rules come first in all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Final, TypeAlias, final

from ..dataclass import dataclass
from ..diagnostics.catalogue.derivatives import RuleMismatch
from ..diagnostics.catalogue.types import NotAFunction, TransformMismatch
from ..diagnostics.diagnostic import Problem
from ..ir.derived_types.differentiable import is_differentiable
from ..ir.expr import Batching, Options, Rule, Transform
from ..ir.op import Clash
from ..ir.types import UNIT, FnType, TupleType, Type, TypeHole, show
from .batching import BatchConstraint
from .transforms import TransformConstraint

if TYPE_CHECKING:
    from ..diagnostics.source import Span
    from ..ir.module import AdtDef
    from .solver import Solver

_Part: TypeAlias = tuple[str, Type, Type]
"""A part of a rule's type, in words, with the type that it has and the one that it must have."""


AnyTransform: TypeAlias = "TransformConstraint | BatchConstraint | RulesConstraint"


def constraint_of(
    transform: Transform, types: Sequence[Type], result: Type, adts: Mapping[str, AdtDef]
) -> AnyTransform:
    """Return the constraint of a transform on the types of its functions."""
    if transform.rule.keeps_type:
        function, *rules = types
        return RulesConstraint(transform, function, tuple(rules), result)
    if isinstance(transform.options, Batching):
        return BatchConstraint(transform, types[0], result, adts)
    return TransformConstraint(transform, types[0], result, adts)


@final
@dataclass(slots=True)
class RulesConstraint:
    """The rules of a derivative fit the function that they are for."""

    transform: Transform
    function: Type
    rules: tuple[Type, ...]
    result: Type
    options: Options = field(init=False)
    """Those of the transform; in the end, with the parameters that have cotangents."""
    failing: tuple[int, _Part | None] = (-1, None)
    """The rule that was being looked at, and the part of it."""

    def __post_init__(self) -> None:
        self.options = self.transform.options

    @property
    def span(self) -> Span:
        """The place in the user's program."""
        return self.transform.span

    def attempt(self, solver: Solver) -> None:
        """Make it hold. Raises Stuck or Clash."""
        self.failing = (-1, None)
        function = _function(solver, self.function)
        solver.unify(self.result, function)
        if not self.rules:
            self.options = replace(self.options, wrt=())
            return
        if self.transform.rule is Rule.CUSTOM_JVP:
            self._attempt_forward(solver, function)
        else:
            self._attempt_reverse(solver, function)

    def _attempt_forward(self, solver: Solver, function: FnType) -> None:
        """Make the rule of `custom_jvp` fit. Raises Stuck or Clash."""
        rule = self._rule(solver, 0)
        captured, own = self._split(function)
        if len(rule.params) != len(captured) + 2:
            raise Clash("count")
        for number, (given, wanted) in enumerate(zip(rule.params, captured, strict=False)):
            self._unify(solver, 0, f"parameter {number + 1}", given, wanted)
        primals, tangents = rule.params[len(captured) :]
        self._unify(solver, 0, "parameter 1", primals, TupleType(own))
        self._result(solver, 0, TupleType((function.result, function.result)))
        wanted = TupleType(self._floats(solver, function))
        self._unify(solver, 0, "parameter 2", tangents, wanted)

    def _attempt_reverse(self, solver: Solver, function: FnType) -> None:
        """Make the rules of `custom_vjp` fit. Raises Stuck or Clash."""
        rules = [self._rule(solver, i) for i in range(len(self.rules))]
        for index, (rule, params) in enumerate(zip(rules, self._params(solver), strict=True)):
            self.failing = (index, None)
            if len(rule.params) != len(params):
                raise Clash("count")
            for number, (own, wanted) in enumerate(zip(rule.params, params, strict=True)):
                self._unify(solver, index, f"parameter {number + 1}", own, wanted)
        self._result(solver, 0, TupleType((function.result, self._saved(solver))))
        wanted = self._floats(solver, function)
        self._result(solver, 1, wanted[0] if len(wanted) == 1 else TupleType(wanted))

    def _split(self, function: FnType) -> tuple[tuple[Type, ...], tuple[Type, ...]]:
        """Return the parameters that are captured, and the function's own."""
        count = self.transform.captures
        return function.params[:count], function.params[count:]

    def _floats(self, solver: Solver, function: FnType) -> tuple[Type, ...]:
        """Return the parameters that hold floats, which are those in the options from here on.
        Raises Stuck or Clash."""
        for ty in function.params:
            solver.awaited(ty)
        own = [solver.resolve(p) for p in self._split(function)[1]]
        floats = tuple(i for i, ty in enumerate(own) if is_differentiable(ty))
        self.options = replace(self.options, wrt=floats, single=len(floats) == 1)
        if not floats:
            self.failing = (-1, None)
            raise Clash(
                "no parameter of the function holds floats", help="declare one as Float or a tensor"
            )
        return tuple(own[i] for i in floats)

    def _params(self, solver: Solver) -> Iterator[tuple[Type, ...]]:
        """Return the parameters that each rule must have."""
        function = _function(solver, self.function)
        yield function.params
        captured, _ = self._split(function)
        yield (*captured, self._saved(solver), function.result)

    def _saved(self, solver: Solver) -> Type:
        """Return the type of the values that the forward function saves."""
        self.failing = (0, None)
        forward = self._rule(solver, 0)
        result = solver.shallow(forward.result)
        if isinstance(result, TypeHole):
            function = _function(solver, self.function)
            result = TupleType((function.result, solver.fresh()))
            solver.unify(forward.result, result)
        if not isinstance(result, TupleType) or len(result.fields) != 2:
            raise Clash("pair")
        return result.fields[1]

    def _rule(self, solver: Solver, index: int) -> FnType:
        self.failing = (index, None)
        return _function(solver, self.rules[index])

    def _result(self, solver: Solver, index: int, wanted: Type) -> None:
        self._unify(solver, index, "result", self._rule(solver, index).result, wanted)

    def _unify(self, solver: Solver, index: int, part: str, own: Type, wanted: Type) -> None:
        self.failing = (index, (part, own, wanted))
        solver.unify(own, wanted)

    def explain(self, solver: Solver, clash: Exception) -> Problem:
        """Return the diagnostic for the user."""
        index, part = self.failing
        rule = self.transform.rule.value
        mention = self.transform.function if index < 0 else self.transform.rules[index]
        types = [solver.resolve(t) for t in (self.function, *self.rules)]
        if not isinstance(types[index + 1], FnType):
            return NotAFunction(mention.span, show(types[index + 1]))
        function = types[0]
        assert isinstance(function, FnType)
        if index < 0:
            help_ = clash.help if isinstance(clash, Clash) else None
            return TransformMismatch(self.span, rule, str(clash), help_)
        wanted, form = self._wanted(function, types[1:])[index]
        found = types[index + 1]
        why = f"is {show(found)}"
        if part is not None:
            place, own, asked = part
            why = f"has {show(solver.resolve(own))} as its {place}, not "
            why += show(solver.resolve(asked))
        return RuleMismatch(mention.span, self.span, rule, form, why, wanted)

    def _wanted(self, function: FnType, rules: Sequence[Type]) -> list[tuple[str, str]]:
        """Return the type that each rule must have, as text, with its form in words."""
        _, own = self._split(function)
        value = "B" if isinstance(function.result, TypeHole) else show(function.result)
        floats = [show(p) for p in own if is_differentiable(p)]
        taken = ", ".join(map(show, own))
        if self.transform.rule is Rule.CUSTOM_JVP:
            pair = f"tuple[{value}, {value}]"
            return [(f"Fn[[tuple[{taken}], tuple[{', '.join(floats)}]], {pair}]", _DIRECTIONAL)]
        forward = rules[0]
        pair = forward.result if isinstance(forward, FnType) else UNIT
        is_pair = isinstance(pair, TupleType) and len(pair.fields) == 2
        saved = show(pair.fields[1]) if is_pair and isinstance(pair, TupleType) else "R"
        back = floats[0] if len(floats) == 1 else f"tuple[{', '.join(floats)}]"
        return [
            (f"Fn[[{taken}], tuple[{value}, {saved}]]", _FORWARD),
            (f"Fn[[{saved}, {value}], {back}]", _BACKWARD),
        ]


_FORWARD: Final = (
    "takes the parameters of the function and returns its result with what the backward rule needs"
)
_BACKWARD: Final = (
    "takes what the forward rule saves and a cotangent of the result, and returns a cotangent for "
    "each parameter that holds floats"
)
_DIRECTIONAL: Final = (
    "takes a tuple of the arguments and a tuple of directions, one for each parameter that holds "
    "floats, and returns the result with its tangent"
)


def _function(solver: Solver, ty: Type) -> FnType:
    """Return a function type. Raises Stuck and Clash."""
    found = solver.known(ty)
    if not isinstance(found, FnType):
        raise Clash("only functions have derivatives")
    return found
