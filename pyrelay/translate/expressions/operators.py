"""Calls of operators: arguments bound to the signature, hidden operands supplied by the model."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final, final

from ...dataclass import dataclass
from ...diagnostics.catalogue.signatures import BadValue, WrongArguments
from ...diagnostics.catalogue.sites import HiddenOutsideModel
from ...diagnostics.source import Span
from ...ir.constant import placeholder
from ...ir.expr import Binding, Call, Constant, Expr, RefRead, RefWrite, Tuple, TupleGet, Var
from ...ir.op import Hidden, HiddenKind, Init, Missing, Op, Param, Role
from ...ir.traverse import Steps, let
from ...operators.composite.model import frozen
from ...operators.composite.model import param as param_op
from ...operators.primitive.compare import equal
from ...operators.primitive.random import fold_in
from ..blocks.list_append import has_starred
from ..blocks.subscripts import is_plain_set_at, set_at_call
from ..calls.arguments import Callee, Slot, in_order, match_arguments, require
from ..calls.attributes import attribute_value, static_argument
from ..calls.mentions import as_called, operator_text, unit
from ..names.static import static_value
from ..program.context import Context, field_of
from ..program.models import ValueSpec
from ..source.definition import meaning
from ..subset.tables import TOGETHER, VARIADIC

_NAME: Final = Slot("name", required=False, keyword_only=True)
_INIT: Final = Slot("init", required=False, keyword_only=True)


@final
@dataclass(frozen=True, slots=True)
class _Given:
    """The arguments of one call: syntax by parameter name, and the operands a model supplies."""

    args: dict[str, ast.expr]
    hidden: tuple[Hidden, ...]
    hyper: frozenset[str]


def operator_call(cx: Context, node: ast.Call, op: Op, receiver: Expr | None = None) -> Steps[Expr]:
    """Translate a call of an operator; `receiver` is the tensor of a method call."""
    wanted, cx.wanted = cx.wanted, None
    if is_plain_set_at(node, op):
        return (yield set_at_call(cx, node))
    given = _bind(cx, node, op, receiver)
    if given is None:
        return placeholder(cx.span(node))
    attrs = yield _attributes(cx, op, given)
    written: dict[str, Expr] = {} if receiver is None else {op.params[0].name: receiver}
    operands = {p.name for p in op.operands}
    for name, argument in given.args.items():
        if name in operands and name not in given.hyper:
            written[name] = yield _operand(cx, op, argument)
    return _Site(cx, node, op, wanted, given).build(written, attrs)


def _operand(cx: Context, op: Op, node: ast.expr) -> Steps[Expr]:
    """Translate an operand; a list is the tuple of tensors that `cat` and its like take."""
    is_open = isinstance(node, ast.List) and has_starred(node)
    if isinstance(node, ast.List | ast.Tuple) and op is not equal and not is_open:
        fields = yield cx.expressions(node.elts)
        return Tuple(fields, span=cx.span(node))
    return (yield cx.expression(node))


def _bind(cx: Context, node: ast.Call, op: Op, receiver: Expr | None) -> _Given | None:
    # A key is no parameter of torch's function, so it is never given by position.
    keys = {h.name for h in op.hidden if h.holder is HiddenKind.KEY}
    slots = [Slot(p.name, p.default is Missing.REQUIRED, p.name in keys) for p in op.params]
    known = {p.name for p in op.params}
    slots += [
        Slot(p.name, p.default is Missing.REQUIRED, keyword_only=True)
        for p in op.hyper
        if p.name not in known
    ]
    if any(h.holder is HiddenKind.PARAMETER for h in op.hidden):
        slots += [_NAME, _INIT]
    callee = Callee(op.name, tuple(slots), operator_text(op), 0 if receiver is None else 1)
    if receiver is None and _are_tensors_apart(cx, node, op):
        together = ", ".join(map(ast.unparse, node.args))
        way = f"write `relay.{op.name}(({together}))`"
        why = "takes its tensors as one tuple or list"
        cx.program.report(WrongArguments(cx.span(node), op.name, why, callee.text, None, way))
        return None
    found = match_arguments(cx, node, callee, _gathered(node, op, callee.received))
    if found is None:
        return None
    if _is_count(cx, op, found, callee):
        return None
    hyper = frozenset(p.name for p in op.hyper if _is_hyper(cx, p, op, found.get(p.name)))
    hidden = _hidden(cx, node, op, found, hyper)
    if hidden is None:
        return None
    supplied = {h.name for h in op.hidden}
    optional = supplied | ({p.name for p in op.hyper} if not hidden else set())
    needed = tuple(replace(s, required=s.required and s.name not in optional) for s in slots)
    if not require(cx, node, Callee(op.name, needed, callee.text, callee.received), found):
        return None
    return _Given(found, hidden, hyper if hidden else frozenset())


def _are_tensors_apart(cx: Context, node: ast.Call, op: Op) -> bool:
    """Return whether tensors are passed one by one to an operator that takes them together."""
    if op.params[0].name != TOGETHER or len(node.args) < 2:
        return False
    is_one = isinstance(node.args[0], ast.Tuple | ast.List)
    return not is_one and static_value(cx, node.args[1]) is None


def _is_count(cx: Context, op: Op, found: Mapping[str, ast.expr], callee: Callee) -> bool:
    """Report a number where a weight is expected: a hyper-parameter that was not named."""
    asked = [p.name for p in op.hyper if p.default is Missing.REQUIRED]
    for hidden in op.hidden if asked else ():
        given = found.get(hidden.name)
        known = None if given is None else static_value(cx, given)
        if given is not None and known is not None and type(known.value) is int:
            names = ", ".join(f"{n}=..." for n in asked)
            way = f"name the numbers that shape it: `relay.{op.name}(x, {names})`"
            why = f"takes a tensor as `{hidden.name}`, not a number"
            problem = WrongArguments(cx.span(given), op.name, why, callee.text, None, way)
            cx.program.report(problem)
            return True
    return False


def _gathered(node: ast.Call, op: Op, received: int) -> list[ast.expr]:
    """Return the positional arguments; those that torch takes one by one are put into a tuple."""
    name = VARIADIC.get(op)
    if name is None:
        return node.args
    place = [p.name for p in op.params].index(name) - received
    rest = node.args[place:]
    if len(rest) < 2 and not (rest and op.params[place + received].role is Role.OPERAND):
        return node.args
    if len(rest) == 1 and isinstance(rest[0], ast.Tuple | ast.List):
        return node.args
    together = ast.Tuple(elts=rest, ctx=ast.Load())
    ast.copy_location(together, rest[0])
    together.end_lineno, together.end_col_offset = rest[-1].end_lineno, rest[-1].end_col_offset
    return [*node.args[:place], together]


def _is_hyper(cx: Context, param: Param, op: Op, node: ast.expr | None) -> bool:
    """Return whether an argument is a hyper-parameter; `bias=False` is, `bias=b` is an operand."""
    if node is None or all(o.name != param.name for o in op.operands):
        return node is not None
    known = static_value(cx, node)
    return known is not None and (known.value is None or isinstance(known.value, bool))


def _hidden(
    cx: Context, node: ast.Call, op: Op, found: Mapping[str, ast.expr], hyper: frozenset[str]
) -> tuple[Hidden, ...] | None:
    """Return the operands that the model supplies; None when there is no model, which is reported.

    With one of them written out a call is plain, unless it has hyper-parameters as well.
    """
    missing = tuple(h for h in op.hidden if h.name not in found or h.name in hyper)
    asked = any(p.name in hyper for p in op.hyper if p.default is Missing.REQUIRED)
    if not missing or (len(missing) < len(op.hidden) and not asked):
        return ()
    if cx.sites is not None:
        return missing
    names = {p.name: p for p in op.operands}
    required = [h for h in missing if names[h.name].default is Missing.REQUIRED]
    if not required and not asked:
        return ()
    first = (required or missing)[0]
    cx.program.report(HiddenOutsideModel(cx.span(node), op.name, first.name, cx.definition.name))
    return None


def _attributes(cx: Context, op: Op, given: _Given) -> Steps[dict[str, Any]]:
    """Return all attributes in the order of the signature, then the hyper-parameters."""
    attrs: dict[str, Any] = {}
    params = [*op.attributes, *(op.hyper if given.hidden else ())]
    for param in params:
        argument = given.args.get(param.name)
        is_operand = param in op.hyper and param.name not in given.hyper
        if argument is not None and not is_operand:
            attrs[param.name] = yield attribute_value(cx, argument, param, op.name)
            continue
        default = cx.training if param.default is Missing.MODE else param.default
        attrs[param.name] = default if param.convert is None else param.convert(default)
    for name in given.hyper:
        # An explicit `bias=None` means what it means in torch: there is none.
        attrs[name] = False if attrs[name] is None else attrs[name]
    return attrs


@final
@dataclass(frozen=True, slots=True)
class _Site:
    """One call under construction, with the hidden values its model holds for it."""

    cx: Context
    node: ast.Call
    op: Op
    wanted: str | None
    given: _Given

    @property
    def span(self) -> Span:
        return self.cx.span(self.node)

    def build(self, written: Mapping[str, Expr], attrs: dict[str, Any]) -> Expr:
        """Return the call, reading and writing back the state it uses."""
        hidden, before, after = self._supplied(attrs)
        order = [p.name for p in self.op.operands]

        def call(args: Mapping[str, Expr]) -> Expr:
            operands = {**args, **hidden}
            fields = tuple(operands.get(n, unit(self.span)) for n in order)
            return Call(as_called(self.op), fields, attrs, span=self.span)

        buffers = [h for h in self.op.hidden if h.holder is HiddenKind.BUFFER]
        result = let(before, in_order(written, order, call))
        return self._write_back(result, after, attrs) if buffers else result

    def _supplied(
        self, attrs: Mapping[str, Any]
    ) -> tuple[dict[str, Expr], list[Binding], list[Expr]]:
        """Return the hidden operands, the bindings before the call, and the cells of buffers."""
        found: dict[str, Expr] = {}
        before: list[Binding] = []
        cells: list[Expr] = []
        if not self.given.hidden:
            return found, before, cells
        site = self._name()
        for hidden in self.given.hidden:
            if hidden.only_if is not None and not attrs[hidden.only_if]:
                continue
            place = self._add(site, hidden)
            if hidden.holder is HiddenKind.PARAMETER:
                found[hidden.name] = place()
            elif hidden.holder is HiddenKind.BUFFER:
                found[hidden.name] = RefRead(place(), span=self.span)
                cells.append(place())
            elif attrs.get("training", True):
                found[hidden.name] = self._key(place, before)
        return found, before, cells

    def _name(self) -> str:
        assert self.cx.sites is not None
        wanted = self.wanted
        if "name" in self.given.args:
            wanted = static_argument(
                self.cx, self.given.args["name"], "the name of a parameter", '`name="..."`'
            )
        return self.cx.sites.name((self.span, self.op.name), wanted, self.op.name, self.cx.layers)

    def _add(self, site: str, hidden: Hidden) -> Callable[[], Expr]:
        """Add a hidden value to the model; return what makes a reference to its field."""
        cx = self.cx
        assert cx.sites is not None
        assert cx.own is not None
        init = hidden.init
        weights = [h for h in self.op.hidden if h.holder is HiddenKind.PARAMETER]
        if "init" in self.given.args and weights and hidden is weights[0]:
            init = init_value(cx, self.given.args["init"], hidden.init)
        name = site if self.op is param_op else f"{site}.{hidden.name}"
        is_frozen = hidden.holder is HiddenKind.PARAMETER and name in cx.own.instance.frozen
        place = cx.sites.add(ValueSpec(name, hidden.holder, init, self.span, is_frozen))
        record = cx.own.params if hidden.holder is HiddenKind.PARAMETER else cx.own.state
        if is_frozen:
            return lambda: Call(frozen, (field_of(record, place, self.span),), {}, span=self.span)
        return lambda: field_of(record, place, self.span)

    def _key(self, cell: Callable[[], Expr], before: list[Binding]) -> Expr:
        """Return a key for this step, leaving a new one in the cell."""
        key = Var("key", span=self.span)
        before.append(Binding(key, RefRead(cell(), span=self.span)))
        following = RefWrite(cell(), self._folded(key, 1), span=self.span)
        before.append(Binding(Var("_", span=self.span), following))
        return self._folded(key, 0)

    def _folded(self, key: Expr, step: int) -> Expr:
        number = Constant(step, span=self.span)
        return Call(fold_in, (key, number), {}, span=self.span)

    def _write_back(self, call: Expr, cells: list[Expr], attrs: Mapping[str, Any]) -> Expr:
        """Return the value of an operator that also gives new buffers, which go to their cells."""
        if not attrs.get("training"):
            return TupleGet(call, 0, span=self.span)
        if not cells:
            return call
        result = Var("result", span=self.span)
        bindings = [Binding(result, call)]
        for place, cell in enumerate(cells):
            new = TupleGet(result, place + 1, span=self.span)
            written = RefWrite(cell, new, span=self.span)
            bindings.append(Binding(Var("_", span=self.span), written))
        return let(bindings, TupleGet(result, 0, span=self.span))


def init_value(cx: Context, node: ast.expr, otherwise: Init) -> Init:
    """Return how a parameter starts, as `init=` says: one of the known ways, or its name."""
    known = static_value(cx, node)
    found = None if known is None else (meaning(known.value) or known.value)
    by_name = {kind.name.lower(): kind for kind in Init}
    if isinstance(found, Init):
        return found
    if isinstance(found, str) and found in by_name:
        return by_name[found]
    names = ", ".join(f'"{name}"' for name in by_name)
    cx.program.report(BadValue(cx.span(node), "`init`", f"it is one of {names}"))
    return otherwise
