"""Iteration of a `for` loop: whether there is another round, and the value of its target.

A loop over `range` or a tensor counts with an integer; `enumerate`, `zip` and `reversed` are
arithmetic on that counter. Over a list it keeps what is left of the list, and an iterable of the
caller's is asked for its next element. Where translation does not know what a loop runs over, it
keeps a place in it, and inference decides what that is (`operators/host/loop.py`).
"""

from __future__ import annotations

import ast
import builtins
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Any, TypeAlias, final

from ...dataclass import dataclass
from ...diagnostics.catalogue.captures import CapturedObject
from ...diagnostics.catalogue.language import Unsupported
from ...diagnostics.catalogue.signatures import WrongArguments
from ...diagnostics.source import Span
from ...ir.block_builder import BlockBuilder
from ...ir.constant import placeholder
from ...ir.expr import Call, Constant, Expr, If, Tuple, Var
from ...ir.op import Op
from ...ir.traverse import Steps
from ...ir.types import SizeType, TensorType, is_float
from ...operators.host.loop import backwards, bound, element_at, first_place, is_inside, next_place
from ...operators.host.sizes import as_size, dim_size, same_length
from ...operators.host.stream import has_next, next_element, start_iteration
from ...operators.primitive.arithmetic import (
    add,
    floor_divide,
    minimum,
    multiply,
    negative,
    subtract,
)
from ...operators.primitive.compare import less
from ...operators.primitive.index import index
from ..calls.attributes import static_argument
from ..names.atoms import again, atom
from ..names.hidden import hidden_name
from ..names.static import called_meaning, static_meaning, static_value
from ..program.context import Context, in_turn
from ..program.environment import Alias, Bound
from ..source.definition import meaning


@final
@dataclass(frozen=True, slots=True, eq=False)
class Carried:
    """A value that a loop carries beside its counter: its first value, and the next."""

    hint: str
    first: Expr
    following: Callable[[Expr], Expr]


@final
@dataclass(frozen=True, slots=True)
class Round:
    """One round of a loop: the counter there, and the values it carries beside it."""

    counter: Expr
    places: Mapping[Carried, Expr]


@final
@dataclass(frozen=True, slots=True)
class Iteration:
    """The rounds of a loop: the element in a round, and their number, an atom.

    Where the counter does not decide whether there is another round, `has_next` does; where their
    number is known only at the end, `length` is None. `holder` is an alias of the elements,
    if outside of the program.
    """

    length: Expr | None
    element: Callable[[Round], Expr]
    has_next: Callable[[Round], Expr] | None = None
    holder: Alias | None = None
    carried: tuple[Carried, ...] = ()
    counts: bool = True
    """Whether it looks at the counter."""

    def test(self, at: Round, span: Span) -> Expr:
        """Return whether there is this round."""
        if self.has_next is not None:
            return self.has_next(at)
        assert self.length is not None
        return Call(less, (again(at.counter), again(self.length)), {}, span=span)


@final
@dataclass(frozen=True, slots=True)
class Counts:
    """The counter of a loop: its parameters, their first values, and the code for the next
    ones. `at` is a round in terms of the parameters."""

    iteration: Iteration
    at: Round
    params: tuple[Var, ...]
    first: tuple[Expr, ...]
    steps: tuple[Callable[[], Expr], ...]


def counting(iteration: Iteration, target: Span, span: Span) -> Counts:
    """Return the counter of a loop over an iteration; its target and its head are at spans."""
    counter = Var("i", span=target)
    places = {w: Var(w.hint, span=target) for w in iteration.carried}
    params, first = tuple(places.values()), tuple(w.first for w in places)
    steps = tuple(partial(w.following, p) for w, p in places.items())
    if iteration.counts:
        params, first = (counter, *params), (Constant(0, span=span), *first)
        steps = (lambda: Call(add, (counter, Constant(1, span=span)), {}, span=span), *steps)
    return Counts(iteration, Round(counter, places), params, first, steps)


def read_iteration(cx: Context, node: ast.expr, code: BlockBuilder) -> Steps[Iteration]:
    """Return the rounds over an expression; what they need is computed once, before the loop."""
    if isinstance(node, ast.Call):
        read = _reader(cx, node)
        if read is not None:
            return (yield read(cx, node, code))
    if isinstance(node, ast.Tuple):
        node = ast.copy_location(ast.List(node.elts, ast.Load()), node)
    entry = cx.named(node)
    if isinstance(entry, Bound) and entry.stream is not None:
        return (yield _over_stream(cx, node, entry.stream, code))
    captured = static_value(cx, node) if isinstance(node, ast.Name | ast.Attribute) else None
    if captured is not None and _is_stream(captured.value):
        instead = "pass it as an argument: `data: Iterable[tuple[Tensor[Float, (N, 3)], Int]]`"
        kind = f"Python object of type `{type(captured.value).__name__}`"
        problem = CapturedObject(cx.span(node), ast.unparse(node), kind, instead)
        cx.program.report(problem)
        return Iteration(placeholder(cx.span(node)), lambda _: placeholder(cx.span(node)))
    items = atom((yield cx.expression(node)), "items", code.bind)
    if _is_number(cx, node, items):
        text, ty = ast.unparse(node), items.ty if isinstance(items, Var) else None
        is_cast = isinstance(ty, TensorType) and is_float(ty.dtype)
        instead = f"count with `range(int({text}))`" if is_cast else f"count with `range({text})`"
        cx.program.report(Unsupported(cx.span(node), "a loop over a number", instead))
        return Iteration(placeholder(cx.span(node)), lambda _: placeholder(cx.span(node)))
    if _is_tensor(cx, node, items):
        return _over_axis(items, cx.span(node), code)
    return _over_items(items, cx.span(node), code)


def _is_number(cx: Context, node: ast.expr, items: Expr) -> bool:
    """Return whether an expression is seen to give one number."""
    if isinstance(items, Var) and isinstance(items.ty, TensorType | SizeType):
        return not isinstance(items.ty, TensorType) or not items.ty.shape
    known = static_value(cx, node)
    return known is not None and isinstance(known.value, int | float)


def _is_tensor(cx: Context, node: ast.expr, items: Expr) -> bool:
    """Return whether an expression is seen to give a tensor: an annotated name, an operator's."""
    if isinstance(items, Var) and isinstance(items.ty, TensorType):
        return True
    return isinstance(called_meaning(cx, node), Op)


def _is_stream(value: object) -> bool:
    """Return whether a captured object gives elements one by one, as a data loader does."""
    known = isinstance(value, tuple | str | type) or hasattr(value, "__array__")
    return hasattr(value, "__iter__") and not known and meaning(value) is None


def _over_stream(
    cx: Context, node: ast.expr, description: tuple[Any, ...], code: BlockBuilder
) -> Steps[Iteration]:
    span = cx.span(node)
    iterator = Var("iterator", span=span)
    code.bind(iterator, Call(start_iteration, ((yield cx.expression(node)),), {}, span=span))
    return Iteration(
        None,
        lambda _: Call(next_element, (iterator,), {"element": description}, span=span),
        lambda _: Call(has_next, (iterator,), {}, span=span),
        Alias(span, "the caller has aliases of its elements"),
    )


def _over_axis(items: Expr, span: Span, code: BlockBuilder) -> Iteration:
    length = atom(Call(dim_size, (items,), {"dim": 0}, span=span), "length", code.bind)

    def element(at: Round) -> Expr:
        indices = Tuple((at.counter,), span=span)
        return Call(index, (items, indices), {"spec": (("int", 0),)}, span=span)

    return Iteration(length, element)


def _over_items(items: Expr, span: Span, code: BlockBuilder) -> Iteration:
    """Return the rounds over a tensor or a list, between which inference decides."""
    length = atom(Call(dim_size, (items,), {"dim": 0}, span=span), "length", code.bind)
    position = Carried(
        "place",
        Call(first_place, (items,), {}, span=span),
        lambda place: Call(next_place, (items, place), {}, span=span),
    )
    return Iteration(
        length,
        lambda at: Call(element_at, (items, at.places[position]), {}, span=span),
        lambda at: Call(is_inside, (items, at.places[position], length), {}, span=span),
        carried=(position,),
        counts=False,
    )


def _arguments(cx: Context, node: ast.Call, name: str, low: int, high: int | None) -> bool:
    count = len(node.args)
    if not node.keywords and count >= low and (high is None or count <= high):
        return True
    cx.program.report(
        WrongArguments(cx.span(node), name, "does not take these arguments", f"Python's `{name}`")
    )
    return False


def _nothing(cx: Context, node: ast.Call) -> Iteration:
    """Return a placeholder after a mistake."""
    return Iteration(placeholder(cx.span(node)), lambda at: at.counter)


def _range(cx: Context, node: ast.Call, code: BlockBuilder) -> Steps[Iteration]:
    if not _arguments(cx, node, "range", 1, 3):
        return _nothing(cx, node)
    span = cx.span(node)
    values: list[Expr] = []
    for expr, argument in zip((yield cx.expressions(node.args)), node.args, strict=True):
        is_known = isinstance(expr, Constant) and isinstance(expr.value, int)
        checked = expr if is_known else Call(bound, (expr,), {}, span=cx.span(argument))
        values.append(atom(checked, "bound", code.bind))
    if len(values) == 1:
        return Iteration(values[0], lambda at: again(at.counter))
    start, stop = values[:2]
    if len(values) == 2:
        length = Call(subtract, (stop, again(start)), {}, span=span)
        return Iteration(
            atom(length, "length", code.bind), lambda at: _plus(start, at.counter, span)
        )
    step = values[2]
    # ceil((stop - start) / step), for steps up and down; not positive means no round.
    distance = Call(subtract, (again(start), stop), {}, span=span)
    whole = Call(floor_divide, (distance, again(step)), {}, span=span)
    length = atom(Call(negative, (whole,), {}, span=span), "length", code.bind)
    return Iteration(
        length,
        lambda at: _plus(start, Call(multiply, (at.counter, again(step)), {}, span=span), span),
    )


def _plus(left: Expr, right: Expr, span: Span) -> Expr:
    return Call(add, (again(left), right), {}, span=span)


def _enumerate(cx: Context, node: ast.Call, code: BlockBuilder) -> Steps[Iteration]:
    if [k.arg for k in node.keywords] == ["start"] and len(node.args) == 1:
        args = [*node.args, node.keywords[0].value]
        node = ast.copy_location(ast.Call(node.func, args, []), node)
    if not _arguments(cx, node, "enumerate", 1, 2):
        return _nothing(cx, node)
    span = cx.span(node)
    inner = yield read_iteration(cx, node.args[0], code)
    start: Expr | None = None
    if len(node.args) > 1:
        start = atom((yield cx.expression(node.args[1])), "start", code.bind)

    def element(at: Round) -> Expr:
        number = at.counter if start is None else _plus(start, at.counter, span)
        return Tuple((number, inner.element(at)), span=span)

    return replace(inner, element=element, counts=True)


def _zip(cx: Context, node: ast.Call, code: BlockBuilder) -> Steps[Iteration]:
    strict = False
    if [k.arg for k in node.keywords] == ["strict"]:
        strict = bool(static_argument(cx, node.keywords[0].value, "`strict`", "`True` or `False`"))
        node = ast.copy_location(ast.Call(node.func, node.args, []), node)
    if not _arguments(cx, node, "zip", 1, None):
        return _nothing(cx, node)
    span = cx.span(node)
    parts = yield in_turn(read_iteration(cx, a, code) for a in node.args)

    def element(at: Round) -> Expr:
        return Tuple(tuple(p.element(at) for p in parts), span=span)

    lengths = [p.length for p in parts if p.length is not None]
    if strict and len(lengths) < len(parts):
        instead = "leave `strict` out, or stop when one of them ends"
        what = "`zip(strict=True)` of an iterable"
        cx.program.report(Unsupported(span, what, instead))
        strict = False
    if len(parts) == 1:
        return replace(parts[0], element=element)
    same: Expr | None = None
    if strict:
        sizes = Tuple(tuple(_size(p, span) for p in parts), span=span)
        same = atom(Call(same_length, (sizes,), {}, span=span), "length", code.bind)
    if any(p.has_next is not None for p in parts):
        return replace(_side_by_side(parts, element, span), length=same)
    length = lengths[0] if same is None else same
    for other in lengths[1:] if same is None else ():
        length = Call(minimum, (length, other), {}, span=span)
    return Iteration(atom(length, "length", code.bind), element)


def _size(part: Iteration, span: Span) -> Expr:
    """Return the number of rounds as a size; that of a list is an integer."""
    assert part.length is not None
    length = again(part.length)
    return Call(as_size, (length,), {}, span=span) if part.carried else length


def _side_by_side(
    parts: Sequence[Iteration], element: Callable[[Round], Expr], span: Span
) -> Iteration:
    """Return the rounds over several things of which some do not count."""
    return Iteration(
        None,
        element,
        lambda at: _all_next(parts, at, span),
        next((p.holder for p in parts if p.holder is not None), None),
        tuple(w for p in parts for w in p.carried),
        any(p.counts for p in parts),
    )


def _all_next(parts: Sequence[Iteration], at: Round, span: Span) -> Expr:
    """Ask one after the other, as Python does: what comes after one that has ended is not asked."""
    found = parts[-1].test(at, span)
    for part in reversed(parts[:-1]):
        found = If(part.test(at, span), found, Constant(False, span=span), span=span)
    return found


def _map(cx: Context, node: ast.Call, code: BlockBuilder) -> Steps[Iteration]:
    """Return the rounds over `map(f, xs, ...)`: the function called with the elements."""
    if not _arguments(cx, node, "map", 2, None):
        return _nothing(cx, node)
    span = cx.span(node)
    called = as_function(cx, node.args[0])
    function = atom((yield cx.expression(called)), "function", code.bind)
    zipped = ast.copy_location(ast.Call(node.func, node.args[1:], []), node)
    inner = yield _zip(cx, zipped, code)

    def element(at: Round) -> Expr:
        made = inner.element(at)
        assert isinstance(made, Tuple)
        return Call(again(function), made.fields, span=span)

    return replace(inner, element=element)


def _pairwise(cx: Context, node: ast.Call, code: BlockBuilder) -> Steps[Iteration]:
    """Return the rounds over `itertools.pairwise(xs)`: `zip(xs, xs[1:])`."""
    if not _arguments(cx, node, "pairwise", 1, 1):
        return _nothing(cx, node)
    items = node.args[0]
    if isinstance(items, ast.Call) and _reader(cx, items) is not None:
        items = _every(items)
    if not isinstance(items, ast.Name):
        value = atom((yield cx.expression(items)), "items", code.bind)
        items = hidden_name(cx, items, Bound(atom=value))
    bounds = ast.Slice(ast.Constant(1), None, None)
    rest = ast.Subscript(items, bounds, ast.Load())
    zipped = ast.Call(node.func, [items, rest], [])
    for part in (bounds.lower, bounds, rest, zipped):
        assert part is not None
        ast.copy_location(part, node)
    return (yield _zip(cx, zipped, code))


def _filter(cx: Context, node: ast.Call, code: BlockBuilder) -> Steps[Iteration]:
    """Return the rounds over `filter(f, xs)`: the elements for which the function holds; of None
    those that are true themselves."""
    if not _arguments(cx, node, "filter", 2, 2):
        return _nothing(cx, node)
    function, items = node.args
    known = static_value(cx, function)
    is_none = known is not None and known.value is None
    kept = _every(items, None if is_none else function)
    if is_none:
        kept.generators[0].ifs = [kept.elt]
    found = atom((yield cx.expression(kept)), "items", code.bind)
    return _over_items(found, cx.span(node), code)


def _every(items: ast.expr, function: ast.expr | None = None) -> ast.ListComp:
    """Return `[item for item in items]`, with `if function(item)` where there is a function."""
    taken = {n.id for n in ast.walk(function) if isinstance(n, ast.Name)} if function else set()
    name = next(n for n in (f"item{'_' * i}" for i in count()) if n not in taken)
    item, target = ast.Name(name, ast.Load()), ast.Name(name, ast.Store())
    tests = [ast.Call(function, [item], [])] if function else []
    made = ast.ListComp(item, [ast.comprehension(target, items, list[ast.expr](tests), 0)])
    for part in (item, target, *tests, made):
        ast.copy_location(part, items)
    return made


def as_function(cx: Context, node: ast.expr) -> ast.expr:
    """Return the function that is called with elements; a function of Python's own, such as `len`,
    is called in a lambda."""
    known = static_value(cx, node)
    if known is None or meaning(known.value) is not None:
        return node
    call = ast.Call(node, [ast.Name("item", ast.Load())], [])
    args = ast.arguments([], [ast.arg("item", None)], None, [], [], None, [])
    made = ast.Lambda(args, call)
    for part in ast.walk(made):
        if part is not node and isinstance(part, ast.expr | ast.arg):
            ast.copy_location(part, node)
    return made


def _reversed(cx: Context, node: ast.Call, code: BlockBuilder) -> Steps[Iteration]:
    if not _arguments(cx, node, "reversed", 1, 1):
        return _nothing(cx, node)
    span = cx.span(node)
    argument = node.args[0]
    if not _is_counted(cx, argument):
        items = yield cx.expression(argument)
        items = atom(Call(backwards, (items,), {}, span=span), "items", code.bind)
        return _over_items(items, span, code)
    inner = yield read_iteration(cx, argument, code)
    if inner.length is None or inner.has_next is not None:
        instead = "write `reversed` only around `range`, tensors and lists"
        cx.program.report(Unsupported(span, "`reversed` of an iterable", instead))
        return _nothing(cx, node)
    one = Constant(1, span=span)
    last = atom(Call(subtract, (again(inner.length), one), {}, span=span), "last", code.bind)

    def element(at: Round) -> Expr:
        place = Var("place", span=span)
        back = Call(subtract, (last, at.counter), {}, span=span)
        made = inner.element(Round(place, at.places))
        if made is place:
            return back
        inside = BlockBuilder()
        inside.bind(place, back)
        return inside.close(made)

    return Iteration(inner.length, element)


def _is_counted(cx: Context, node: ast.expr) -> bool:
    """Return whether a loop over an expression counts: it gives a tensor, `range(n)`, ..."""
    if isinstance(node, ast.Call):
        is_operator = isinstance(static_meaning(cx, node.func), Op)
        return is_operator or _reader(cx, node) is not None
    entry = cx.named(node)
    if not isinstance(entry, Bound):
        return False
    is_tensor = isinstance(entry.atom, Var) and isinstance(entry.atom.ty, TensorType)
    return is_tensor or entry.stream is not None


Reader: TypeAlias = Callable[[Context, ast.Call, BlockBuilder], Steps[Iteration]]


def _reader(cx: Context, node: ast.Call) -> Reader | None:
    """Return the reader of a call of a Python function that gives rounds; None for other calls."""
    known = static_value(cx, node.func)
    called = None if known is None else known.value
    return next((read for function, read in _READERS if function is called), None)


_READERS: Sequence[tuple[object, Reader]] = (
    (builtins.range, _range),
    (builtins.enumerate, _enumerate),
    (builtins.filter, _filter),
    (builtins.map, _map),
    (builtins.zip, _zip),
    (builtins.reversed, _reversed),
    (itertools.pairwise, _pairwise),
)
