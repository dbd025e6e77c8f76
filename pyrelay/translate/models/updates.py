"""`relay.update_model_params` in compiled code: by plain descent, or by an optimiser.

The reference of a model holds `(params, memory)`, so that an update is one write: whole, or not
made. `memory` is the tuple `(lr, counts, moments)` where an optimiser updates the model, else unit.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Final, assert_never

from ...diagnostics.catalogue.signatures import WrongArguments
from ...diagnostics.source import Span
from ...ir.block_builder import BlockBuilder
from ...ir.constant import placeholder
from ...ir.dims import Dim
from ...ir.expr import Binding, Call, Constant, Expr, RefRead, RefWrite, Tuple, Var
from ...ir.traverse import Steps, let, run
from ...ir.types import INT
from ...operators.composite.optim import adam_step, momentum_step, sgd_step
from ...operators.host.loop import gradient_for
from ...operators.primitive.arithmetic import add
from ...operators.primitive.create import zeros, zeros_like
from ...operators.primitive.index import index
from ...operators.primitive.join import stack
from ..calls.arguments import Callee, Slot, bind_arguments
from ..calls.attributes import optimizer_named
from ..calls.functions import model_field
from ..calls.passed_models import known_of, model_named, places_of
from ..names.atoms import again, atom, into
from ..names.hidden import hidden_name
from ..names.static import called_meaning, static_value
from ..program.context import Context, field_of
from ..program.environment import Bound, Static
from ..program.models import COUNT, LR, ModelInstance, ModelSpec, SubModelSpec, values_of
from ..source.optimizers import AdamRule, Maker, OptimizerRule, OptimizerUse, SGDRule

_UPDATE: Final = Callee(
    "update_model_params",
    (
        Slot("model", required=True),
        Slot("grads", required=True),
        Slot("lr", required=False),
        Slot("optimizer", required=False, keyword_only=True),
    ),
    "update_model_params(model, grads, lr, *, optimizer=None)",
)


def map_params(
    spec: ModelSpec,
    records: tuple[Expr, ...],
    leaf: Callable[..., Expr],
    span: Span,
    frozen: Callable[..., Expr] | None = None,
) -> Steps[Expr]:
    """Return the record of `leaf(a, b, ...)` over records shaped like the parameters of a model; of
    `frozen(a, b, ...)` at the parameters that require no gradient."""
    fields: list[Expr] = []
    for place, part in enumerate(spec.params):
        inside = tuple(field_of(r, place, span) for r in records)
        if isinstance(part, SubModelSpec):
            fields.append((yield map_params(part.model, inside, leaf, span, frozen)))
        elif part.is_frozen and frozen is not None:
            fields.append(frozen(*inside))
        else:
            fields.append(leaf(*inside))
    return Tuple(tuple(fields), span=span)


def sgd_tree(spec: ModelSpec, params: Expr, grads: Expr, rate: Expr, span: Span) -> Expr:
    """Return the parameters after a step of plain descent, which leaves those that are frozen."""

    def kept(param: Expr, _: Expr) -> Expr:
        return param

    def leaf(param: Expr, grad: Expr) -> Expr:
        return Call(sgd_step, (param, grad, again(step)), {}, span=span)

    # Each is computed once, in the order of the arguments.
    bindings: list[Binding] = []
    tree, given, step = (
        atom(e, n, into(bindings)) for e, n in ((params, "params"), (grads, "grads"), (rate, "lr"))
    )
    return let(bindings, run(map_params(spec, (tree, given), leaf, span, kept)))


def update_model_params(cx: Context, node: ast.Call) -> Steps[Expr]:
    """Translate one update of a model: a write to its cell."""
    span = cx.span(node)
    bound = bind_arguments(cx, node, _UPDATE)
    if bound is None:
        return placeholder(span)
    known = known_of(cx, bound["model"])
    if known is not None and known.items is not None and known.items.model is not None:
        return (yield _update_each(cx, node, bound))
    model = model_named(cx, bound["model"])
    if model is None or not isinstance(bound["model"], ast.Name):
        return placeholder(span)
    optimizer, is_known = _optimizer(cx, bound)
    if optimizer is None and is_known and "lr" not in bound:
        why = "needs `lr` or `optimizer`"
        return cx.refuse(WrongArguments(span, _UPDATE.name, why, _UPDATE.text))
    if not is_known:
        return placeholder(span)
    name = bound["model"].id
    spec = cx.program.spec(model)
    bindings: list[Binding] = []
    read = RefRead(model_field(cx, name, 0, span), span=span)
    content = atom(read, "content", into(bindings))
    given = atom((yield cx.expression(bound["grads"])), "grads", into(bindings))
    moved = field_of(again(content), 0, span)
    grads = atom(Call(gradient_for, (moved, given), {}, span=span), "grads", into(bindings))
    rate = (yield cx.expression(bound["lr"])) if "lr" in bound else None
    if optimizer is None:
        assert rate is not None
        params = sgd_tree(spec, field_of(content, 0, span), grads, rate, span)
        new: Expr = Tuple((params, field_of(again(content), 1, span)), span=span)
    else:
        named, place = cx.span(bound["optimizer"]), cx.span(bound["model"])
        cx.program.updates.update(places_of(cx, bound["model"]), optimizer, named, place)
        new = _OptimizerStep(optimizer.rule, spec, span, bindings).taken(content, grads, rate)
    return let(bindings, RefWrite(model_field(cx, name, 0, span), new, span=span))


def _update_each(cx: Context, node: ast.Call, bound: Mapping[str, ast.expr]) -> Steps[Expr]:
    """Translate an update of a list of models: of each by its gradient."""
    code, keywords = BlockBuilder(), list[ast.keyword]()
    if "lr" in bound:
        rate = atom((yield cx.expression(bound["lr"])), "lr", code.bind)
        keywords.append(ast.keyword("lr", hidden_name(cx, bound["lr"], Bound(atom=rate))))
    if "optimizer" in bound:
        keywords.append(ast.keyword("optimizer", bound["optimizer"]))
    names = [hidden_name(cx, bound[n], Bound()).id for n in ("model", "grads")]
    targets = [ast.Name(n, ast.Store()) for n in names]
    update = ast.Call(node.func, [ast.Name(n, ast.Load()) for n in names], keywords)
    pairs = ast.Call(
        hidden_name(cx, node, Bound(static=Static(zip))), [bound["model"], bound["grads"]], []
    )
    loop = ast.comprehension(ast.Tuple(list[ast.expr](targets), ast.Store()), pairs, [], 0)
    each = ast.ListComp(update, [loop])
    for part in ast.walk(each):
        if isinstance(part, ast.expr) and not hasattr(part, "lineno"):
            ast.copy_location(part, node)
    code.bind(Var("_", span=cx.span(node)), (yield cx.expression(each)))
    return code.close(Tuple((), span=cx.span(node)))


def _optimizer(cx: Context, bound: dict[str, ast.expr]) -> tuple[OptimizerUse | None, bool]:
    """Return the optimiser of an update, None for plain descent; and whether it is known."""
    node = bound.get("optimizer")
    known = None if node is None else static_value(cx, node)
    if node is None or (known is not None and known.value is None):
        return None, True
    found = optimizer_named(cx, node)
    return found, found is not None


class _OptimizerStep:
    """The code of one step of an optimiser on all parameters of a model."""

    def __init__(
        self, rule: OptimizerRule, spec: ModelSpec, span: Span, bindings: list[Binding]
    ) -> None:
        self._rule: Final = rule
        self._spec: Final = spec
        self._span: Final = span
        self._bindings: Final = bindings
        self._bind: Final = into(bindings)

    def taken(self, content: Expr, grads: Expr, rate: Expr | None) -> Expr:
        """Return the new parameters and memory of a model, given both as they are."""
        span = self._span
        given = None if rate is None else atom(rate, "lr", self._bind)
        params = atom(field_of(content, 0, span), "params", self._bind)
        memory = atom(field_of(again(content), 1, span), "memory", self._bind)
        kept = atom(field_of(memory, 0, span), "lr", self._bind)
        counts = atom(field_of(memory, 1, span), "counts", self._bind)
        moments = atom(field_of(memory, 2, span), "moments", self._bind)
        count = self._rule.moments
        trees = [atom(field_of(moments, i, span), "moment", self._bind) for i in range(count)]
        results = self._stepped((params, grads, *trees), counts, kept if given is None else given)
        params, *trees = [self._field(results, i) for i in range(1 + count)]
        taken = Call(add, (again(counts), self._moves()), {}, span=span)
        memory = Tuple((kept, taken, Tuple(tuple(trees), span=span)), span=span)
        return Tuple((params, memory), span=span)

    def _moves(self) -> Expr:
        """Return how many steps each parameter takes: one, none if it is frozen."""
        moves = [0.0 if value.is_frozen else 1.0 for value in values_of(self._spec)]
        numbers = tuple(Constant(n, LR, span=self._span) for n in moves)
        if 0.0 not in moves:
            return numbers[0] if numbers else Constant(1.0, LR, span=self._span)
        return Call(stack, (Tuple(numbers, span=self._span),), {}, span=self._span)

    def _stepped(
        self, records: tuple[Expr, ...], counts: Expr, rate: Expr
    ) -> list[tuple[Expr, ...]]:
        """Return the results of a step for each parameter: the parameter and its moments."""
        found: list[tuple[Expr, ...]] = []
        width, span = 1 + self._rule.moments, self._span
        specs = iter(values_of(self._spec))

        def leaf(param: Expr, grad: Expr, *moments: Expr) -> Expr:
            by_rows = next(specs).is_table
            taken = (counts, len(found))
            call = self._call(param, grad, moments, taken, again(rate), by_rows=by_rows)
            stepped = atom(call, "stepped", self._bind)
            fields = [atom(field_of(stepped, i, span), "new", self._bind) for i in range(width)]
            found.append(tuple(fields))
            return fields[0]

        def kept(param: Expr, _: Expr, *moments: Expr) -> Expr:
            next(specs)
            found.append(tuple(atom(e, "kept", self._bind) for e in (param, *moments)))
            return found[-1][0]

        run(map_params(self._spec, records, leaf, self._span, kept))
        return found

    def _next(self, counts: Expr, place: int) -> Expr:
        """Return the number of the step that a parameter takes."""
        span = self._span
        at = Tuple((Constant(place, INT, span=span),), span=span)
        taken = Call(index, (again(counts), at), {"spec": (("int", 0),)}, span=span)
        one = Constant(1.0, LR, span=span)
        return Call(add, (atom(taken, "taken", self._bind), one), {}, span=span)

    def _call(
        self,
        param: Expr,
        grad: Expr,
        moments: tuple[Expr, ...],
        taken: tuple[Expr, int],
        rate: Expr,
        *,
        by_rows: bool,
    ) -> Expr:
        lazily = {"by_rows": True} if by_rows else {}
        match self._rule:
            case SGDRule(momentum, weight_decay, nesterov):
                velocity = moments or (Tuple((), span=self._span),)
                attrs = {"momentum": momentum, "weight_decay": weight_decay, "nesterov": nesterov}
                attrs |= lazily
                args = (param, grad, rate, *velocity)
                return Call(momentum_step, args, attrs, span=self._span)
            case AdamRule((beta1, beta2), eps, weight_decay, decoupled):
                attrs = {"beta1": beta1, "beta2": beta2, "eps": eps}
                attrs |= {"weight_decay": weight_decay, "decoupled": decoupled} | lazily
                step = atom(self._next(*taken), "step", self._bind)
                args = (param, grad, *moments, step, rate)
                return Call(adam_step, args, attrs, span=self._span)
            case other:
                assert_never(other)

    def _field(self, results: list[tuple[Expr, ...]], index: int) -> Expr:
        """Return the record of one field of each result."""
        rest = iter(results)
        return run(map_params(self._spec, (), lambda: next(rest)[index], self._span))


def fresh_memory(
    cx: Context, spec: ModelSpec, params: Expr, optimizer: OptimizerUse | None, span: Span
) -> Expr:
    """Return the memory of a model before the first step of its optimiser, if it has one."""
    if optimizer is None:
        return Tuple((), span=span)
    cx.program.started[optimizer] = None

    def still(param: Expr) -> Expr:
        return Call(zeros_like, (param,), {}, span=span)

    count = optimizer.rule.moments
    moments = tuple(run(map_params(spec, (params,), still, span)) for _ in range(count))
    size = (Dim.of(len(values_of(spec))),)
    counts = Call(zeros, (), {"size": size, "dtype": COUNT}, span=span)
    start = (Constant(optimizer.lr, LR, span=span), counts)
    return Tuple((*start, Tuple(moments, span=span)), span=span)


def renew(cx: Context, optimizer: OptimizerUse, code: BlockBuilder, span: Span) -> None:
    """Let an optimiser that is made here forget all models: each that it updates and that is older
    starts anew."""
    seen: dict[Expr, None] = {}
    for name in sorted(cx.env.names()):
        entry = cx.env.find(name)
        if not isinstance(entry, Bound) or entry.model is None or entry.atom is None:
            continue
        if entry.atom not in seen:
            seen[entry.atom] = None
            write = _renewed(cx, entry.atom, entry.model, optimizer, span)
            code.bind(Var("_", span=span), cx.program.later(entry.places, span, write))


def _renewed(
    cx: Context, atom: Expr, model: ModelInstance, optimizer: OptimizerUse, span: Span
) -> Callable[[OptimizerUse | None], Expr]:
    """Return the code that writes fresh memory to a model, if it is this optimiser that updates
    it."""

    def write(found: OptimizerUse | None) -> Expr:
        if found != optimizer:
            return Tuple((), span=span)
        params = Var("params", span=span)
        read = field_of(RefRead(field_of(again(atom), 0, span), span=span), 0, span)
        memory = fresh_memory(cx, cx.program.spec(model), params, optimizer, span)
        content = Tuple((params, memory), span=span)
        write = RefWrite(field_of(again(atom), 0, span), content, span=span)
        return let([Binding(params, read)], write)

    return write


def makes_optimizer(cx: Context, node: ast.expr) -> bool:
    """Return whether an expression is a call of a function of `relay.optim`."""
    return isinstance(called_meaning(cx, node), Maker)
