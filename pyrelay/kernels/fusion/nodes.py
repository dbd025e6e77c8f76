"""The nodes of fusion: each binding of a body, and its users."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from functools import lru_cache
from typing import Any, Final, final

from ...dataclass import dataclass
from ...ir.bounds import estimate
from ...ir.calls.storage import makes_storage, overwritten_operand
from ...ir.declaration.elements import Place
from ...ir.declaration.lowering import (
    Contraction,
    Elementwise,
    Pointwise,
    Reduction,
    Scatter,
    inside,
)
from ...ir.dims import Dim, product
from ...ir.expr import (
    Call,
    Constant,
    Expr,
    Function,
    GlobalVar,
    If,
    Match,
    Tuple,
    TupleGet,
    Var,
    type_of,
)
from ...ir.op import Effect, Host, Op, View
from ...ir.traverse import children
from ...ir.types import UNIT, DType, SizeType, TensorType, TupleType, Type, is_float
from ...operators.composite.descent import overwrite
from ...operators.composite.table_rows import add_rows, existing_rows, store_rows
from ...operators.primitive.compare import cast
from ..groups import Group, Special, product_of, special_of
from ..reading import dtype_of, first_of, reshaped_operand, shape_of, types_of_results
from ..recording import Recording


class Role(Enum):
    """The kind of a binding, as fusion sees it."""

    ELEMENT = "given element by element"
    REDUCTION = "a reduction"
    PRODUCT = "a sum of products"
    SCATTER = "a scatter"
    OVERWRITE = "a parameter that is overwritten"
    ROWS = "a parameter of which rows are overwritten"
    VIEW = "a view"
    PART = "a part or a tuple of other values, or another name"
    OPAQUE = "evaluated as it stands"


WRITES: Final = (Role.OVERWRITE, Role.ROWS)
"""The roles of what changes a parameter, its first operand, by its last."""

COMPUTED: Final = (Role.ELEMENT, Role.REDUCTION, Role.PRODUCT, Role.SCATTER, *WRITES)
"""The roles of what kernels do."""

_LOOPS: Final = (Role.REDUCTION, Role.PRODUCT, Role.SCATTER, Role.ROWS)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Item:
    """A binding, its role, and the loop that it is, if it is none over elements."""

    var: Var
    value: Expr
    role: Role
    special: Special | None = None


def item_of(var: Var, value: Expr) -> Item:
    """Return a binding in A-normal form with its role."""
    role = role_of(var, value)
    if role not in _LOOPS:
        return Item(var, value, role)
    assert isinstance(value, Call)
    return Item(var, value, role, special_of(var, value))


def role_of(var: Var, value: Expr) -> Role:
    """Return the kind of a binding in A-normal form."""
    match value:
        case Call(Op() as op):
            return _role_of_call(op, var, value)
        case TupleGet(Var()) | Tuple():
            return Role.PART
        case Var() | Constant():
            return Role.PART
        case _:
            return Role.OPAQUE


def _role_of_call(op: Op, var: Var, call: Call) -> Role:
    if op is overwrite:
        return Role.OVERWRITE if isinstance(call.args[0], Var) else Role.OPAQUE
    if op in (add_rows, store_rows):
        return Role.ROWS if isinstance(call.args[0], Var) else Role.OPAQUE
    if op.effect is not Effect.NONE or not all(is_tensors(type_of(a)) for a in call.args):
        return Role.OPAQUE
    if not has_elements(call):
        return Role.OPAQUE
    what = inside(op.lowering)
    is_tuple = isinstance(type_of(call), TupleType)
    match what:
        case Elementwise() if isinstance(op.lowering, View):
            return Role.OPAQUE if is_tuple else Role.VIEW
        case Pointwise() | Elementwise() if _is_one_shape(type_of(call)):
            return Role.OPAQUE if is_host_number(call) else Role.ELEMENT
        case Reduction() if isinstance(call.args[0], Var) and shape_of(type_of(call.args[0])):
            return Role.REDUCTION
        case Contraction() if not is_tuple and product_of(var, call) is not None:
            return Role.PRODUCT
        case Scatter() if not is_tuple:
            return Role.SCATTER
        case _:
            return Role.OPAQUE


def is_check(item: Item) -> bool:
    """Return whether a value is computed so that it fails before anything is overwritten."""
    return isinstance(item.value, Call) and item.value.callee is existing_rows


def is_tensors(ty: Type) -> bool:
    """Return whether a value is a tensor or an integer, or a tuple of such."""
    pending = [ty]
    while pending:
        match pending.pop():
            case TupleType(fields):
                pending += fields
            case SizeType() | TensorType(_, DType()):
                pass
            case _:
                return False
    return True


def _is_one_shape(ty: Type) -> bool:
    """Return whether a result is a tensor, or several of one shape."""
    fields = types_of_results(ty)
    shapes = {f.shape for f in fields if isinstance(f, TensorType)}
    return len(shapes) == 1 and all(isinstance(f, TensorType) for f in fields)


def is_host_number(call: Call) -> bool:
    """Return whether a call computes an integer or bool of numbers, which may steer the program: at
    run time these are Python's own. So is one that is cast from a float."""
    types = [type_of(call), *(type_of(a) for a in call.args if call.callee is not cast)]
    return all(
        isinstance(t, SizeType)
        or (isinstance(t, TensorType) and not t.shape and not is_float(t.dtype))
        for t in types
    )


@final
@dataclass(slots=True)
class Uses:
    """Who uses a value, also through views and parts of it."""

    count: int = 0
    outside: bool = False
    """Something that is no kernel uses it as it is."""
    contracted: bool = False
    """It is an operand of a sum of products."""
    largest: int = 0
    """The largest number of elements, by estimate, that a user goes over."""
    last: int = 0
    """The position of the last item that may read it, if what is computed of it floats."""

    def join(self, other: Uses) -> None:
        """Add the users of a view or part."""
        self.count += other.count
        self.outside |= other.outside
        self.contracted |= other.contracted
        self.largest = max(self.largest, other.largest)
        self.last = max(self.last, other.last)


def uses_of(items: Sequence[Item], needed: Iterable[Var]) -> dict[Var, Uses]:
    """Return the users of every variable; `needed` are used after the items."""
    found: dict[Var, Uses] = {var: Uses(1, outside=True, last=len(items)) for var in needed}
    for position, item in reversed(list(enumerate(items))):
        own = found.setdefault(item.var, Uses())
        for var in mentioned(item.value):
            user = found.setdefault(var, Uses())
            if item.role in (Role.VIEW, Role.PART):
                user.join(own)
                continue
            user.count += 1
            user.last = max(user.last, own.last, position)
            user.outside |= item.role is Role.OPAQUE
            user.contracted |= item.role in (Role.PRODUCT, Role.SCATTER)
            if item.role is Role.ELEMENT:
                user.largest = max(user.largest, elements(type_of(item.var)))
    return found


def mentioned(value: Expr) -> tuple[Var, ...]:
    """Return the variables that the value of a binding itself uses, each once; not what the bodies
    in it use, for which see `has_bodies`."""
    match value:
        case Var():
            return (value,)
        case If(condition):
            used: tuple[Expr, ...] = (condition,)
        case Match(matched):
            used = (matched,)
        case Function():
            used = ()
        case _:
            used = children(value)
    return tuple(dict.fromkeys(v for v in used if isinstance(v, Var)))


def target_of(item: Item) -> Var:
    """Return the parameter that an item of one of the roles `WRITES` changes."""
    assert isinstance(item.value, Call)
    target = item.value.args[0]
    assert isinstance(target, Var)
    return target


def tuples_around(var: Var, bindings: Mapping[Var, Expr]) -> tuple[Var, ...]:
    """Return a variable and the tuples that it is a part of."""
    found = [var]
    while isinstance(bound := bindings.get(found[-1]), TupleGet) and isinstance(bound.value, Var):
        found.append(bound.value)
    return tuple(found)


def gives_own_storage(value: Expr) -> bool:
    """Return whether the value of a binding is a call of an operator whose result shares storage
    with nothing."""
    return isinstance(value, Call) and isinstance(value.callee, Op) and makes_storage(value.callee)


def has_bodies(value: Expr) -> bool:
    """Return whether the value of a binding has bodies of its own, which may use all in scope."""
    return isinstance(value, If | Match | Function)


@lru_cache(maxsize=4096)
def elements(ty: Type) -> int:
    """Return the number of elements of a value, by estimate."""
    return sum(estimate(product(shape_of(f))) for f in types_of_results(ty))


@lru_cache(maxsize=4096)
def size_in_bytes(ty: Type) -> int:
    """Return the bytes that a value fills, by estimate."""
    return sum(elements(f) * (dtype_of(f).bits // 8) for f in types_of_results(ty))


def with_whole_tuples(items: Sequence[Item], needed: Iterable[Var]) -> list[Item]:
    """Return the items where what gives a tuple that is used as one is evaluated as it stands."""
    whole = {v for i in items if not isinstance(i.value, TupleGet) for v in mentioned(i.value)}
    whole.update(needed)
    return [
        replace(i, role=Role.OPAQUE)
        if i.role in COMPUTED
        and isinstance(i.var.ty, TupleType)
        and i.var.ty.fields
        and i.var in whole
        else i
        for i in items
    ]


def may_stop(value: Expr, groups: Mapping[str, Group]) -> bool:
    """Return whether the program may stop where a binding is computed: in a kernel of `groups`, or
    a call of torch."""
    match value:
        case Call(GlobalVar(name)) if name in groups:
            return groups[name].may_fail
        case Call(Op(), ()):  # a size
            return False
        case Call():
            return reshaped_operand(value) is None
        case _:
            return False


def computes(value: Expr) -> bool:
    """Return whether a value is made anew, element by element."""
    return (
        isinstance(value, Call)
        and isinstance(value.callee, Op)
        and not isinstance(value.callee.lowering, View | Host)
    )


def updates_a_part(value: Expr, computed: Collection[Expr]) -> bool:
    """Return whether a value is a tensor with a part changed that comes from elsewhere: that is not
    among the variables whose values have been computed, other than by such an update.

    Such an update stays a call. The host makes it in place where the program owns the tensor, at
    the cost of the part; a kernel that makes the whole tensor costs the whole, in a loop each
    round. What the same function has just computed has cost the whole anyway.
    """
    if not isinstance(value, Call) or not isinstance(value.callee, Op):
        return False
    place = overwritten_operand(value.callee)
    return place is not None and value.args[place] not in computed


def has_elements(call: Call) -> bool:
    """Return whether the body of an operator defines the elements of a call: some do of most calls
    only. True where it has no body."""
    assert isinstance(call.callee, Op)
    types = [type_of(a) for a in call.args]
    match inside(call.callee.lowering):
        case Elementwise(body):
            over = first_of(type_of(call))
        case Scatter(over=operand, body=body):
            over = types[operand]
        case _:
            return True
    record = Recording()
    place = Place(record.places.index("i", shape_of(over)), shape_of(over))
    elements = record.elements(dtype_of(over), place.index)
    operands = [_operand(t) for t in types]
    return body(elements, place, *operands, *call.attrs.values()) is not None


@final
@dataclass(frozen=True, slots=True)
class _Unread:
    """An operand of which only the type matters: an `ir.declaration.elements.Source`."""

    shape: tuple[Dim, ...]
    dtype: DType

    def __call__(self, *index: Dim) -> Any:
        return self

    def within(self, index: Sequence[Dim], inside: Any, otherwise: Any) -> Any:
        """Return an element."""
        return self


def _operand(ty: Type) -> Any:
    if ty == UNIT:
        return None
    if isinstance(ty, TupleType):
        return tuple(map(_operand, ty.fields))
    return _Unread(shape_of(ty), dtype_of(ty))
