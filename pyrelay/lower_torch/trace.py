"""Bodies of library operators as generated code.

A body is a Python function `body(torch, *operands, *attributes)`. It is run once, at compile time,
with stand-ins for torch and for the operands that write down what is done to them, so that the
call of the body, and whatever it decides from attributes alone, costs nothing at run time. A body
that looks at the values themselves, or writes to a tensor, raises `NotTraceable`; the host then
calls it as it is.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from types import BuiltinFunctionType, FunctionType, MethodDescriptorType, ModuleType
from typing import Any, Final, NoReturn, final

import torch
from torch._ops import OpOverloadPacket

from ..ir.types import DType, TensorType, TupleType, Type
from .code import Code
from .constants import torch_dtype
from .terms import DTYPE_NAMES, EmitContext, Form, Make, Term, leaf, part_of


class NotTraceable(Exception):  # noqa: N818  control flow of the emitter, not an error
    """The body does something whose text is not known."""


def trace(
    body: Callable[..., Any],
    context: EmitContext,
    args: Sequence[Any],
    types: Sequence[Type | None],
    *,
    takes_torch: bool = True,
) -> Term:
    """Return the value of `body(torch, *args)` as a term; operands among the arguments are terms,
    and `types` are those of the first arguments.

    Raises NotTraceable.
    """
    code = context.code
    known = {a: t for a, t in zip(args, types, strict=False) if isinstance(a, Term)}
    stand_ins = [_stand_in(code, a, known) for a in args]
    namespace = (_Namespace(context, torch, "torch"),) if takes_torch else ()
    try:
        result = body(*namespace, *stand_ins)
    except NotTraceable:
        raise
    except Exception as error:  # a stand-in met code that no tensor was needed for
        raise NotTraceable from error
    return term_of(code, result)


def _stand_in(code: Code, arg: Any, known: dict[Term, Type | None]) -> Any:
    if isinstance(arg, tuple):
        return tuple(_stand_in(code, a, known) for a in arg)
    return _operand(code, arg, known.get(arg)) if isinstance(arg, Term) else arg


def _operand(code: Code, term: Term, ty: Type | None) -> Any:
    if isinstance(ty, TupleType):
        parts = term.parts or tuple(part_of(code, term, i, t) for i, t in enumerate(ty.fields))
        return tuple(_operand(code, p, t) for p, t in zip(parts, ty.fields, strict=True))
    return _Value(code, term, ty if isinstance(ty, TensorType) else None)


class _IsTensor(type):
    """Answers `isinstance(x, torch.Tensor)` for stand-ins whose form is known."""

    def __instancecheck__(cls, value: object) -> bool:
        if isinstance(value, _Value):
            return value.is_tensor()
        return isinstance(value, torch.Tensor)


@final
class _TensorClass(metaclass=_IsTensor):
    """The stand-in for `torch.Tensor` in a body."""


@final
class _Namespace:
    """Stands for torch or a module in it."""

    def __init__(self, context: EmitContext, module: ModuleType, path: str) -> None:
        self._context: Final = context
        self._module: Final = module
        self._path: Final = path

    def __getattr__(self, name: str) -> Any:
        if self._module is torch and name == "Tensor":
            return _TensorClass
        found = getattr(self._module, name)
        path = f"{self._path}.{name}"
        if isinstance(found, ModuleType):
            return _Namespace(self._context, found, path)
        if isinstance(found, OpOverloadPacket):
            library = self._path.rpartition(".")[2]
            return _Kernel(self._context, name if library == "aten" else f"{library}::{name}")
        if isinstance(found, FunctionType | BuiltinFunctionType | MethodDescriptorType):
            return _function(self._context.code, path)
        if isinstance(found, torch.dtype | torch.memory_format | int | float | bool):
            return found
        raise NotTraceable


def _function(code: Code, path: str) -> Callable[..., _Value]:
    if path.endswith("_"):
        raise NotTraceable  # writes to its argument

    def call(*args: Any, **keywords: Any) -> _Value:
        return _call(code, lambda: _dotted(code, path), args, keywords)

    return call


@final
class _Kernel:
    """Stands for a function of torch's lowest layer, or one of its overloads."""

    def __init__(self, context: EmitContext, name: str) -> None:
        self._context: Final = context
        self._name: Final = name

    def __getattr__(self, overload: str) -> _Kernel:
        return _Kernel(self._context, f"{self._name}.{overload}")

    def __call__(self, *args: Any, **keywords: Any) -> _Value:
        if self._name.endswith("_"):
            raise NotTraceable  # writes to its argument
        callee = partial(self._context.kernel, self._name)
        return _call(self._context.code, callee, args, keywords)


def _dotted(code: Code, path: str) -> ast.expr:
    first, *rest = path.split(".")
    node: ast.expr = code.name(first)
    for name in rest:
        node = code.attribute(node, name)
    return node


def _call(
    code: Code,
    callee: Callable[..., ast.expr],
    args: Sequence[Any],
    keywords: dict[str, Any],
    receiver: tuple[Term, ...] = (),
) -> _Value:
    """Return a call; `callee` makes the function, of the receiver if it is a method."""
    if "out" in keywords:
        raise NotTraceable
    inputs = (*receiver, *(term_of(code, a) for a in (*args, *keywords.values())))
    if not inputs:
        raise NotTraceable  # a term without inputs would be written at each use
    first, last = len(receiver), len(receiver) + len(args)

    def make(*nodes: ast.expr) -> ast.expr:
        named = dict(zip(keywords, nodes[last:], strict=True))
        return code.call(callee(*nodes[:first]), nodes[first:last], named)

    return _Value(code, Term(inputs, make, Form.TENSOR), None)


@final
class _Value:
    """Stands for a tensor or a number: writes down what is done to it."""

    __slots__ = ("code", "term", "ty")

    def __init__(self, code: Code, term: Term, ty: TensorType | None) -> None:
        self.code: Final = code
        self.term: Final = term
        self.ty: Final = ty

    def is_tensor(self) -> bool:
        """Return whether this is a tensor. Raises NotTraceable where only the running
        program determines it."""
        if self.term.form is Form.EITHER:
            raise NotTraceable
        return self.term.is_tensor

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name.endswith("_"):
            raise NotTraceable
        static = self._static(name)
        if static is not None:
            return static
        return _Attribute(self, name)

    def _static(self, name: str) -> Any:
        """Return a property that the type determines."""
        if self.ty is None:
            return None
        match name:
            case "ndim":
                return self.ty.rank
            case "dim":
                return lambda: self.ty.rank if self.ty else 0
            case "dtype" if isinstance(self.ty.dtype, DType):
                return torch_dtype(self.ty.dtype)
            case "shape":
                return _Shape(self)
            case _:
                return None

    def operate(self, node: ast.operator, left: Any, right: Any) -> _Value:
        """Return `left node right`."""
        inputs = [term_of(self.code, left), term_of(self.code, right)]
        return self._made(inputs, lambda a, b: self.code.binary(node, a, b))

    def compare(self, node: ast.cmpop, other: Any) -> _Value:
        """Return `self node other`."""
        inputs = [self.term, term_of(self.code, other)]
        return self._made(inputs, lambda a, b: self.code.compare(node, a, b))

    def __getitem__(self, index: Any) -> _Value:
        if isinstance(index, slice):
            return self._sliced(index)
        inputs = [self.term, term_of(self.code, index)]
        return self._made(inputs, self.code.item)

    def _sliced(self, index: slice) -> _Value:
        parts = (index.start, index.stop, index.step)
        inputs = [self.term, *(term_of(self.code, p) for p in parts if p is not None)]

        def make(value: ast.expr, *nodes: ast.expr) -> ast.expr:
            rest = iter(nodes)
            written = [None if p is None else next(rest) for p in parts]
            return self.code.item(value, self.code.slice(written))

        return self._made(inputs, make)

    def _made(self, inputs: Sequence[Term], make: Make) -> _Value:
        return _Value(self.code, Term(tuple(inputs), make, Form.TENSOR), None)

    def __neg__(self) -> _Value:
        return self._made([self.term], lambda a: self.code.unary(ast.USub(), a))

    def __invert__(self) -> _Value:
        return self._made([self.term], lambda a: self.code.unary(ast.Invert(), a))

    def __eq__(self, other: object) -> Any:
        return self.compare(ast.Eq(), other)

    def __ne__(self, other: object) -> Any:
        return self.compare(ast.NotEq(), other)

    def __lt__(self, other: Any) -> _Value:
        return self.compare(ast.Lt(), other)

    def __le__(self, other: Any) -> _Value:
        return self.compare(ast.LtE(), other)

    def __gt__(self, other: Any) -> _Value:
        return self.compare(ast.Gt(), other)

    def __ge__(self, other: Any) -> _Value:
        return self.compare(ast.GtE(), other)

    def _refuse(self, *_: Any) -> NoReturn:
        raise NotTraceable

    __bool__ = __len__ = __iter__ = __int__ = __float__ = __index__ = __hash__ = _refuse
    __setitem__ = __contains__ = __iadd__ = __isub__ = __imul__ = __itruediv__ = _refuse


def _binary(node: ast.operator, *, swapped: bool) -> Callable[[_Value, Any], _Value]:
    if swapped:
        return lambda self, other: self.operate(node, other, self)
    return lambda self, other: self.operate(node, self, other)


for _name, _node in {
    "add": ast.Add(),
    "sub": ast.Sub(),
    "mul": ast.Mult(),
    "truediv": ast.Div(),
    "floordiv": ast.FloorDiv(),
    "mod": ast.Mod(),
    "pow": ast.Pow(),
    "matmul": ast.MatMult(),
    "and": ast.BitAnd(),
    "or": ast.BitOr(),
    "xor": ast.BitXor(),
}.items():
    setattr(_Value, f"__{_name}__", _binary(_node, swapped=False))
    setattr(_Value, f"__r{_name}__", _binary(_node, swapped=True))


@final
class _Attribute:
    """`value.name`, before it is known whether it is called."""

    __slots__ = ("name", "value")

    def __init__(self, value: _Value, name: str) -> None:
        self.value: Final = value
        self.name: Final = name

    def __call__(self, *args: Any, **keywords: Any) -> _Value:
        code = self.value.code

        def method(value: ast.expr) -> ast.expr:
            return code.attribute(value, self.name)

        return _call(code, method, args, keywords, (self.value.term,))

    def _refuse(self, *_: object) -> NoReturn:
        raise NotTraceable

    __bool__ = __eq__ = __ne__ = __hash__ = __iter__ = __len__ = _refuse

    def term(self) -> Term:
        """Return the attribute itself, such as a device."""
        code = self.value.code
        source = self.value.term
        return Term((source,), lambda a: code.attribute(a, self.name), Form.OTHER)


@final
class _Shape:
    """`value.shape` of an operand: sizes that the type knows are plain integers."""

    __slots__ = ("value",)

    def __init__(self, value: _Value) -> None:
        self.value: Final = value

    def __getitem__(self, index: int) -> Any:
        assert self.value.ty is not None
        dim = self.value.ty.shape[operator.index(index)]
        if dim.constant is not None:
            return dim.constant
        code = self.value.code
        source = self.value.term

        def make(tensor: ast.expr) -> ast.expr:
            return code.item(code.attribute(tensor, "shape"), code.literal(index))

        return _Value(code, Term((source,), make, Form.NUMBER), None)

    def __len__(self) -> int:
        assert self.value.ty is not None
        return self.value.ty.rank

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def _refuse(self, *_: object) -> NoReturn:
        raise NotTraceable

    __eq__ = __ne__ = __hash__ = _refuse


def term_of(code: Code, value: Any) -> Term:
    """Return a value that a body passes on as a term: a stand-in, a static value or a structure of
    these."""
    match value:
        case _Value():
            return value.term
        case _Attribute():
            return value.term()
        case _Shape():
            source = value.value.term
            return Term((source,), lambda a: code.attribute(a, "shape"), Form.OTHER)
        case Term():
            return value
        case tuple() | list():
            parts = [term_of(code, v) for v in value]
            many = code.tuple if isinstance(value, tuple) else code.list
            return Term(tuple(parts), lambda *nodes: many(nodes), Form.OTHER)
        case slice():
            return _slice(code, value)
        case _:
            return leaf(_literal(code, value), Form.OTHER)


def _slice(code: Code, value: slice) -> Term:
    """A slice inside a tuple is written `slice(a, b)`, since printers of Python differ there."""
    parts = [term_of(code, v) for v in (value.start, value.stop, value.step)]
    return Term(tuple(parts), lambda *nodes: code.call(code.name("slice"), nodes), Form.OTHER)


def _literal(code: Code, value: Any) -> Callable[[], ast.expr]:
    if value is Ellipsis or value is None or isinstance(value, bool | int | str):
        return lambda: code.literal(value)
    if isinstance(value, float) and value == value and abs(value) != float("inf"):
        return lambda: code.literal(value)
    if isinstance(value, float):
        return lambda: code.call(code.name("float"), (code.literal(str(value)),))
    if isinstance(value, torch.dtype):
        return lambda: code.attribute(code.name("torch"), DTYPE_NAMES[value])
    if isinstance(value, torch.memory_format):
        return lambda: _dotted(code, str(value))
    raise NotTraceable
