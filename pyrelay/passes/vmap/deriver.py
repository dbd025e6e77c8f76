"""The functions that `vmap` makes: one call for all elements of a batch.

A function is written once for each set of its parameters that are batched; what it returns batched
follows from its code. Functions call each other, and may be recursive, so this is found by a least
fixed point: code is written on the assumption that nothing is batched which is not known to be,
until no assumption fails.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

from ...analysis.call_graph import reachable
from ...analysis.dim_availability import shown, sizes_in
from ...diagnostics.catalogue.batching import BatchedResult
from ...diagnostics.diagnostic import Problem
from ...ir.derived_types.batch_dims import axes_of, with_batch
from ...ir.dims import Dim, DimVar
from ...ir.expr import Batching, Call, Expr, Function, Rule, Var, type_of
from ...ir.names import Names
from ...ir.traverse import post_order, run
from ...ir.types import (
    FnType,
    RefType,
    SizeType,
    TensorType,
    TupleType,
    Type,
    as_arguments,
)
from ...operators.builder import Builder, Value
from ...operators.host.failing import check
from ...operators.host.shadow import shadow
from ...operators.host.sizes import as_size
from ...operators.primitive.compare import greater_equal
from ...operators.primitive.view import permute
from ..deriving.cotangents.cells import without_sizes
from ..deriving.deriver import Wanted, own_params, plain_name
from ..deriving.ruled import rule_of, without_rules
from .body import Body
from .frame import Frame
from .masks import Mask, is_any, joined
from .mixtures import Mixtures
from .pairs import Mapped, Pairs

if TYPE_CHECKING:
    from ...diagnostics.source import Span
    from ...ir.transforms import Axes
    from ..deriving.workspace import Workspace


@final
@dataclass(frozen=True, slots=True)
class _Key:
    """A function with the parameters of it that are batched."""

    function: str
    masks: tuple[Mask, ...]


@final
class Vectorizer:
    """Defines the functions that map functions over a batch."""

    def __init__(self, workspace: Workspace) -> None:
        self.problems: list[Problem] = []
        store = self._store = workspace.store
        self._unruled: Final = workspace.unruled
        self._plain: Final[dict[str, Function]] = {}
        """The ruled functions without their rules."""
        self._batches: Final = Mixtures(store)
        self._forms: Final = self._batches.forms
        self._pairs: Final = Pairs(self, self._batches, store)
        self._known: Final[dict[Wanted, str]] = {}
        self._mapped: Final[dict[str, Mapped]] = {}
        """The functions that `vmap` has made."""
        self._by_pairs: Final[set[str]] = set()
        """Those of them that are mapped once more over pairs of elements."""
        self._places: Final[dict[Wanted, Span]] = {}
        self._names: Final[dict[_Key, str]] = {}
        self._joins: Final[dict[tuple[_Key, Expr], Mask]] = {}
        self._results: Final[dict[_Key, Mask]] = {}
        self._cells: Final[dict[Type, Mask]] = {}
        self._shadows: Final[dict[str, set[Type]]] = {}
        """The types of the shadows that functions find, in what they call too."""
        self._done: Final[set[_Key]] = set()
        self._pending: dict[_Key, None] = {}
        self._current: _Key | None = None
        self._has_changed = False
        self._found: dict[Problem, None] = {}

    def obstacles(self, wanted: Wanted, place: Span) -> Iterator[Problem]:
        """Return what can be seen to stand in the way before the function is made first-order."""
        self._places[wanted] = place
        yield from ()

    def name(self, wanted: Wanted) -> str:
        """Return the name of the function that a transform stands for, defined once."""
        if wanted not in self._known:
            name = self._store.function_name(f"{wanted.function}_vmap")
            self._known[wanted] = name
            self._store.functions[name] = self._wrapper(wanted, name)
        return self._known[wanted]

    # What the code of one function asks.

    def callee(self, name: str, masks: tuple[Mask, ...]) -> tuple[str, Mask]:
        """Return the function that computes a function for a batch, and what it returns batched, as
        far as is known."""
        key = _Key(name, masks)
        if key not in self._names:
            self._names[key] = self._store.function_name(f"{name}_batch")
            result = _result(self._store.functions[name])
            self._results[key] = self._forms.none(result)
        if key not in self._done:
            self._pending[key] = None
        return self._names[key], self._results[key]

    def join(self, place: Expr, mask: Mask) -> Mask:
        """Return what is batched of the value of branches, as far as is known, which grows by
        `mask`."""
        assert self._current is not None
        key = (self._current, place)
        known = self._joins.get(key, mask)
        found = joined(known, mask)
        if key not in self._joins or found != known:
            self._has_changed = self._has_changed or is_any(found)
            self._joins[key] = found
        return found

    def cell(self, ty: RefType, mask: Mask) -> Mask:
        """Return what is batched in cells of a type, sizes aside, which grows by `mask`."""
        place = without_sizes(ty)
        known = self._cells.get(place, mask)
        found = joined(known, mask)
        if place not in self._cells or found != known:
            self._has_changed = self._has_changed or is_any(found)
            self._cells[place] = found
        return found

    def has_batched_shadows(self, name: str) -> bool:
        """Return whether a function, or one that it calls, finds shadows of cells that hold a
        cotangent for each element, though nothing that it takes does."""
        if not any(map(is_any, self._cells.values())):
            return False
        if name not in self._shadows:
            functions = self._store.functions
            self._shadows[name] = {
                without_sizes(type_of(node))
                for reached in reachable(functions, (name,))
                for node in post_order(functions[reached].body)
                if isinstance(node, Call) and node.callee is shadow
            }
        return any(is_any(self._cells.get(ty, False)) for ty in self._shadows[name])

    def report(self, problem: Problem) -> None:
        """Take note of what cannot be batched."""
        self._found[problem] = None

    # Functions.

    def _define(self, key: _Key) -> Mask:
        """Write a function for a batch and all that it calls; return what it returns batched."""
        written = self._settled(key)
        while self._found and (mapped := self._mapped_in(written)):
            self._by_pairs.update(mapped)
            written = self._settled(key)
        self._done.update(written)
        for each, function in written.items():
            self._store.functions[self._names[each]] = function
            rule = rule_of(self._store.functions[each.function])
            if rule is not None and rule.rule is not Rule.CHECKPOINT:
                self._unruled[self._names[each]] = rule
        self.problems += self._found
        return self._results[key]

    def _settled(self, key: _Key) -> dict[_Key, Function]:
        """Return a function for a batch and all that it calls, once no assumption fails."""
        written: dict[_Key, Function] = {}
        self._has_changed = True
        while self._has_changed:
            self._has_changed, self._found, written = False, {}, {}
            self._pending = {key: None}
            while open_ := [k for k in self._pending if k not in written]:
                for each in open_:
                    written[each] = self._written(each)
        return written

    def _mapped_in(self, written: Iterable[_Key]) -> set[str]:
        """Return the mapped functions that are written as the code that they are."""
        return {k.function for k in written if k.function in self._mapped} - self._by_pairs

    def _function(self, name: str) -> Function:
        """Return a function of the program, which follows its body if it is a ruled one."""
        function = self._store.functions[name]
        if rule_of(function) is None:
            return function
        if name not in self._plain:
            self._plain[name] = without_rules(function, self._store.functions)
        return self._plain[name]

    def _written(self, key: _Key) -> Function:
        function, name = self._function(key.function), self._names[key]
        self._current = key
        span = function.span.derived(f"`{plain_name(key.function)}` of a batch")
        names = Names([*sizes_in(function), *(p.name for p in function.type_params)])
        size = names.fresh("batch")
        frame = Frame(Builder(span, names), Dim.of(size), self._batches)
        lanes = Var(names.fresh("size"), SizeType(frame.count), span=span)
        params = [lanes]
        for param, mask in zip(function.params, key.masks, strict=True):
            ty = self._forms.type(type_of(param), mask, frame.count)
            new = Var(names.fresh(param.name), ty, span=param.span)
            params.append(new)
            frame.bind(param, (frame.builder.value(new), mask))
        code = Body(self, self._batches)
        if key.function in self._by_pairs:
            mapped = self._mapped[key.function]
            value, found = run(self._pairs.value(code, mapped, frame))
            mask = self.join(function.body, found)
            value = self._batches.widened(value, type_of(function.body), found, mask, frame.count)
            body = frame.builder.block(value)
        else:
            body = run(code.tail(function.body, frame, function.body))
            mask = self.join(function.body, self._forms.none(type_of(function.body)))
        if mask != self._results[key]:
            self._results[key], self._has_changed = mask, True
        result = self._forms.type(_result(function), mask, frame.count)
        type_params = (*function.type_params, DimVar(size))
        types = tuple(type_of(p) for p in params)
        return Function(
            tuple(params),
            body,
            result,
            type_params,
            name,
            function.assumptions,
            ty=FnType(types, result, type_params),
            span=span,
        )

    # The function that takes arguments with the batch at any axis.

    def _wrapper(self, wanted: Wanted, name: str) -> Function:
        function, options = self._store.functions[wanted.function], wanted.options
        assert isinstance(options, Batching)
        span = function.span.derived(f"vmap of `{plain_name(wanted.function)}`")
        names = Names(p.name for p in function.type_params)
        size = names.fresh("batch")
        builder, count = Builder(span, names), Dim.of(size)
        own = own_params(function, wanted)
        axes = (*(None,) * wanted.captures, *options.axes(len(own)))
        params: list[Var] = []
        args: list[Value] = []
        masks: list[Mask] = []
        parts: list[tuple[Value, Type, Mask]] = []
        for param, each in zip(function.params, axes, strict=True):
            ty = type_of(param)
            new = Var(names.fresh(param.name), with_batch(ty, each, count, {}), span=param.span)
            params.append(new)
            masks.append(self._mask(ty, each))
            parts.append((builder.value(new), ty, masks[-1]))
            args.append(_to_front(builder.value(new), ty, each))
        key = _Key(wanted.function, tuple(masks))
        batched, _ = self.callee(wanted.function, key.masks)
        mask = self._define(key) if key not in self._done else self._results[key]
        self._mapped[name] = Mapped(name, key.function, key.masks, batched, options.out_axes)
        lanes = self._size(builder, count, parts)
        type_args = (*as_arguments(function.type_params), count)
        result = _result(function)
        ty = self._forms.type(result, mask, count)
        value = builder.apply(batched, (lanes, *args), ty, type_args)
        if options.out_axes is None and is_any(mask):
            self.problems.append(
                BatchedResult(self._places.get(wanted, span), plain_name(wanted.function))
            )
        value = self._from_front(value, result, mask, options.out_axes, count)
        type_params = (*function.type_params, DimVar(size))
        types = tuple(type_of(p) for p in params)
        return Function(
            tuple(params),
            builder.block(value),
            value.ty,
            type_params,
            name,
            function.assumptions,
            ty=FnType(types, value.ty, type_params),
            span=span,
        )

    def _mask(self, ty: Type, axes: Axes) -> Mask:
        """Return which tensors of a parameter are batched."""
        if isinstance(ty, TupleType):
            return tuple(map(self._mask, ty.fields, axes_of(ty, axes)))
        if isinstance(ty, RefType):
            return self._forms.none(ty)  # from outside, the same for all elements
        is_size = isinstance(ty, SizeType)
        return axes is not None and (is_size or is_any(self._forms.full(ty)))

    def _size(
        self, builder: Builder, count: Dim, parts: Sequence[tuple[Value, Type, Mask]]
    ) -> Value:
        """Return the size of the batch."""
        if any(count in shown(value.ty) for value, _, _ in parts):
            return builder.size(count)
        found = self._batches.size_of_first(parts, builder, count)
        builder.call(check, (greater_equal(found, 0),), {"message": _UNSIZED})
        return builder.bind(Call(as_size, (found.atom,), ty=SizeType(count), span=builder.span))

    def _from_front(self, value: Value, ty: Type, mask: Mask, axes: Axes, count: Dim) -> Value:
        """Return a result with the dim of the batch where axes have it."""
        if isinstance(ty, TupleType):
            assert isinstance(mask, tuple)
            each = enumerate(zip(ty.fields, mask, axes_of(ty, axes), strict=True))
            fields = [self._from_front(value[i], t, m, a, count) for i, (t, m, a) in each]
            return value.builder.tuple(fields)
        if axes is None:
            return value
        one = self._batches.uniform_of(value, ty, mask, count)
        whole = self._batches.widened(one, ty, is_any(mask), self._forms.full(ty), count)
        if not isinstance(ty, TensorType):
            return whole
        assert isinstance(axes, int)
        place = axes % (ty.rank + 1)
        order = (*range(1, place + 1), 0, *range(place + 1, ty.rank + 1))
        return whole if place == 0 else permute(whole, dims=order)


_UNSIZED: Final = "the data of a batch hold no tensor that shows its size"


def _to_front(value: Value, ty: Type, axes: Axes) -> Value:
    """Return an argument with the dim of the batch in front."""
    if isinstance(ty, TupleType):
        each = enumerate(zip(ty.fields, axes_of(ty, axes), strict=True))
        return value.builder.tuple([_to_front(value[i], t, a) for i, (t, a) in each])
    if not isinstance(ty, TensorType) or axes is None:
        return value
    assert isinstance(axes, int)
    place = axes % (ty.rank + 1)
    order = (place, *(d for d in range(ty.rank + 1) if d != place))
    return value if place == 0 else permute(value, dims=order)


def _result(function: Function) -> Type:
    assert isinstance(function.ty, FnType)
    return function.ty.result
