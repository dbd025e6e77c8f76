"""What happens on the host: sizes, conversions to Python's numbers, failing."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from .. import kinds
from ..dims import ONE, ZERO, Dim, product
from ..op import (
    Effect,
    Elementwise,
    Gradient,
    Host,
    Library,
    NoGradient,
    Op,
    Promotion,
    Pullback,
    RuleCall,
    Sample,
    ShapeBehaviour,
    TensorSpec,
    TypeRule,
    attribute,
    operand,
)
from ..rules import axis, integral, with_rank
from ..types import (
    BOOL,
    FLOAT,
    INT,
    UNIT,
    UNKNOWN,
    SizeType,
    TensorType,
    TupleType,
    Type,
    bool_,
    float32,
    is_float,
    show,
)

if TYPE_CHECKING:
    from ..build import Value

_SIZE: Final = NoGradient("a size is an integer")


size: Final = Op(
    name="size",
    doc="The value of a dim.",
    params=(attribute("dim", convert=kinds.dim),),
    promotion=Promotion.NONE,
    type_rule=lambda call: SizeType(call.attrs["dim"]),
    effect=Effect.NONE,
    shape=ShapeBehaviour.TRIVIAL,
    lowering=Host(lambda dim: dim),
    grad=_SIZE,
    hidden=(),
    hyper=(),
    torch_name=None,
    samples=lambda: (Sample((), {"dim": 3}), Sample((), {"dim": 0})),
)


def _as_size_type(call: RuleCall) -> Type:
    ty = call.type(0)
    if isinstance(ty, SizeType):
        return ty
    integral(call, 0)
    with_rank(call, 0, 0)
    return SizeType(call.solver.fresh_dim("size"))


def _as_size(value: Any) -> int:
    found = int(value)
    if found < 0:
        raise ValueError(f"a size is not negative, but this one is {found}")
    return found


as_size: Final = Op(
    name="as_size",
    doc="An integer as a size, which types may speak of; it must not be negative.",
    params=(operand("value"),),
    promotion=Promotion.NONE,
    type_rule=_as_size_type,
    effect=Effect.FAIL,
    shape=ShapeBehaviour.DYNAMIC,
    lowering=Host(_as_size),
    grad=_SIZE,
    hidden=(),
    hyper=(),
    torch_name=None,
    samples=lambda: (Sample((3,)), Sample((TensorSpec((), "int64", 0, 5),))),
)


as_bound: Final = Op(
    name="as_bound",
    doc="An integer as a bound of a slice; a negative one counts from the end.",
    params=(operand("value"),),
    promotion=Promotion.NONE,
    type_rule=_as_size_type,
    effect=Effect.NONE,
    shape=ShapeBehaviour.DYNAMIC,
    lowering=Host(int),
    grad=_SIZE,
    hidden=(),
    hyper=(),
    torch_name=None,
    samples=lambda: (Sample((-3,)), Sample((TensorSpec((), "int64", -5, 5),))),
)


shape: Final = Op(
    name="shape",
    doc="The sizes of a tensor, as a tuple.",
    params=(operand("input"),),
    promotion=Promotion.NONE,
    type_rule=lambda call: TupleType(tuple(SizeType(d) for d in call.tensor(0).shape)),
    effect=Effect.NONE,
    shape=ShapeBehaviour.TRIVIAL,
    lowering=Host(lambda x: tuple(getattr(x, "shape", ()))),
    grad=_SIZE,
    hidden=(),
    hyper=(),
    torch_name=None,
    samples=lambda: (
        Sample((TensorSpec((2, 3)),)),
        Sample((TensorSpec(()),)),
        Sample((TensorSpec((0, 3)),)),
    ),
)


def _dim_size_type(call: RuleCall) -> Type:
    source = call.tensor(0)
    if source.rank == 0:
        call.clash("a number has no size", 0)
    return SizeType(source.shape[axis(call, call.attrs["dim"], source.rank)])


dim_size: Final = Op(
    name="dim_size",
    doc="The size of one dim of a tensor.",
    params=(operand("input"), attribute("dim", convert=kinds.axis)),
    promotion=Promotion.NONE,
    type_rule=_dim_size_type,
    effect=Effect.NONE,
    shape=ShapeBehaviour.TRIVIAL,
    lowering=Host(lambda x, dim: x.shape[dim]),
    grad=_SIZE,
    hidden=(),
    hyper=(),
    torch_name=None,
    samples=lambda: (
        Sample((TensorSpec((2, 3)),), {"dim": 0}),
        Sample((TensorSpec((0, 3)),), {"dim": -1}),
        Sample((TensorSpec((0, 3)),), {"dim": 0}),
    ),
)


rank: Final = Op(
    name="rank",
    doc="The number of dims of a tensor.",
    params=(operand("input"),),
    promotion=Promotion.NONE,
    type_rule=lambda call: SizeType(Dim.of(call.tensor(0).rank)),
    effect=Effect.NONE,
    shape=ShapeBehaviour.TRIVIAL,
    lowering=Host(lambda x: len(getattr(x, "shape", ()))),
    grad=_SIZE,
    hidden=(),
    hyper=(),
    torch_name=None,
    samples=lambda: (
        Sample((TensorSpec((2, 3)),)),
        Sample((TensorSpec(()),)),
        Sample((TensorSpec((0, 3)),)),
    ),
)


numel: Final = Op(
    name="numel",
    doc="The number of elements of a tensor.",
    params=(operand("input"),),
    promotion=Promotion.NONE,
    type_rule=lambda call: SizeType(product(call.tensor(0).shape)),
    effect=Effect.NONE,
    shape=ShapeBehaviour.TRIVIAL,
    lowering=Host(lambda x: math.prod(getattr(x, "shape", ()))),
    grad=_SIZE,
    hidden=(),
    hyper=(),
    torch_name=None,
    samples=lambda: (
        Sample((TensorSpec((2, 3)),)),
        Sample((TensorSpec(()),)),
        Sample((TensorSpec((0, 3)),)),
    ),
)


def _same_length_type(call: RuleCall) -> Type:
    ty = call.type(0)
    fields = ty.fields if isinstance(ty, TupleType) else ()
    if not fields:
        call.clash("`same_length` takes a tuple of sizes", 0)
    sizes = [call.solver.resolve(f) for f in fields]
    for found in sizes:
        if not isinstance(found, SizeType):
            call.clash(f"`same_length` takes sizes, not {show(found)}", 0)
    first = sizes[0]
    assert isinstance(first, SizeType)
    for other in sizes[1:]:
        assert isinstance(other, SizeType)
        message = f"these run side by side, but have {first.dim} and {other.dim} elements"
        call.unify_dims(first.dim, other.dim, 0, message)
    return first


def _same_length(sizes: Sequence[int]) -> int:
    for other in sizes[1:]:
        if other != sizes[0]:
            raise ValueError(f"these run side by side, but have {sizes[0]} and {other} elements")
    return sizes[0]


same_length: Final = Op(
    name="same_length",
    doc="The one value of several sizes, which must be equal, as when tensors are zipped.",
    params=(operand("sizes"),),
    promotion=Promotion.NONE,
    type_rule=_same_length_type,
    effect=Effect.FAIL,
    shape=ShapeBehaviour.TRIVIAL,
    lowering=Host(_same_length),
    grad=_SIZE,
    hidden=(),
    hyper=(),
    torch_name=None,
    samples=lambda: (Sample(((3, 3),)), Sample(((0,),))),
)


def _equal_sizes(left: int, right: int) -> tuple[()]:
    if left != right:
        raise SizesDiffer(left, right)
    return ()


equal_sizes: Final = Op(
    name="equal_sizes",
    doc="Stops the program unless two sizes are equal, which its types could not tell.",
    params=(attribute("left", convert=kinds.dim), attribute("right", convert=kinds.dim)),
    promotion=Promotion.NONE,
    type_rule=lambda call: UNIT,
    effect=Effect.FAIL,
    shape=ShapeBehaviour.TRIVIAL,
    lowering=Host(_equal_sizes),
    grad=NoGradient("gives nothing"),
    hidden=(),
    hyper=(),
    torch_name=None,
    samples=lambda: (Sample((), {"left": 3, "right": 3}),),
)


def _check_type(call: RuleCall) -> Type:
    condition = with_rank(call, 0, 0)
    if call.known_dtype(condition.dtype) != bool_:
        call.clash(f"a condition is a Bool, not {show(condition)}", 0)
    return UNIT


def _check(condition: Any, message: str) -> tuple[()]:
    if not condition:
        raise AssertionFailed(message)
    return ()


check: Final = Op(
    name="check",
    doc="Stops the program with a message unless the condition holds; `assert`.",
    params=(operand("condition"), attribute("message", "the assertion does not hold", kinds.text)),
    promotion=Promotion.NONE,
    type_rule=_check_type,
    effect=Effect.FAIL,
    shape=ShapeBehaviour.TRIVIAL,
    lowering=Host(_check),
    grad=NoGradient("gives nothing"),
    hidden=(),
    hyper=(),
    torch_name=None,
    samples=lambda: (Sample((True,)),),
)


class SizesDiffer(ValueError):  # noqa: N818  becomes a diagnostic at the call
    """Two sizes that must be equal are not."""

    def __init__(self, left: int, right: int) -> None:
        super().__init__(left, right)
        self.left = left
        self.right = right


class IntegerOverflow(OverflowError):  # noqa: N818  the program's, not the compiler's
    """An integer does not fit into an element of a tensor."""


class AssertionFailed(AssertionError):  # noqa: N818  it is no mistake of the compiler
    """What `check` raises: an assertion of the program does not hold."""


class ProgramFailed(RuntimeError):  # noqa: N818  it is no mistake of the compiler
    """What `fail` raises: the program stopped itself."""


def _fail(message: str) -> Any:
    raise ProgramFailed(message)


fail: Final = Op(
    name="fail",
    doc="Stops the program with a message; `raise`. It may stand for a value of any type.",
    params=(attribute("message", convert=kinds.text),),
    promotion=Promotion.NONE,
    type_rule=lambda call: UNKNOWN,
    effect=Effect.FAIL,
    shape=ShapeBehaviour.TRIVIAL,
    lowering=Host(_fail),
    grad=NoGradient("gives nothing"),
    hidden=(),
    hyper=(),
    torch_name=None,
    samples=lambda: (Sample((), {"message": "no way on"}),),
)


class EmptyList(IndexError):  # noqa: N818  becomes a diagnostic where the element is asked for
    """A list is empty where an element is needed."""


def _no_element(index: Any, length: Any) -> Any:
    count = int(length)
    if count == 0:
        raise EmptyList("the list is empty")
    raise IndexError(f"index {int(index)} of a list of length {count}")


no_element: Final = Op(
    name="no_element",
    doc="Stops the program: a list has no element at an index. It may stand for any value.",
    params=(operand("index"), operand("length")),
    promotion=Promotion.NONE,
    type_rule=lambda call: UNKNOWN,
    effect=Effect.FAIL,
    shape=ShapeBehaviour.TRIVIAL,
    lowering=Host(_no_element),
    grad=NoGradient("gives nothing"),
    hidden=(),
    hyper=(),
    torch_name=None,
    samples=lambda: (Sample((3, 2)), Sample((0, 0))),
)


def _number(call: RuleCall) -> TensorType:
    """Give the type of an operand that must hold one number. Raises Clash."""
    source = call.tensor(0)
    if source.rank and any(call.solver.resolve_dim(d) != ONE for d in source.shape):
        python_name = call.op.name.removeprefix("to_")
        call.clash(
            f"`{python_name}()` takes one number, not {show(source)}",
            0,
            help=f"to convert every element: relay.cast(x, relay.{_DTYPES[python_name]})",
        )
    return source


_DTYPES: Final = {"int": "int64", "float": "float32", "bool": "bool"}


def _to_int_type(call: RuleCall) -> Type:
    ty = call.type(0)
    if isinstance(ty, SizeType):
        return ty
    _number(call)
    return INT


def _number_of(ty: Type) -> TypeRule:
    """Give the rule of a conversion of a number to a type."""

    def rule(call: RuleCall) -> Type:
        _number(call)
        return ty

    return rule


def _to_int(torch: Any, value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.reshape(()).to(torch.int64)
    return int(value)


def _to_float(torch: Any, value: Any) -> Any:
    return value.reshape(()).to(torch.float32)


def _to_bool(torch: Any, value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.reshape(()).to(torch.bool)
    return bool(value)


def _to_float_grad(p: Pullback) -> tuple[Value | None]:
    source = p.args[0]
    if not is_float(source.dtype):
        return (None,)
    return (p.g.cast(source.dtype).reshape(*source.shape),)


def _conversion(
    name: str,
    doc: str,
    type_rule: TypeRule,
    body: Callable[..., Any],
    grad: Gradient | NoGradient,
    *samples: Sample,
    fused: Elementwise | None = None,
) -> Op:
    """Give the operator that Python's `int`, `float` or `bool` of a number is."""
    return Op(
        name=name,
        doc=doc,
        params=(operand("input"),),
        promotion=Promotion.NONE,
        type_rule=type_rule,
        effect=Effect.NONE,
        shape=ShapeBehaviour.TRIVIAL,
        lowering=Library(body, fused=fused),
        grad=grad,
        hidden=(),
        hyper=(),
        torch_name=None,
        samples=lambda: samples,
    )


to_int: Final = _conversion(
    "to_int",
    "Python's `int()` of a number: rounded towards zero.",
    _to_int_type,
    _to_int,
    NoGradient("piecewise constant"),
    Sample((TensorSpec(()),)),
    Sample((TensorSpec((1,)),)),
    Sample((TensorSpec((), "int32", -5, 5),)),
    Sample((3,)),
)

to_float: Final = _conversion(
    "to_float",
    "Python's `float()` of a number, as float32.",
    _number_of(FLOAT),
    _to_float,
    _to_float_grad,
    Sample((TensorSpec(()),)),
    Sample((TensorSpec((1, 1)),)),
    Sample((TensorSpec((), "int64", -5, 5),)),
    Sample((3,)),
    fused=Elementwise(lambda k, place, x: k.cast(x(*(ZERO for _ in x.shape)), float32)),
)

to_bool: Final = _conversion(
    "to_bool",
    "Python's `bool()` of a number: whether it is not zero.",
    _number_of(BOOL),
    _to_bool,
    NoGradient("piecewise constant"),
    Sample((TensorSpec(()),)),
    Sample((TensorSpec((), "int64", 0, 2),)),
    Sample((0,)),
)
