"""The reference evaluator: what a typed program means, one torch call per operator.

It is small and obviously right rather than fast; the compiled host and the exported form must
compute the same values. It takes trees and A-normal form alike, at any depth: sub-evaluations are
steps on a flat stack (`ir.traverse.run`), and a call in tail position replaces the one that makes
it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, assert_never, final

import torch

from ...config import current
from ...diagnostics.catalogue.run import NoClauseMatched, TooDeep
from ...diagnostics.diagnostic import RunError
from ...ir.dims import Dim
from ...ir.expr import (
    BindPattern,
    Call,
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
)
from ...ir.module import Module
from ...ir.op import Op
from ...ir.traverse import Steps, run
from ...lower_torch.apply import apply_op
from ...lower_torch.constants import is_host_number, tensor_constant
from ...prelude import library, relay_library
from ..border.argument_sizes import check_assumptions
from ..border.autograd import as_typed
from ..border.failure import located, too_deep
from ..dispatch import dispatching
from ..values.representation import NOTHING_KNOWN, Representations, representation
from ..values.values import Cell, follow, size_paths

_PRELUDE: Final = (library.FILE, relay_library.FILE)

CPU: Final = torch.device("cpu")


def evaluate(
    module: Module,
    entry: str,
    args: Sequence[Any],
    device: torch.device = CPU,
    *,
    grad: bool = False,
    dispatched: bool = True,
    representations: Representations = NOTHING_KNOWN,
) -> Any:
    """Return the value of a global function of a typed program at arguments.

    With `grad` torch's autograd records what is computed, as the tests of gradients need it.
    Without `dispatched`, operators are their own bodies, whatever is registered.
    Raises RunError where the program fails.
    """
    apply = dispatching.apply if dispatched else _apply_plainly
    evaluator = _Evaluator(module, device, representations, apply)
    function = module.functions[entry]
    with torch.set_grad_enabled(grad):
        check_assumptions(function, args)
        return as_typed(run, evaluator.call(_Closure(evaluator, function, None), args))


def _apply_plainly(
    call: Call, operands: Sequence[Any], size: Callable[[Dim], int], device: torch.device
) -> Any:
    assert isinstance(call.callee, Op)
    return apply_op(call.callee, call, operands, size, device)


@final
class _Frame:
    """The variables and sizes of one activation; `parent` is that of the function around it."""

    __slots__ = ("parent", "sizes", "values")

    def __init__(self, parent: _Frame | None) -> None:
        self.parent: Final = parent
        self.values: Final[dict[Var, Any]] = {}
        self.sizes: Final[dict[Dim, int]] = {}

    def bind(self, var: Var, value: Any) -> None:
        """Set a variable, and the sizes that its type says its value shows."""
        self.values[var] = value
        if var.ty is None:
            return
        for dim, path in size_paths(var.ty):
            if dim not in self.sizes:
                self.sizes[dim] = follow(value, path)

    def lookup(self, var: Var) -> Any:
        """Return the value of a variable."""
        frame: _Frame | None = self
        while frame is not None:
            if var in frame.values:
                return frame.values[var]
            frame = frame.parent
        raise KeyError(var.name)

    def size(self, dim: Dim) -> int:
        """Return the value of a dim: read off a variable, or computed from its parts."""
        return dim.value(self._known)

    def _known(self, dim: Dim) -> int | None:
        frame: _Frame | None = self
        while frame is not None:
            if dim in frame.sizes:
                return frame.sizes[dim]
            frame = frame.parent
        return None


@final
class _Closure:
    """A function value: callable from Python, called by the evaluator without nesting."""

    __slots__ = ("evaluator", "frame", "function")

    def __init__(self, evaluator: _Evaluator, function: Function, frame: _Frame | None) -> None:
        self.evaluator: Final = evaluator
        self.function: Final = function
        self.frame: Final = frame

    def __call__(self, *args: Any) -> Any:
        with torch.no_grad():
            return run(self.evaluator.call(self, args))


@final
class _Evaluator:
    def __init__(
        self,
        module: Module,
        device: torch.device,
        representations: Representations,
        apply: dispatching.Apply,
    ) -> None:
        self._module: Final = module
        self._device: Final = device
        self._representations: Final = representations
        self._apply: Final = apply
        self._limit: Final = current().max_depth
        self._calls: Final[list[Call]] = []
        """The calls that wait for each other, innermost last."""
        self._constants: Final[dict[Constant, Any]] = {}

    def call(self, callee: Any, args: Sequence[Any]) -> Steps[Any]:
        """Return the result of calling a function value."""
        if not isinstance(callee, _Closure):
            return callee(*args)
        return (yield self._finish(*self._enter(callee, args)))

    def _enter(self, closure: _Closure, args: Sequence[Any]) -> tuple[Expr, _Frame]:
        frame = _Frame(closure.frame)
        for param, arg in zip(closure.function.params, args, strict=True):
            frame.bind(param, arg)
        return closure.function.body, frame

    def _finish(self, expr: Expr, frame: _Frame) -> Steps[Any]:
        """Evaluate what is in tail position: arms and callees replace what leads to them."""
        while True:
            match expr:
                case LetBlock():
                    yield self._bindings(expr, frame)
                    expr = expr.body
                case If(condition, then, otherwise):
                    expr = then if bool((yield self._value(condition, frame))) else otherwise
                case Match():
                    expr = yield self._choose(expr, frame)
                case Call(callee=Op()) | Call(callee=Constructor()):
                    return (yield self._value(expr, frame))
                case Call(callee, args):
                    assert not isinstance(callee, Op)
                    function = yield self._value(callee, frame)
                    values = yield self._values(args, frame)
                    if not isinstance(function, _Closure):
                        return function(*values)
                    expr, frame = self._enter(function, values)
                case _:
                    return (yield self._value(expr, frame))

    def _bindings(self, block: LetBlock, frame: _Frame) -> Steps[None]:
        if block.flavour is Flavour.REC:
            for binding in block.bindings:
                assert isinstance(binding.value, Function), "a rec block binds functions"
                frame.values[binding.var] = _Closure(self, binding.value, frame)
            return
        for binding in block.bindings:
            frame.bind(binding.var, (yield self._value(binding.value, frame)))

    def _value(self, expr: Expr, frame: _Frame) -> Steps[Any]:
        match expr:
            case Call(callee=Op()):
                return (yield self._operator(expr, frame))
            case Call(callee=Constructor(adt, name), args=args):
                fields = yield self._values(args, frame)
                return self._constructor(adt, name)(*fields)
            case Call():
                return (yield self._waiting(expr, frame))
            case LetBlock() | If() | Match():
                return (yield self._finish(expr, frame))
            case Tuple(fields):
                return tuple((yield self._values(fields, frame)))
            case TupleGet(value, index):
                return (yield self._value(value, frame))[index]
            case RefCreate(value):
                return Cell((yield self._value(value, frame)))
            case RefRead(ref):
                return (yield self._value(ref, frame)).value
            case RefWrite(ref, value):
                cell = yield self._value(ref, frame)
                cell.value = yield self._value(value, frame)
                return ()
            case _:
                return self._leaf(expr, frame)

    def _waiting(self, call: Call, frame: _Frame) -> Steps[Any]:
        """Evaluate a call for which another waits."""
        if len(self._calls) >= self._limit:
            raise RunError(self._too_deep(call))
        self._calls.append(call)
        try:
            return (yield self._finish(call, frame))
        finally:
            self._calls.pop()

    def _too_deep(self, call: Call) -> TooDeep:
        """Return the mistake of a call that makes too many wait. Functions of the prelude recurse
        over the lists that a program makes: the innermost call in the program itself is named."""
        waiting = (call, *reversed(self._calls))
        own = next((c for c in waiting if c.span.file.name not in _PRELUDE), call)
        name = own.callee.name if isinstance(own.callee, Var | GlobalVar) else "the function"
        return too_deep(own.span, name, self._limit)

    def _leaf(
        self, expr: Var | GlobalVar | Constant | Constructor | Function | Transform, frame: _Frame
    ) -> Any:
        match expr:
            case Var():
                return frame.lookup(expr)
            case GlobalVar(name):
                return _Closure(self, self._module.functions[name], None)
            case Constant():
                return self._constant(expr)
            case Constructor(adt, name):
                return self._constructor(adt, name)
            case Function():
                return _Closure(self, expr, frame)
            case Transform():
                raise AssertionError("transforms are expanded before anything runs")
            case _:
                assert_never(expr)

    def _constructor(self, adt: str, name: str) -> Callable[..., Any]:
        tag = self._module.adts[adt].tag(name)
        form = representation(self._representations, adt)
        return lambda *fields: form.construct(tag, fields)

    def _values(self, exprs: Sequence[Expr], frame: _Frame) -> Steps[list[Any]]:
        found: list[Any] = []
        for expr in exprs:
            # Variables, the commonest operands, need no step of their own.
            is_var = isinstance(expr, Var)
            found.append(frame.lookup(expr) if is_var else (yield self._value(expr, frame)))
        return found

    def _operator(self, call: Call, frame: _Frame) -> Steps[Any]:
        operands = yield self._values(call.args, frame)
        assert isinstance(call.callee, Op)
        try:
            return self._apply(call, operands, frame.size, self._device)
        except Exception as error:
            found = located(error, call.span, call)
            if found is error:
                raise
            raise found from error

    def _constant(self, constant: Constant) -> Any:
        if is_host_number(constant):
            return constant.value
        if constant not in self._constants:
            self._constants[constant] = tensor_constant(constant, self._device)
        return self._constants[constant]

    def _choose(self, match: Match, frame: _Frame) -> Steps[Expr]:
        """Return the body of the first clause that matches, its variables bound."""
        value = yield self._value(match.value, frame)
        for clause in match.clauses:
            if not self._matches(clause.pattern, value, frame):
                continue
            if clause.guard is None or bool((yield self._value(clause.guard, frame))):
                return clause.body
        raise RunError(NoClauseMatched(match.span))

    def _matches(self, pattern: Pattern, value: Any, frame: _Frame) -> bool:
        pending: list[tuple[Pattern, Any]] = [(pattern, value)]
        while pending:
            pattern, value = pending.pop()
            match pattern:
                case Wildcard():
                    pass
                case BindPattern(var, inner):
                    frame.bind(var, value)
                    pending += () if inner is None else ((inner, value),)
                case TuplePattern(fields):
                    pending += reversed(list(zip(fields, value, strict=True)))
                case ConstructorPattern(adt, name, fields):
                    form = representation(self._representations, adt)
                    if form.tag(value) != self._module.adts[adt].tag(name):
                        return False
                    pending += reversed(list(zip(fields, form.fields(value), strict=True)))
                case LiteralPattern(literal):
                    if not bool(value == literal):
                        return False
        return True
