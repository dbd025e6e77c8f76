"""A mapped function that is mapped once more, over the pairs of an outer and an inner element.

Where control depends on the elements, the code for a batch works on as many of them as take an arm,
which is a number of its own in each element of a batch around it. So the function is not mapped as
the code that it is by then: the function that it maps is called once for all pairs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from ...dataclass import dataclass
from ...diagnostics.catalogue.batching import BatchedCell
from ...ir.derived_types.batch_dims import axes_of
from ...ir.dims import Dim
from ...ir.expr import Call, GlobalVar, LetBlock, type_of
from ...ir.traverse import Steps
from ...ir.types import AdtType, FnType, RefType, SizeType, TupleType, Type, as_arguments
from ...operators.builder import Builder, Value
from ...operators.primitive.create import arange
from ...operators.primitive.view import permute
from .masks import Mask, is_any
from .regroup import Regrouping

if TYPE_CHECKING:
    from ...ir.transforms import Axes
    from ..deriving.store import Store
    from .body import Body, Instances
    from .frame import Found, Frame
    from .mixtures import Mixtures


@final
@dataclass(frozen=True, slots=True)
class _Sizes:
    """How many outer elements there are, and how many inner ones each of them has."""

    builder: Builder
    outer: Dim
    inner: Dim

    @property
    def every(self) -> Dim:
        """The number of pairs."""
        return self.outer * self.inner

    def owners(self) -> Value:
        """Return the position of the outer element of each pair."""
        column = self.builder.call(arange, (), {"end": self.outer}).reshape(self.outer, 1)
        return column.expand((self.outer, self.inner)).reshape(self.every)

    def firsts(self) -> Value:
        """Return the position of the first pair of each outer element."""
        return self.builder.call(arange, (), {"end": self.outer}) * self.builder.size(self.inner)


@final
@dataclass(frozen=True, slots=True)
class Mapped:
    """A function that `vmap` has made, which brings arguments into order for that of a batch."""

    name: str
    function: str
    """The function that is mapped."""
    masks: tuple[Mask, ...]
    """Which of its parameters are batched."""
    batched: str
    """The function of a batch."""
    out_axes: Axes


@final
class Pairs:
    """Writes mapped functions for a batch, as one call for all pairs."""

    def __init__(self, instances: Instances, batches: Mixtures, store: Store) -> None:
        self._instances: Final = instances
        self._batches: Final = batches
        self._forms: Final = batches.forms
        self._store: Final = store
        self._regrouping: Final = Regrouping(store, batches.uniform)

    def value(self, body: Body, mapped: Mapped, frame: Frame) -> Steps[Found]:
        """Return the value of a mapped function for the elements of a frame, in which its
        parameters are bound."""
        call = yield self._call(body, mapped, frame)
        function = self._store.functions[mapped.function]
        assert isinstance(function.ty, FnType)
        _, *found = map(frame.find, call.args)
        inner = type_of(call.args[0])
        assert isinstance(inner, SizeType)
        sizes = _Sizes(frame.builder, frame.count, inner.dim)
        args: list[Value] = []
        masks: list[Mask] = []
        for each, param, own in zip(found, function.params, mapped.masks, strict=True):
            value, mask = self._joined(sizes, each, type_of(param), own)
            args.append(value)
            masks.append(mask)
        name, mask = self._instances.callee(mapped.function, tuple(masks))
        every = frame.builder.size(sizes.every)
        type_args = (*as_arguments(function.type_params), sizes.every)
        ty = self._forms.type(function.ty.result, mask, sizes.every)
        value = frame.builder.apply(name, (every, *args), ty, type_args)
        return self._split(sizes, (value, mask), function.ty.result, mapped.out_axes)

    def _call(self, body: Body, mapped: Mapped, frame: Frame) -> Steps[Call]:
        """Write the code before the call for the inner elements, which brings their dim to the
        front and finds their number; return the call."""
        whole = self._store.functions[mapped.name].body
        assert isinstance(whole, LetBlock)
        for binding in whole.bindings:
            match binding.value:
                case Call(GlobalVar(mapped.batched)) as call:
                    return call
                case value:
                    frame.bind(binding.var, (yield body.value(value, frame)))
        raise AssertionError("a mapped function calls that of a batch")

    def _joined(self, sizes: _Sizes, found: Found, ty: Type, own: Mask) -> Found:
        """Return an argument for all pairs; `ty` is its type for one of them, and `own` says which
        of it the inner elements have in front."""
        value, mask = found
        if isinstance(ty, TupleType):
            assert isinstance(mask, tuple)
            assert isinstance(own, tuple)
            each = enumerate(zip(ty.fields, mask, own, strict=True))
            parts = [self._joined(sizes, (value[i], m), t, o) for i, (t, m, o) in each]
            return sizes.builder.tuple([v for v, _ in parts]), tuple(m for _, m in parts)
        if not is_any(own):
            return self._repeated(sizes, found, ty)
        if isinstance(ty, AdtType):
            batch = self._forms.type(ty, mask=True, count=sizes.inner)
            value = self._batches.uniform_of(value, batch, mask, sizes.outer)
            value = self._batches.widened(value, batch, is_any(mask), True, sizes.outer)
            return self._regrouping.flat(value, ty, sizes.outer, sizes.inner), True
        if not mask:
            value = value.expand((sizes.outer, *value.shape))
        return value.reshape(sizes.every, *value.shape[2:]), True

    def _repeated(self, sizes: _Sizes, found: Found, ty: Type) -> Found:
        """Return a value that all inner elements share, for each pair."""
        value, mask = found
        if not is_any(mask):
            return found
        if isinstance(ty, RefType):
            self._instances.report(BatchedCell(sizes.builder.span, _SHARED))
            return found
        return self._batches.taken(value, ty, mask, sizes.owners(), sizes.outer), mask

    def _split(self, sizes: _Sizes, found: Found, ty: Type, axes: Axes) -> Found:
        """Return a result for each outer element, with the dim of the inner ones where axes have
        it."""
        value, mask = found
        if isinstance(ty, TupleType):
            assert isinstance(mask, tuple)
            each = enumerate(zip(ty.fields, mask, axes_of(ty, axes), strict=True))
            parts = [self._split(sizes, (value[i], m), t, a) for i, (t, m, a) in each]
            return sizes.builder.tuple([v for v, _ in parts]), tuple(m for _, m in parts)
        value = self._batches.uniform_of(value, ty, mask, sizes.every)
        if axes is None and is_any(mask):
            # It is the same for all inner elements, so it is that of the first.
            own = self._forms.full(ty)
            return self._batches.taken(value, ty, own, sizes.firsts(), sizes.every), own
        own = isinstance(ty, SizeType) or self._forms.full(ty)
        if axes is None or not is_any(own):
            return value, self._forms.none(ty)
        value = self._batches.widened(value, ty, is_any(mask), own, sizes.every)
        if isinstance(ty, AdtType):
            return self._regrouping.split(value, ty, sizes.outer, sizes.inner), True
        assert isinstance(axes, int)
        value = value.reshape(sizes.outer, sizes.inner, *value.shape[1:])
        return _moved(value, 1, 1 + axes % (value.rank - 1)), True


_SHARED: Final = "the cell is the same for all elements"


def _moved(value: Value, source: int, target: int) -> Value:
    """Return a tensor with one of its dims at another place."""
    if source == target:
        return value
    order = [d for d in range(value.rank) if d != source]
    order.insert(target, source)
    return permute(value, dims=tuple(order))
