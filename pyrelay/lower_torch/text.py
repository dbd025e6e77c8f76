"""Pointwise bodies as generated torch code: the meaning of `Scalars` that the host emits.

Operators and methods are written where torch has them, since `a * b` and `x.tanh()` are its
cheapest calls. A number that meets a tensor is a 0-d tensor made once: a torch call with a Python
number takes 1.5 us more. Rank-0 ints and bools that may be either compute with Python operators,
which work for both.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, TypeAlias, final

import torch

from ..ir.types import DType, DTypeKind, bool_
from .activations import TorchFunctions
from .constants import torch_dtype
from .terms import EmitContext, Form, Number, Term, leaf

Binary: TypeAlias = "Callable[[TextScalars, Term, Term], Term]"


def _operator(node: ast.operator, fold: Callable[[Any, Any], Any], may_leave: str = "") -> Binary:
    """Return an arithmetic operator; `may_leave` is its name if it may leave the range of integers
    that its operands are in."""

    def binary(self: TextScalars, a: Term, b: Term, /) -> Term:
        known = self.folded(fold, a, b)
        if known is not None:
            return known
        a, b = self.meet(a, b)
        code = self.context.code

        def make(x: ast.expr, y: ast.expr) -> ast.expr:
            return code.binary(node, x, y)

        if may_leave and self.integer is not None:
            return self.in_range(may_leave, make, a, b)
        return Term((a, b), make, _joint(a, b), a.dtype or b.dtype)

    return binary


def _extreme(name: str, python: str) -> Binary:
    def extreme(self: TextScalars, a: Term, b: Term, /) -> Term:
        if a.is_tensor or b.is_tensor:
            return self.method(name, self.tensor(a), self.tensor(b))
        code = self.context.code
        return Term(
            (a, b), lambda x, y: code.call(code.name(python), (x, y)), _joint(a, b), a.dtype
        )

    return extreme


_COMPARISONS: Final = {
    "eq": ast.Eq(),
    "ne": ast.NotEq(),
    "lt": ast.Lt(),
    "le": ast.LtE(),
    "gt": ast.Gt(),
    "ge": ast.GtE(),
}
_LOGICAL: Final[dict[str, tuple[ast.operator, Callable[[Any, Any], Any]]]] = {
    "and": (ast.BitAnd(), operator.and_),
    "or": (ast.BitOr(), operator.or_),
    "xor": (ast.BitXor(), operator.xor),
}


_BITS: Final = {
    "&": _operator(ast.BitAnd(), operator.and_),
    "|": _operator(ast.BitOr(), operator.or_),
    "^": _operator(ast.BitXor(), operator.xor),
}


@final
class TextScalars(TorchFunctions):
    """The arithmetic of one call, as terms; numbers take `dtype` where they meet a tensor."""

    def __init__(self, context: EmitContext, dtype: DType, integer: DType | None = None) -> None:
        """`integer` is the dtype of a result that is one integer and may leave its range."""
        self.context: Final = context
        self.integer: Final = integer
        self._dtype: Final = dtype

    add = _operator(ast.Add(), operator.add, "add")
    sub = _operator(ast.Sub(), operator.sub, "sub")
    mul = _operator(ast.Mult(), operator.mul, "mul")
    div = _operator(ast.Div(), operator.truediv)
    floordiv = _operator(ast.FloorDiv(), operator.floordiv, "floordiv")
    mod = _operator(ast.Mod(), operator.mod)
    minimum = _extreme("minimum", "min")
    maximum = _extreme("maximum", "max")

    def function(self, name: str, a: Term, /) -> Term:
        """Return a method of tensors that is a function of a real number."""
        return self.method(name, a)

    def rounded(self, name: str, a: Term, /) -> Term:
        """Return a whole number near a value; integers are whole."""
        is_whole = a.dtype is not None and a.dtype.kind is not DTypeKind.FLOAT
        return a if is_whole else self.method(name, a)

    def compared(self, name: str, a: Term, b: Term, /) -> Term:
        """Return whether a comparison holds."""
        if a.known is not None and b.known is not None:
            return self.const(getattr(operator, name)(a.known, b.known))
        a, b = self.meet(a, b)
        code, node = self.context.code, _COMPARISONS[name]
        return Term((a, b), lambda x, y: code.compare(node, x, y), _joint(a, b), bool_)

    def logical(self, name: str, a: Term, b: Term, /) -> Term:
        """Return two truth values combined."""
        node, fold = _LOGICAL[name]
        if a.known is not None and b.known is not None:
            return self.const(fold(bool(a.known), bool(b.known)))
        a, b = self.meet(self.truth(a), self.truth(b))
        code = self.context.code
        if a.is_bool and b.is_bool:
            return Term((a, b), lambda x, y: code.binary(node, x, y), _joint(a, b), bool_)
        return self.called(f"logical_{name}", a, b, dtype=bool_)

    def bits(self, a: Term, operator: str, b: Term, /) -> Term:
        """Return two integers or bools combined bit by bit."""
        return _BITS[operator](self, a, b)

    def bit_not(self, a: Term, /) -> Term:
        """Return each bit of a value the other way round."""
        if a.is_bool:
            return self.logical_not(a)
        code = self.context.code
        return Term((a,), lambda x: code.unary(ast.Invert(), x), a.form, a.dtype)

    def folded(self, fold: Callable[..., Any], *operands: Term) -> Term | None:
        """Return the result of known numbers; None where that is for the running program to
        find."""
        numbers = [t.known for t in operands]
        if None in numbers:
            return None
        try:
            value = fold(*numbers)
        except ArithmeticError:
            return None
        if self.integer is not None and not _is_in_range(value, self.integer):
            return None
        return self.const(value)

    def in_range(self, name: str, make: Callable[..., ast.expr], *operands: Term) -> Term:
        """Return an integer that is kept in its range: one of 64 bits stops the program where it
        leaves it, others wrap around."""
        dtype, code = self.integer, self.context.code
        assert dtype is not None
        is_number = all(t.form is Form.NUMBER for t in operands)
        is_long = dtype.name == "int64"

        def test(value: ast.expr) -> ast.expr:
            outside = code.outside(value, *_range(dtype))
            kind = code.call(code.name("type"), (value,))
            if is_number:
                return outside
            if is_long:
                is_other = code.compare(ast.IsNot(), kind, code.name("int"))
                return code.either(is_other, outside)
            return code.both((code.compare(ast.Is(), kind, code.name("int")), outside))

        def checked(*nodes: ast.expr) -> ast.expr:
            def instead(value: ast.expr) -> ast.expr:
                if is_long:
                    return code.call(code.name("exactly"), (code.literal(name), *nodes))
                return code.call(code.name("fitted"), (value, _dtype(self.context, dtype)))

            return self.context.bind_unless(make(*nodes), name, test, instead)

        form = Form.NUMBER if is_number or is_long else Form.EITHER
        return Term(operands, checked, form, dtype)

    def const(self, value: Number, /) -> Term:
        """Return a number."""
        code = self.context.code
        return Term((), lambda: code.literal(value), Form.NUMBER, None, value)

    def pow(self, a: Term, b: Term, /) -> Term:
        """Return a power; a literal exponent stays one, for torch is faster and exact there."""
        if self.integer is not None or not (a.is_tensor or b.is_tensor):
            dtype = self.integer or self._dtype
            target = leaf(lambda: _dtype(self.context, dtype), Form.OTHER)
            return self.called("integer_power", a, b, target, dtype=dtype, form=Form.NUMBER)
        if b.literal is None or not a.is_tensor:
            return self.method("pow", self.tensor(a), b if a.is_tensor else self.tensor(b))
        if b.literal == 2:
            return self.method("square", a)
        return self.method("pow", a, self.const(b.literal))

    def neg(self, a: Term, /) -> Term:
        """Return `-a`."""
        known = self.folded(operator.neg, a)
        if known is not None:
            return known
        code = self.context.code
        if self.integer is not None:
            return self.in_range("neg", lambda x: code.unary(ast.USub(), x), a)
        return Term((a,), lambda x: code.unary(ast.USub(), x), a.form, a.dtype)

    def abs(self, a: Term, /) -> Term:
        """Return the absolute value."""
        code = self.context.code
        if self.integer is not None:
            return self.in_range("abs", lambda x: code.call(code.name("abs"), (x,)), a)
        return self.method("abs", a) if a.is_tensor else self.called("abs", a)

    def sign(self, a: Term, /) -> Term:
        """Return -1, 0 or 1 by sign."""
        return self.method("sign", a) if a.is_tensor else self.called("sign_of", a)

    def logical_not(self, a: Term, /) -> Term:
        """Return whether the value is zero."""
        code = self.context.code
        if not a.is_tensor:
            return Term((a,), lambda x: code.unary(ast.Not(), x), Form.NUMBER, bool_)
        if a.is_bool:
            return Term((a,), lambda x: code.unary(ast.Invert(), x), a.form, bool_)
        return self.called("logical_not", a, dtype=bool_)

    def sub_product(self, a: Term, b: Term, c: Term, /) -> Term:
        """Return `a - b * c`, in one kernel where all are tensors."""
        if not a.is_tensor or not b.is_tensor or (c.known is None and not c.is_tensor):
            return self.sub(a, self.mul(b, c))
        code, c = self.context.code, self.tensor(c)

        def make(x: ast.expr, y: ast.expr, z: ast.expr) -> ast.expr:
            callee = code.attribute(code.name("torch"), "addcmul")
            return code.call(callee, (x, y, z), {"value": code.literal(-1)})

        return Term((a, b, c), make, Form.TENSOR, a.dtype)

    def relu(self, a: Term, /) -> Term:
        """Return the larger of the value and 0."""
        return self.method("relu", a) if a.is_tensor else self.maximum(a, self.const(0))

    def tensor(self, a: Term, /) -> Term:
        """Return the term as one that is surely a tensor."""
        if a.is_tensor:
            return a
        if a.known is not None:
            return self._scalar(a.known, bool_ if isinstance(a.known, bool) else self._dtype)
        return self._converted(a, a.dtype or self._dtype)

    def functional(self, name: str, /, *args: Term | float, **named: str) -> Term:
        """Return a call of `torch.nn.functional`."""
        code = self.context.code

        def callee() -> ast.expr:
            module = code.attribute(code.attribute(code.name("torch"), "nn"), "functional")
            return code.attribute(module, name)

        return self._called(callee, args, named)

    def aten(self, name: str, /, *args: Term | float, **named: str) -> Term:
        """Return a call of a function of torch's lowest layer."""
        return self._called(lambda: self.context.kernel(name), args, named)

    def _called(
        self, callee: Callable[[], ast.expr], args: Sequence[Term | float], named: dict[str, str]
    ) -> Term:
        """Return a call on tensors and literals."""
        code = self.context.code
        inputs = tuple(
            a if isinstance(a, Term) else leaf(partial(code.literal, a), Form.OTHER) for a in args
        )

        def make(*nodes: ast.expr) -> ast.expr:
            return code.call(callee(), nodes, {k: code.literal(v) for k, v in named.items()})

        return Term(inputs, make, Form.TENSOR, inputs[0].dtype)

    def where(self, condition: Term, a: Term, b: Term, /) -> Term:
        """Return `a` where the condition holds, else `b`."""
        code = self.context.code
        if not condition.is_tensor and not a.is_tensor and not b.is_tensor:
            return Term(
                (condition, a, b),
                lambda c, x, y: code.conditional(c, x, y),
                _joint(a, b),
                a.dtype or b.dtype,
            )
        a, b = self.tensor(a), self.tensor(b)
        if not condition.is_tensor:
            condition = self._converted(condition, bool_)
        return self.called("where", condition, a, b, dtype=a.dtype)

    def isnan(self, a: Term, /) -> Term:
        """Return whether the value is not a number."""
        return self._classified("isnan", a)

    def isfinite(self, a: Term, /) -> Term:
        """Return whether the value is neither infinite nor not a number."""
        return self._classified("isfinite", a)

    def _classified(self, name: str, a: Term) -> Term:
        if a.is_tensor:
            code = self.context.code
            return Term((a,), lambda x: code.method(x, name), Form.TENSOR, bool_)
        return self.const(name == "isfinite")

    def cast(self, a: Term, dtype: DType, /) -> Term:
        """Return the value in another dtype."""
        if a.dtype == dtype:
            return a
        if a.known is not None:
            return self._cast_literal(a, a.known, dtype)
        if self.integer is not None and a.dtype is not None and a.dtype.kind is DTypeKind.FLOAT:
            return self._converter("truncated", a, dtype)
        if a.is_tensor:
            code = self.context.code
            return Term(
                (a,), lambda x: code.method(x, "to", _dtype(self.context, dtype)), a.form, dtype
            )
        return self._cast_number(a, dtype)

    def _cast_literal(self, a: Term, value: Number, dtype: DType) -> Term:
        match dtype.kind:
            case DTypeKind.FLOAT:
                return self._scalar(value, dtype)
            case DTypeKind.INT if math.isfinite(value) and _is_in_range(int(value), dtype):
                return self.const(int(value))
            case DTypeKind.INT:
                is_float = isinstance(value, float)
                return self._converter("truncated" if is_float else "fitted", a, dtype)
            case DTypeKind.BOOL:
                return self.const(bool(value))

    def _converter(self, name: str, a: Term, dtype: DType) -> Term:
        """Return a call of a function that makes an integer of a number."""
        target = leaf(lambda: _dtype(self.context, dtype), Form.OTHER)
        form = a.form if name == "cast_integer" else Form.NUMBER
        return self.called(name, a, target, dtype=dtype, form=form)

    def _cast_number(self, a: Term, dtype: DType) -> Term:
        match dtype.kind:
            case DTypeKind.FLOAT:
                return self._converted(a, dtype)
            case DTypeKind.INT if a.form is Form.NUMBER and dtype.name == "int64":
                return self.called("int", a, dtype=dtype, form=Form.NUMBER)
            case DTypeKind.INT:
                return self._converter("cast_integer", a, dtype)
            case DTypeKind.BOOL:
                return self.called("bool", a, dtype=dtype, form=Form.NUMBER)

    def meet(self, a: Term, b: Term) -> tuple[Term, Term]:
        """Return two operands, a literal that meets a tensor made a 0-d tensor."""
        if a.known is not None and b.is_tensor:
            return self.tensor(a), b
        if b.known is not None and a.is_tensor:
            return a, self.tensor(b)
        return a, b

    def truth(self, a: Term) -> Term:
        """Return a value as a bool, tensors as they are."""
        if a.is_tensor or a.is_bool:
            return a
        return self.called("bool", a, dtype=bool_, form=Form.NUMBER)

    def method(self, name: str, a: Term, *rest: Term) -> Term:
        """Return a method of a tensor."""
        code = self.context.code
        inputs = (self.tensor(a), *rest)
        return Term(
            inputs, lambda x, *more: code.method(x, name, *more), Form.TENSOR, inputs[0].dtype
        )

    def called(
        self, name: str, *inputs: Term, dtype: DType | None = None, form: Form | None = None
    ) -> Term:
        """Return a call of a function of torch, of Python or of `scalars`, by its name."""
        code = self.context.code
        in_torch = name in _TORCH
        kind = form or (Form.TENSOR if in_torch else inputs[0].form)

        def make(*args: ast.expr) -> ast.expr:
            callee = code.attribute(code.name("torch"), name) if in_torch else code.name(name)
            return code.call(callee, args)

        return Term(inputs, make, kind, dtype or inputs[0].dtype)

    def _scalar(self, value: Number, dtype: DType) -> Term:
        return leaf(lambda: self.context.scalar(value, dtype), Form.TENSOR, dtype)

    def _converted(self, a: Term, dtype: DType) -> Term:
        return converted(self.context, a, dtype)


_TORCH: Final = ("logical_and", "logical_or", "logical_xor", "logical_not", "where")


def converted(context: EmitContext, a: Term, dtype: DType) -> Term:
    """Return a number as a 0-d tensor at run time, and a tensor in the dtype."""
    code = context.code

    def make(x: ast.expr) -> ast.expr:
        return code.call(code.name("tensor_of"), (x, _dtype(context, dtype), code.name("device")))

    return Term((a,), make, Form.TENSOR, dtype)


def _dtype(context: EmitContext, dtype: DType) -> ast.expr:
    return context.code.attribute(context.code.name("torch"), dtype.name)


def _range(dtype: DType) -> tuple[int, int]:
    """Return the lowest and the highest integer of a dtype."""
    info = torch.iinfo(torch_dtype(dtype))
    return info.min, info.max


def _is_in_range(value: Number, dtype: DType) -> bool:
    lowest, highest = _range(dtype)
    return lowest <= value <= highest


def _joint(a: Term, b: Term) -> Form:
    if a.is_tensor or b.is_tensor:
        return Form.TENSOR
    return Form.NUMBER if a.form is b.form is Form.NUMBER else Form.EITHER
