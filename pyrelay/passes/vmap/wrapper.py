"""The function that `vmap` makes, around that of a batch: it takes arguments with the batch at any
axis, and gives results so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from ...analysis.dim_availability import shown
from ...ir.derived_types.batch_dims import axes_of, with_batch
from ...ir.dims import Dim, DimVar
from ...ir.expr import Batching, Call, Function, Var, function_type, type_of
from ...ir.names import Names
from ...ir.types import AdtType, RefType, SizeType, TensorType, TupleType, Type
from ...operators.builder import Builder, Value
from ...operators.host.failing import check
from ...operators.host.sizes import as_size
from ...operators.primitive.compare import greater_equal
from ...operators.primitive.view import permute
from ..deriving.deriver import Wanted, own_params, plain_name
from ..deriving.store import function_like
from .masks import Mask, is_any

if TYPE_CHECKING:
    from ...ir.transforms import Axes
    from .mixtures import Mixtures


@final
class Wrapper:
    """Builds one such function. `args` are its arguments with the batch in front, and `masks` say
    which of them have one."""

    def __init__(self, batches: Mixtures, function: Function, wanted: Wanted) -> None:
        assert isinstance(wanted.options, Batching)
        self._batches: Final = batches
        self._forms: Final = batches.forms
        self._function: Final = function
        self.out_axes: Final = wanted.options.out_axes
        self.span: Final = function.span.derived(f"vmap of `{plain_name(wanted.function)}`")
        names = Names(p.name for p in function.type_params)
        self._size_name: Final = names.fresh("batch")
        self.count: Final = Dim.of(self._size_name)
        builder = self.builder = Builder(self.span, names)
        own = own_params(function, wanted)
        axes = (*(None,) * wanted.captures, *wanted.options.axes(len(own)))
        self._params: Final[list[Var]] = []
        self.args: Final[list[Value]] = []
        self.masks: Final[list[Mask]] = []
        self._parts: Final[list[tuple[Value, Type, Mask]]] = []
        for param, each in zip(function.params, axes, strict=True):
            ty = type_of(param)
            new = Var(names.fresh(param.name), self._type(ty, each), span=param.span)
            self._params.append(new)
            self.masks.append(self.mask(ty, each))
            self._parts.append((builder.value(new), ty, self.masks[-1]))
            self.args.append(_to_front(builder.value(new), ty, each))

    def made(self, name: str, value: Value, mask: Mask) -> Function:
        """Return the function, of a value with the batch in front."""
        ty = function_type(self._function)
        value = self._from_front(value, ty.result, mask, self.out_axes, self.count)
        type_params = (*self._function.type_params, DimVar(self._size_name))
        params, body = tuple(self._params), self.builder.block(value)
        return function_like(self._function, name, params, body, self.span, type_params)

    def _type(self, ty: Type, axes: Axes) -> Type:
        match ty:
            case TupleType(fields):
                return TupleType(tuple(map(self._type, fields, axes_of(ty, axes))))
            case AdtType():
                return self._forms.type(ty, self.mask(ty, axes), self.count)
            case _:
                return with_batch(ty, axes, self.count, {})

    def mask(self, ty: Type, axes: Axes) -> Mask:
        """Return which tensors of a parameter are batched."""
        if isinstance(ty, TupleType):
            return tuple(map(self.mask, ty.fields, axes_of(ty, axes)))
        if isinstance(ty, RefType):
            return self._forms.none(ty)  # from outside, the same for all elements
        is_size = isinstance(ty, SizeType)
        return axes is not None and (is_size or is_any(self._forms.full(ty)))

    def size(self) -> Value:
        """Return the size of the batch."""
        builder, count = self.builder, self.count
        if any(count in shown(value.ty) for value, _, _ in self._parts):
            return builder.size(count)
        found = self._batches.size_of_first(self._parts, builder, count)
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
