"""Lowerings: how an operator is run, by the kinds that a declaration names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, assert_never, final

from ...dataclass import dataclass

if TYPE_CHECKING:
    from ..types import Type


@final
@dataclass(frozen=True, slots=True)
class Elementwise:
    """Each element of the result is an expression of elements of the operands at any places.

    `body(elements, place, *operands, *attributes)`, arguments in the order of the signature: it
    gives the value at a `Place`, or a tuple of values where the result is a tuple. `elements` is an
    `elements.Elements`; a tensor operand is a `Source`, a tuple of tensors a tuple of these, an
    omitted operand or an empty tuple None; sizes in attributes are `Dim`, dtypes `DType`. It gives
    None for a call without such an expression, which stays a call.
    """

    body: Callable[..., Any]


@final
@dataclass(frozen=True, slots=True)
class MadeOf:
    """The same value in other operators.

    `body(args, attrs)` emits the code on values under construction, as a gradient rule does. Beside
    a library's function it may return None for a call that is better left as it is, and emits
    nothing then. As a lowering of its own it is written out before code is generated.
    """

    body: Callable[[tuple[Any, ...], Any], Any]


@final
@dataclass(frozen=True, slots=True)
class Scatter:
    """Elements are added at places that are computed, or stored there.

    The result starts as operand `base`, or as zeros where that is None. For each place in the
    operand `over`, `body(elements, place, *operands, *attributes)` gives the coordinates in the
    result and the value that is added there; None for a call without such an expression. In which
    order values are added at one place is open, so sums of floats may differ in the last bits.

    With `in_place` there is no result: values are added in the storage of `base`. Values that are
    not added replace the old ones; those of one place are equal.
    """

    base: int | None
    over: int
    body: Callable[..., Any]
    in_place: bool = False
    adds: bool = True


Fused: TypeAlias = Elementwise | MadeOf | Scatter
"""The form of a library operator inside a generated kernel; one without any is called."""


@final
@dataclass(frozen=True, slots=True)
class Pointwise:
    """Each element of the result depends on one element of each operand (broadcast).

    `body(scalars, *operands, *attributes)`, arguments in the order of the signature; it is
    written over `scalars.Scalars`.
    """

    body: Callable[..., Any]


@final
@dataclass(frozen=True, slots=True)
class Reduction:
    """Elements along the dims that the attribute `dim` names, None for all, combine.

    `combine` is add, mul, max, min, and, or; mean, which is add and then a division by their
    number; argmax or argmin, which give the position of the element that max or min give. With max
    or min the result may be a pair, the second of which is this position. Positions are counted
    over the reduced dims, row by row; of equal elements the first counts, and a NaN is larger than
    any number for max and smaller for min. Of no floats max is minus infinity. Elements are brought
    to the dtype of the result before they combine (for a position, they stay what they are), for
    and and or to bools.

    `body(torch, *operands, *attributes)` is its meaning in torch.
    """

    combine: str
    body: Callable[..., Any]
    is_fresh: bool = True
    """False where there may be nothing to combine, and the operand itself is the result."""
    fused: MadeOf | None = None
    """Its form inside a kernel, where the attributes change which dims combine."""


@final
@dataclass(frozen=True, slots=True)
class Method:
    """An alternative to a body on a CPU, faster at some sizes and slower at others.

    `body` is called as the body that it stands in for, and gives the same values but for rounding,
    contiguous. `fits(types, attributes)` is whether it applies to operands of these types.
    `room(*shapes)` estimates the numbers that it stores besides operands and result.
    """

    name: str
    body: Callable[..., Any]
    fits: Callable[[Sequence[Type], Mapping[str, Any]], bool]
    room: Callable[..., int] | None = None


@final
@dataclass(frozen=True, slots=True)
class Contraction:
    """Products summed over shared dims. `body(torch, *operands, *attributes)`."""

    body: Callable[..., Any]
    is_fresh: bool = True
    """False where there may be no sum, and the result is a view."""
    fused: Callable[..., Any] | MadeOf | None = None
    """Its form inside a kernel: `subscripts(ranks, attrs)` returns the sum of products as einsum
    writes it (`bmk,bkn->bmn`), from the ranks of the operands and the attributes."""
    methods: tuple[Method, ...] = ()
    """Other ways; which one a call takes is measured."""


@final
@dataclass(frozen=True, slots=True)
class View:
    """The same elements under another shape. `body(torch, *operands, *attributes)` may alias.

    `element` is the body of an `Elementwise` that only moves elements. A view that gives several
    tensors, each of a shape of its own, is made of views that give one.
    """

    body: Callable[..., Any]
    element: Callable[..., Any] | MadeOf | None = None


@final
@dataclass(frozen=True, slots=True)
class Library:
    """A call into torch: `body(torch, *operands, *attributes)`.

    In every body a missing operand is None, a dim is an int and a dtype is torch's. A factory's
    body gets the device of the call after torch: `body(torch, device, *operands, *attributes)`.

    `is_fresh` says that the result never shares storage with an operand or with anything else.
    `in_place`, called as `body`, writes the result into operand `overwrites` and gives it back.
    """

    body: Callable[..., Any]
    is_fresh: bool = False
    overwrites: int | None = None
    in_place: Callable[..., Any] | None = None
    fused: Fused | None = None
    methods: tuple[Method, ...] = ()
    """Other ways; which one a call takes is measured."""

    @staticmethod
    def updating(body: Callable[..., Any], in_place: Callable[..., Any], fused: Fused) -> Library:
        """Return the lowering of an operator that changes elements of its first operand."""
        return Library(body, is_fresh=True, overwrites=0, in_place=in_place, fused=fused)


@final
@dataclass(frozen=True, slots=True)
class Host:
    """Runs on the host, for its effect or on host values: `body(*operands, *attributes)`."""

    body: Callable[..., Any]


Lowering: TypeAlias = Pointwise | Reduction | Contraction | View | Library | Host | MadeOf


Inside: TypeAlias = Elementwise | MadeOf | Scatter | Pointwise | Reduction | Contraction


def inside(lowering: Lowering) -> Inside | None:
    """Return the lowering of an operator inside a generated kernel; None for one that is always
    called.

    A `Reduction` or `Contraction` is given where it is itself what the kernel does: sums of
    products are then written as `Contraction.fused` says, if it does for the call at hand.
    """
    match lowering:
        case Pointwise() | MadeOf():
            return lowering
        case Reduction(fused=fused):
            return fused or lowering
        case Contraction(fused=fused):
            return fused if fused is None or isinstance(fused, MadeOf) else lowering
        case View(element=element):
            if element is None or isinstance(element, MadeOf):
                return element
            return Elementwise(element)
        case Library(fused=fused):
            return fused
        case Host():
            return None
        case other:
            assert_never(other)
