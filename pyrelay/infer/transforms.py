"""The types of transforms: a function comes in, and the function that the transform makes of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, assert_never, final

from ..dataclass import dataclass
from ..diagnostics.catalogue.types import NotAFunction, TransformMismatch
from ..ir.derived_types.differentiable import is_differentiable
from ..ir.derived_types.jacobians import NoJacobian, jacobian_type
from ..ir.expr import Differentiation, Rule, Transform
from ..ir.op import Clash, Stuck
from ..ir.types import (
    DTypeHole,
    DTypeKind,
    FnType,
    TensorType,
    TupleType,
    Type,
    TypeHole,
    show,
    subtypes,
)

if TYPE_CHECKING:
    from ..diagnostics.diagnostic import Problem
    from ..diagnostics.source import Span
    from ..ir.module import AdtDef
    from .solver import Solver


@final
@dataclass(slots=True)
class TransformConstraint:
    """A transform takes a function and gives the function it makes of it."""

    transform: Transform
    function: Type
    result: Type
    adts: Mapping[str, AdtDef]
    options: Differentiation = field(init=False)
    """Those of the transform; in the end, with what it leaves to inference."""
    output: Type | None = None
    """The result of the function that is made, known to exist before the arguments are typed."""
    tangents: Type | None = None
    """The tuple of tangents that it takes, in forward mode."""

    def __post_init__(self) -> None:
        assert isinstance(self.transform.options, Differentiation)
        self.options = self.transform.options

    @property
    def span(self) -> Span:
        """The place in the user's program."""
        return self.transform.span

    def attempt(self, solver: Solver) -> None:
        """Make it hold. Raises Stuck or Clash."""
        function = solver.resolve(solver.known(self.function))
        if not isinstance(function, FnType):
            raise Clash("only functions have gradients")
        if self.options.has_aux and not _is_pair(solver, function.result):
            raise Clash("with has_aux the function returns a pair, (loss, aux)")
        if self.output is None:
            # A call of what is made then shows the types of a lambda's parameters.
            self.output = solver.fresh()
            captured, params = self._split(function)
            self.tangents = solver.fresh()
            given = (TupleType(params), self.tangents) if self._is_forward else params
            solver.unify(self.result, FnType((*captured, *given), self.output))
        for ty in (*function.params, function.result):
            solver.awaited(ty)
        function = solver.resolve(function)
        assert isinstance(function, FnType)
        own = replace(function, params=self._split(function)[1])
        self.options = _chosen(self.options, own)
        if self._is_forward:
            assert self.tangents is not None
            wanted = tuple(own.params[i] for i in self.options.indices)
            solver.unify(self.tangents, TupleType(wanted))
        if self.transform.rule in (Rule.HESSIAN, Rule.JACFWD, Rule.JACREV) and not solver.settling:
            _expect_known(own)
        made = _made(self.transform.rule, self.options, own, self.adts)
        solver.unify(self.output, made)

    @property
    def _is_forward(self) -> bool:
        return self.transform.rule.takes_tangents

    def _split(self, function: FnType) -> tuple[tuple[Type, ...], tuple[Type, ...]]:
        """Return the parameters that are captured, and the function's own."""
        count = self.transform.captures
        return function.params[:count], function.params[count:]

    def explain(self, solver: Solver, clash: Exception) -> Problem:
        """Return the diagnostic for the user."""
        return explain_transform(self.transform, solver.resolve(self.function), clash)


def explain_transform(transform: Transform, function: Type, clash: Exception) -> Problem:
    """Return the diagnostic of a transform that does not fit its function."""
    if not isinstance(function, FnType):
        return NotAFunction(transform.function.span, show(function))
    help_ = clash.help if isinstance(clash, Clash) else None
    return TransformMismatch(transform.span, transform.rule.value, str(clash), help_)


def _chosen(options: Differentiation, function: FnType) -> Differentiation:
    """Return the options with the parameters to differentiate in. Raises Clash where there are no
    such parameters."""
    wrt = options.wrt
    if wrt is None:
        floats = tuple(i for i, ty in enumerate(function.params) if _holds_floats(ty))
        if not floats:
            raise Clash(
                "no parameter of the function holds floats", help="declare one as Float or a tensor"
            )
        return replace(options, wrt=floats, single=len(floats) == 1)
    for index in wrt:
        if not 0 <= index < len(function.params):
            raise Clash(f"the function has no parameter {index}", help="they count from 0")
    if not wrt or len(set(wrt)) != len(wrt) or (options.single and len(wrt) > 1):
        raise Clash(
            f"`wrt` names the parameters {wrt}",
            help="name each once, and write `single=False` where they are several",
        )
    return options


def _holds_floats(ty: Type) -> bool:
    """Return whether a value of a type can carry a derivative; a number literal with a fraction
    becomes a float of some width."""
    return is_differentiable(ty) or any(
        isinstance(part, TensorType)
        and isinstance(part.dtype, DTypeHole)
        and part.dtype.weak is DTypeKind.FLOAT
        for part in subtypes(ty)
    )


def _expect_known(function: FnType) -> None:
    """Wait for the types of all parts of the parameters and the result. Raises Stuck."""
    for ty in (*function.params, function.result):
        for part in subtypes(ty):
            if isinstance(part, TypeHole):
                raise Stuck(part)


def _made(
    rule: Rule, options: Differentiation, function: FnType, adts: Mapping[str, AdtDef]
) -> Type:
    """Return the result of the function that a transform makes of one of these own parameters."""
    value = function.result
    wanted = tuple(function.params[i] for i in options.indices)
    cotangents = wanted[0] if options.single else TupleType(wanted)
    match rule:
        case Rule.GRAD:
            return TupleType((cotangents, *_aux(value))) if options.has_aux else cotangents
        case Rule.VALUE_AND_GRAD:
            return TupleType((value, cotangents))
        case Rule.VJP | Rule.LINEARIZE:
            pull, push = FnType((value,), cotangents), FnType(wanted, value)
            return TupleType((value, pull if rule is Rule.VJP else push))
        case (
            Rule.CUSTOM_VJP | Rule.CUSTOM_JVP | Rule.CHECKPOINT | Rule.STOP_GRADIENT | Rule.AUTOCAST
        ):
            raise AssertionError("what is made has the type of the function")
        case Rule.VMAP:
            raise AssertionError("it differentiates nothing")
        case Rule.HVP:
            return cotangents
        case Rule.HESSIAN:
            return _jacobian(cotangents, wanted, options, adts)
        case Rule.JACFWD | Rule.JACREV:
            return _jacobian(value, wanted, options, adts)
        case Rule.JVP:
            is_pair = options.has_aux and isinstance(value, TupleType)
            loss = value.fields[0] if is_pair and isinstance(value, TupleType) else value
            return TupleType((loss, loss, *(_aux(value) if options.has_aux else ())))
        case _:
            assert_never(rule)


def _aux(value: Type) -> tuple[Type, ...]:
    """Return the type of the auxiliary value beside a loss."""
    assert isinstance(value, TupleType)
    return value.fields[1:]


def _jacobian(
    value: Type, wanted: Sequence[Type], options: Differentiation, adts: Mapping[str, AdtDef]
) -> Type:
    """Return the type of a jacobian. Raises Clash where it has none."""
    try:
        return jacobian_type(value, wanted, adts, single=options.single)
    except NoJacobian as error:
        raise Clash(str(error), help=error.help) from None


def _is_pair(solver: Solver, ty: Type) -> bool:
    ty = solver.shallow(ty)
    return isinstance(ty, TypeHole) or (isinstance(ty, TupleType) and len(ty.fields) == 2)
