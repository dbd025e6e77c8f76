"""The arithmetic that pointwise bodies are written over.

A body is written once; torch, torch's text, Triton's text, C++'s text and the cost model each
supply this arithmetic and so read the body in their own way. The last methods are made of the
others: a supplier that derives from `Scalars` has them, and one that has a faster way, as torch
has a kernel for each, gives its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final, Protocol

from ..types import UNIT, DType, SizeType, Type, float32, int64, is_float, known_dtype

_ROOT_HALF: Final = math.sqrt(0.5)
_ROOT_TWO_OVER_PI: Final = math.sqrt(2.0 / math.pi)
_CUBIC: Final = 0.044715
_FAR: Final = 1e8
"""Above this a number and the root of its square plus or minus 1 are equal, in every float."""


class Scalars(Protocol):
    """The arithmetic of a pointwise body. The supplier chooses the representation of values."""

    def const(self, value: float, /) -> Any: ...
    def add(self, a: Any, b: Any, /) -> Any: ...
    def sub(self, a: Any, b: Any, /) -> Any: ...
    def mul(self, a: Any, b: Any, /) -> Any: ...
    def div(self, a: Any, b: Any, /) -> Any: ...
    def floordiv(self, a: Any, b: Any, /) -> Any: ...
    def mod(self, a: Any, b: Any, /) -> Any: ...
    def pow(self, a: Any, b: Any, /) -> Any: ...
    def neg(self, a: Any, /) -> Any: ...
    def abs(self, a: Any, /) -> Any: ...
    def sign(self, a: Any, /) -> Any: ...
    def minimum(self, a: Any, b: Any, /) -> Any: ...
    def maximum(self, a: Any, b: Any, /) -> Any: ...
    def logical_not(self, a: Any, /) -> Any: ...
    def bit_not(self, a: Any, /) -> Any: ...
    def where(self, condition: Any, a: Any, b: Any, /) -> Any: ...
    def isnan(self, a: Any, /) -> Any: ...
    def isfinite(self, a: Any, /) -> Any: ...
    def cast(self, a: Any, dtype: Any, /) -> Any: ...

    def function(self, name: str, a: Any, /) -> Any:
        """Return a function of a real number, named like the methods below that call it."""
        ...

    def rounded(self, name: str, a: Any, /) -> Any:
        """Return a whole number near a value: `name` is `floor`, `ceil` or `round`."""
        ...

    def compared(self, name: str, a: Any, b: Any, /) -> Any:
        """Return whether a comparison holds: `name` is `eq`, `ne`, `lt`, `le`, `gt` or `ge`."""
        ...

    def logical(self, name: str, a: Any, b: Any, /) -> Any:
        """Return two truth values combined: `name` is `and`, `or` or `xor`."""
        ...

    def bits(self, a: Any, operator: str, b: Any, /) -> Any:
        """Return `a operator b` of two integers or bools bit by bit, `operator` one of
        `& | ^ << >>`."""
        ...

    def exp(self, a: Any, /) -> Any:
        return self.function("exp", a)

    def expm1(self, a: Any, /) -> Any:
        return self.function("expm1", a)

    def log(self, a: Any, /) -> Any:
        return self.function("log", a)

    def log1p(self, a: Any, /) -> Any:
        return self.function("log1p", a)

    def sqrt(self, a: Any, /) -> Any:
        return self.function("sqrt", a)

    def rsqrt(self, a: Any, /) -> Any:
        return self.function("rsqrt", a)

    def sin(self, a: Any, /) -> Any:
        return self.function("sin", a)

    def cos(self, a: Any, /) -> Any:
        return self.function("cos", a)

    def tan(self, a: Any, /) -> Any:
        return self.function("tan", a)

    def sinh(self, a: Any, /) -> Any:
        return self.function("sinh", a)

    def cosh(self, a: Any, /) -> Any:
        return self.function("cosh", a)

    def tanh(self, a: Any, /) -> Any:
        return self.function("tanh", a)

    def asin(self, a: Any, /) -> Any:
        return self.function("asin", a)

    def acos(self, a: Any, /) -> Any:
        return self.function("acos", a)

    def atan(self, a: Any, /) -> Any:
        return self.function("atan", a)

    def erf(self, a: Any, /) -> Any:
        return self.function("erf", a)

    def sigmoid(self, a: Any, /) -> Any:
        return self.function("sigmoid", a)

    def floor(self, a: Any, /) -> Any:
        return self.rounded("floor", a)

    def ceil(self, a: Any, /) -> Any:
        return self.rounded("ceil", a)

    def round(self, a: Any, /) -> Any:
        return self.rounded("round", a)

    def eq(self, a: Any, b: Any, /) -> Any:
        return self.compared("eq", a, b)

    def ne(self, a: Any, b: Any, /) -> Any:
        return self.compared("ne", a, b)

    def lt(self, a: Any, b: Any, /) -> Any:
        return self.compared("lt", a, b)

    def le(self, a: Any, b: Any, /) -> Any:
        return self.compared("le", a, b)

    def gt(self, a: Any, b: Any, /) -> Any:
        return self.compared("gt", a, b)

    def ge(self, a: Any, b: Any, /) -> Any:
        return self.compared("ge", a, b)

    def logical_and(self, a: Any, b: Any, /) -> Any:
        return self.logical("and", a, b)

    def logical_or(self, a: Any, b: Any, /) -> Any:
        return self.logical("or", a, b)

    def logical_xor(self, a: Any, b: Any, /) -> Any:
        return self.logical("xor", a, b)

    def bit_and(self, a: Any, b: Any, /) -> Any:
        return self.bits(a, "&", b)

    def bit_or(self, a: Any, b: Any, /) -> Any:
        return self.bits(a, "|", b)

    def bit_xor(self, a: Any, b: Any, /) -> Any:
        return self.bits(a, "^", b)

    def sub_product(self, a: Any, b: Any, c: Any, /) -> Any:
        """Return `a - b * c`."""
        return self.sub(a, self.mul(b, c))

    def relu(self, a: Any, /) -> Any:
        """Return the larger of the value and 0."""
        return self.maximum(a, self.const(0))

    def leaky_relu(self, a: Any, slope: float, /) -> Any:
        """Return the value where it is positive, else it times the slope."""
        return self.where(self.gt(a, self.const(0.0)), a, self.mul(a, self.const(slope)))

    def elu(self, a: Any, alpha: float, /) -> Any:
        """Return the value where it is positive, else `alpha * expm1(a)`."""
        # The arm not taken is kept at 0, where a large exponential cannot overflow.
        below = self.expm1(self.minimum(a, self.const(0.0)))
        return self.where(self.gt(a, self.const(0.0)), a, self.mul(self.const(alpha), below))

    def gelu(self, a: Any, approximate: str, /) -> Any:
        """Return the value times the normal distribution function at it, or, for "tanh", times an
        approximation of it."""
        return self.mul(a, _normal_share(self, a, approximate))

    def silu(self, a: Any, /) -> Any:
        """Return the value times its sigmoid."""
        return self.mul(a, self.sigmoid(a))

    def softplus(self, a: Any, beta: float, threshold: float, /) -> Any:
        """Return `log1p(exp(beta * a)) / beta`; the value itself where `beta * a > threshold`."""
        scaled = self.mul(a, self.const(beta))
        soft = self.div(self.log1p(self.exp(scaled)), self.const(beta))
        return self.where(self.gt(scaled, self.const(threshold)), a, soft)

    def asinh(self, a: Any, /) -> Any:
        """Return the inverse of `sinh`, exact near 0."""
        size = self.abs(a)
        square = self.mul(size, size)
        one = self.const(1.0)
        rest = self.div(square, self.add(one, self.sqrt(self.add(square, one))))
        near = self.log1p(self.add(size, rest))
        found = self.where(self.gt(size, self.const(_FAR)), _log_of_double(self, size), near)
        return self.where(self.lt(a, self.const(0.0)), self.neg(found), found)

    def acosh(self, a: Any, /) -> Any:
        """Return the inverse of `cosh`, exact near 1; not-a-number below."""
        above = self.sub(a, self.const(1.0))
        root = self.mul(self.sqrt(above), self.sqrt(self.add(a, self.const(1.0))))
        near = self.log1p(self.add(above, root))
        return self.where(self.gt(a, self.const(_FAR)), _log_of_double(self, a), near)

    def atanh(self, a: Any, /) -> Any:
        """Return the inverse of `tanh`, exact near 0; not-a-number outside of -1 to 1."""
        size = self.abs(a)
        ratio = self.div(self.add(size, size), self.sub(self.const(1.0), size))
        found = self.mul(self.const(0.5), self.log1p(ratio))
        return self.where(self.lt(a, self.const(0.0)), self.neg(found), found)

    def tanh_grad(self, g: Any, y: Any, /) -> Any:
        """Return `g` times the derivative of `tanh` where its value is `y`."""
        return self.mul(g, self.sub(self.const(1.0), self.mul(y, y)))

    def sigmoid_grad(self, g: Any, y: Any, /) -> Any:
        """Return `g` times the derivative of `sigmoid` where its value is `y`."""
        return self.mul(g, self.mul(y, self.sub(self.const(1.0), y)))

    def relu_grad(self, g: Any, y: Any, /) -> Any:
        """Return `g` where the value `y` of `relu` is positive, else 0."""
        return self.where(self.le(y, self.const(0.0)), self.const(0.0), g)

    def leaky_relu_grad(self, g: Any, a: Any, slope: float, /) -> Any:
        """Return `g` times the derivative of `leaky_relu` at `a`."""
        return self.where(self.gt(a, self.const(0.0)), g, self.mul(g, self.const(slope)))

    def elu_grad(self, g: Any, a: Any, alpha: float, /) -> Any:
        """Return `g` times the derivative of `elu` at `a`."""
        slope = self.mul(self.const(alpha), self.exp(self.minimum(a, self.const(0.0))))
        return self.where(self.gt(a, self.const(0.0)), g, self.mul(g, slope))

    def gelu_grad(self, g: Any, a: Any, approximate: str, /) -> Any:
        """Return `g` times the derivative of `gelu` at `a`."""
        share = _normal_share(self, a, approximate)
        square = self.mul(a, a)
        if approximate == "none":
            bell = self.exp(self.mul(self.const(-0.5), square))
            density = self.mul(bell, self.const(0.5 * _ROOT_TWO_OVER_PI))
        else:
            bend = self.add(self.const(1.0), self.mul(self.const(3.0 * _CUBIC), square))
            steep = self.mul(self.const(2.0 * _ROOT_TWO_OVER_PI), bend)
            density = self.mul(self.mul(share, self.sub(self.const(1.0), share)), steep)
        return self.mul(g, self.add(share, self.mul(a, density)))

    def silu_grad(self, g: Any, a: Any, /) -> Any:
        """Return `g` times the derivative of `silu` at `a`."""
        share = self.sigmoid(a)
        rest = self.mul(a, self.sub(self.const(1.0), share))
        return self.mul(g, self.mul(share, self.add(self.const(1.0), rest)))

    def softplus_grad(self, g: Any, a: Any, beta: float, threshold: float, /) -> Any:
        """Return `g` times the derivative of `softplus` at `a`."""
        scaled = self.mul(a, self.const(beta))
        linear = self.gt(scaled, self.const(threshold))
        return self.where(linear, g, self.mul(g, self.sigmoid(scaled)))


def compute_dtype(types: Sequence[Type]) -> DType:
    """Return the dtype in which a pointwise body computes its constants: the operands' float dtype,
    else that of the last operand (the first may be the condition of a `where`)."""
    given = [t for t in types if t != UNIT]  # the empty tuple stands for an omitted operand
    dtypes = [int64 if isinstance(t, SizeType) else known_dtype(t) for t in given]
    return next((d for d in dtypes if is_float(d)), dtypes[-1] if dtypes else float32)


def _log_of_double(k: Scalars, a: Any) -> Any:
    """Return the logarithm of twice the value, which need not be finite."""
    return k.add(k.log(a), k.const(math.log(2.0)))


def _normal_share(k: Scalars, a: Any, approximate: str) -> Any:
    """Return the normal distribution function at `a`, or its approximation."""
    if approximate == "none":
        bent = k.erf(k.mul(a, k.const(_ROOT_HALF)))
    else:
        cube = k.mul(k.mul(a, a), a)
        inner = k.add(a, k.mul(k.const(_CUBIC), cube))
        bent = k.tanh(k.mul(k.const(_ROOT_TWO_OVER_PI), inner))
    return k.mul(k.const(0.5), k.add(k.const(1.0), bent))
