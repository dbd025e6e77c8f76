"""The functions of real numbers that kernels call, in Triton's own primitives.

The text of a kernel imports them from here, so they are written once, and run alike in Triton's
interpreter, which has no device library, and on every device. Operands are blocks or numbers of
float32 or float64; half types are widened before. NaN gives NaN, infinities give limits.

Bounds are in units in the last place (ulp) of the result, against exact values, and are measured
by `tests/kernels/test_math.py` where results are normal numbers. Those of float32 hold on a device
but for its quotients `a / b`, which may be one ulp worse there than in the interpreter.

    function      float32   float64            function      float32   float64
    exp           1         1 (Triton's)       atan          2         2
    expm1         2         4                  asin, acos    4         4
    log1p         4         3                  sinh          4         4
    tanh          4         5                  cosh          3         3
    sigmoid       3         3                  tan           3         3 (of Triton's sin, cos)
    power         1         2 + |y log2(x)|

`log`, `erf`, `sin`, `cos`, `floor` and `ceil` are Triton's own (1 to 2 ulp), the square root is
rounded correctly. Coefficients are Chebyshev fits made for these intervals.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def _two_to(n: tl.tensor) -> tl.tensor:
    """Return 2**n in float32, for an int32 from -126 to 127."""
    return ((n + 127) << 23).to(tl.float32, bitcast=True)


@triton.jit
def _reduced(x: tl.tensor) -> tuple[tl.tensor, tl.tensor]:
    """Return a whole `n` and `r` with `x = n log(2) + r` and `|r| <= log(2) / 2`, in float32."""
    n = tl.floor(x * 1.4426950408889634 + 0.5)
    # The first constant has few bits, so that its product with n is exact.
    return n.to(tl.int32), (x - n * 0.693359375) - n * -2.1219444005469057e-4


@triton.jit
def _expm1_near_zero(r: tl.tensor) -> tl.tensor:
    """Return exp(r) - 1 in float32, for `|r| <= log(2) / 2`."""
    q = 1.9890990824673654e-4 * r + 1.3933649996309251e-3
    q = q * r + 8.3333109254809e-3
    q = q * r + 4.1666464925285904e-2
    q = q * r + 1.6666666681623232e-1
    q = q * r + 0.5
    return q * (r * r) + r


@triton.jit
def exp(x: tl.tensor) -> tl.tensor:
    """Return e to the power of x."""
    if x.dtype == tl.float64:
        y = tl.exp(x)
    else:
        n, r = _reduced(tl.minimum(tl.maximum(x, -104.0), 89.0))
        # In two steps, since 2**n itself may be too large or too small.
        half = n >> 1
        grown = (_expm1_near_zero(r) + 1.0) * _two_to(half) * _two_to(n - half)
        y = tl.where(x == x, grown, x)
    return y


@triton.jit
def expm1(x: tl.tensor) -> tl.tensor:
    """Return e to the power of x, less 1, exact near 0."""
    if x.dtype == tl.float64:
        # Kahan: the errors of exp and log cancel in the quotient.
        u = tl.exp(x)
        near = (u - 1.0) * (x / tl.log(tl.where(u == 1.0, 2.0, u)))
        near = tl.where(u == 1.0, x, near)
        y = tl.where((x < -0.5) | (x > 1.0), u - 1.0, near)
    else:
        n, r = _reduced(tl.minimum(tl.maximum(x, -26.0), 89.0))
        # Half of it, since 2**128 is too large and their difference is not.
        scale = _two_to(n - 1)
        grown = (scale * _expm1_near_zero(r) + (scale - 0.5)) * 2.0
        grown = tl.where(n == 0, _expm1_near_zero(r), grown)
        y = tl.where(x == x, grown, x)
    return y


@triton.jit
def log1p(x: tl.tensor) -> tl.tensor:
    """Return the natural logarithm of 1 + x, exact near 0."""
    u = 1.0 + x
    # What the sum lost comes back as the first term of the series around it.
    lost = tl.where(tl.abs(x) < 1.0, x - (u - 1.0), 1.0 - (u - x))
    y = tl.log(u) + lost / u
    return tl.where((u == 0.0) | (u == float("inf")), tl.log(u), y)


@triton.jit
def sigmoid(x: tl.tensor) -> tl.tensor:
    """Return 1 / (1 + exp(-x))."""
    return 1.0 / (1.0 + exp(-x))


@triton.jit
def tanh(x: tl.tensor) -> tl.tensor:
    """Return the hyperbolic tangent."""
    size = tl.abs(x)
    t = expm1(2.0 * tl.minimum(size, 20.0))
    y = tl.where(size < 20.0, t / (t + 2.0), 1.0)
    y = tl.where(x < 0.0, -y, y)
    return tl.where(x == x, y, x)


@triton.jit
def sinh(x: tl.tensor) -> tl.tensor:
    """Return the hyperbolic sine."""
    size = tl.abs(x)
    t = expm1(tl.minimum(size, 20.0))
    root = exp(0.5 * size)
    y = tl.where(size < 20.0, 0.5 * (t + t / (t + 1.0)), (0.5 * root) * root)
    return tl.where(x < 0.0, -y, y)


@triton.jit
def cosh(x: tl.tensor) -> tl.tensor:
    """Return the hyperbolic cosine."""
    root = exp(0.5 * tl.abs(x))
    grown = exp(tl.minimum(tl.abs(x), 20.0))
    return tl.where(tl.abs(x) < 20.0, 0.5 * grown + 0.5 / grown, (0.5 * root) * root)


@triton.jit
def tan(x: tl.tensor) -> tl.tensor:
    """Return the tangent, in radians."""
    return tl.sin(x) / tl.cos(x)


@triton.jit
def _atan_near_zero(x: tl.tensor) -> tl.tensor:
    """Return the angle of a tangent of at most `tan(pi / 8)`."""
    z = x * x
    if x.dtype == tl.float64:
        p = 1.6284375050043393e-2 * z - 3.456931506332609e-2
        p = p * z + 4.5515447340221615e-2
        p = p * z - 5.230443640686948e-2
        p = p * z + 5.878927554473807e-2
        p = p * z - 6.66642476020052e-2
        p = p * z + 7.692296368042296e-2
        p = p * z - 9.090908753259112e-2
        p = p * z + 1.1111111105150588e-1
        p = p * z - 1.4285714285659779e-1
        p = p * z + 1.9999999999999804e-1
        p = p * z - 3.333333333333333e-1
    else:
        p = -6.451718869358958e-2 * z + 1.0743668324830098e-1
        p = p * z - 1.4263949753605723e-1
        p = p * z + 1.999954031495797e-1
        p = p * z - 3.3333331760434554e-1
    return p * z * x + x


@triton.jit
def atan(x: tl.tensor) -> tl.tensor:
    """Return the angle, in radians, whose tangent is x."""
    size = tl.abs(x)
    is_large = size > 2.414213562373095
    is_middle = (size > 0.41421356237309503) & (size <= 2.414213562373095)
    middle = (size - 1.0) / (size + 1.0)
    t = tl.where(is_large, -1.0 / tl.where(is_large, size, 1.0), tl.where(is_middle, middle, size))
    base = is_large.to(x.dtype) * 1.5707963267948966 + is_middle.to(x.dtype) * 0.7853981633974483
    y = base + _atan_near_zero(t)
    return tl.where(x < 0.0, -y, y)


@triton.jit
def asin(x: tl.tensor) -> tl.tensor:
    """Return the angle, in radians, whose sine is x; NaN outside of -1 to 1."""
    return atan(x / square_root((1.0 - x) * (1.0 + x)))


@triton.jit
def acos(x: tl.tensor) -> tl.tensor:
    """Return the angle, in radians, whose cosine is x; NaN outside of -1 to 1."""
    return 2.0 * atan(square_root((1.0 - x) / (1.0 + x)))


@triton.jit
def square_root(x: tl.tensor) -> tl.tensor:
    """Return the square root, rounded correctly."""
    return tl.sqrt(x) if x.dtype == tl.float64 else tl.sqrt_rn(x)


@triton.jit
def reciprocal_root(x: tl.tensor) -> tl.tensor:
    """Return 1 over the square root."""
    return 1.0 / tl.sqrt(x) if x.dtype == tl.float64 else tl.rsqrt(x)


@triton.jit
def round_even(x: tl.tensor) -> tl.tensor:
    """Return the nearest whole number, halves to even."""
    whole = 4503599627370496.0 if x.dtype == tl.float64 else 8388608.0
    # From here on numbers have no fraction, so the addition rounds it away, halves to even.
    shift = tl.where(x < 0.0, -whole, whole).to(x.dtype)
    return tl.where(tl.abs(x) < whole, (x + shift) - shift, x)


@triton.jit
def sign(x: tl.tensor) -> tl.tensor:
    """Return -1, 0 or 1, in the dtype of x; 0 for NaN."""
    return (x > 0).to(x.dtype) - (x < 0).to(x.dtype)


@triton.jit
def power(x: tl.tensor, y: tl.tensor) -> tl.tensor:
    """Return x to the power of y, floats; NaN for a fraction of a negative number.

    float32 goes through float64, which makes it exact but for the last rounding.
    """
    x, y = tl.broadcast(x, y)
    base = x.to(tl.float64)
    exponent = y.to(tl.float64)
    half = 0.5 * exponent
    is_whole = tl.floor(exponent) == exponent
    is_odd = is_whole & (tl.floor(half) != half)
    size = tl.abs(base)
    grown = tl.exp(exponent * tl.log(size))
    # Where the product above is 0 times infinity.
    grown = tl.where((exponent == 0.0) | (base == 1.0), 1.0, grown)
    grown = tl.where((size == 1.0) & (tl.abs(exponent) == float("inf")), 1.0, grown)
    is_real = (base >= 0.0) | is_whole | (size == float("inf")) | (base != base)
    grown = tl.where(is_real, grown, float("nan"))
    # Minus zero is negative, too.
    is_negative = (base < 0.0) | (1.0 / base < 0.0)
    return tl.where(is_negative & is_odd, -grown, grown).to(x.dtype)


@triton.jit
def integer_power(x: tl.tensor, y: tl.tensor) -> tl.tensor:
    """Return x to the power of y, integers; of a negative power what is left of the fraction."""
    x, y = tl.broadcast(x, y)
    result = x * 0 + 1
    square = x
    left = y
    for _ in range(63):
        result = tl.where((left & 1) == 1, result * square, result)
        square = square * square
        left = left >> 1
    parity = tl.where((y & 1) == 1, x, 1)
    negative = tl.where((x == 1) | (x == -1), parity, 0)
    return tl.where(y < 0, negative, result).to(x.dtype)


@triton.jit
def floor_divide(a: tl.tensor, b: tl.tensor) -> tl.tensor:
    """Return the quotient of floats rounded down; NaN for infinite a, as torch.

    float32 goes through float64, so the quotient is exact below 2**28.
    """
    a, b = tl.broadcast(a, b)
    q = tl.floor(a.to(tl.float64) / b.to(tl.float64))
    is_opposite = ((a < 0.0) & (b > 0.0)) | ((a > 0.0) & (b < 0.0))
    q = tl.where(is_opposite & (tl.abs(b) == float("inf")), -1.0, q)
    is_infinite = (tl.abs(a) == float("inf")) & (b != 0.0)
    return tl.where(is_infinite, float("nan"), q).to(a.dtype)


@triton.jit
def remainder(a: tl.tensor, b: tl.tensor) -> tl.tensor:
    """Return the remainder of a, with the sign of b; floats.

    float32 goes through float64: exact for quotients below 2**28. Of float64 the error is that of
    the quotient, times b.
    """
    a, b = tl.broadcast(a, b)
    dividend = a.to(tl.float64)
    divisor = b.to(tl.float64)
    size = tl.abs(divisor)
    left = dividend - divisor * tl.floor(dividend / divisor)
    # A quotient that was rounded to the next whole number leaves too little or too much.
    is_less = tl.where(divisor < 0.0, left > 0.0, left < 0.0)
    left = tl.where(is_less, left + divisor, left)
    left = tl.where(tl.abs(left) >= size, left - divisor, left)
    is_opposite = ((dividend < 0.0) & (divisor > 0.0)) | ((dividend > 0.0) & (divisor < 0.0))
    far = tl.where(is_opposite, divisor, dividend)
    far = tl.where(tl.abs(dividend) == float("inf"), float("nan"), far)
    return tl.where(size == float("inf"), far, left).to(a.dtype)


@triton.jit
def integer_floor_divide(a: tl.tensor, b: tl.tensor) -> tl.tensor:
    """Return the quotient of signed integers rounded down, as Python. A size of 1 is a constant
    here, which is no block to be broadcast."""
    q = a // b
    return tl.where((a - q * b != 0) & ((a < 0) != (b < 0)), q - 1, q)


@triton.jit
def integer_remainder(a: tl.tensor, b: tl.tensor) -> tl.tensor:
    """Return the remainder of a, with the sign of b; signed integers, as Python. A size of 1 is a
    constant, as above."""
    r = a - (a // b) * b
    return tl.where((r != 0) & ((r < 0) != (b < 0)), r + b, r)


@triton.jit
def minimum(a: tl.tensor, b: tl.tensor) -> tl.tensor:
    """Return the smaller float; NaN wins."""
    return tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def maximum(a: tl.tensor, b: tl.tensor) -> tl.tensor:
    """Return the larger float; NaN wins."""
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def times(a: tl.tensor, b: tl.tensor) -> tl.tensor:
    """Return a product, for reductions."""
    return a * b


@triton.jit
def first_largest(
    a: tl.tensor, i: tl.tensor, b: tl.tensor, j: tl.tensor
) -> tuple[tl.tensor, tl.tensor]:
    """Return the larger of two elements and its position, of equal ones the first; NaN is larger
    than any number. A position below 0 is that of no element."""
    is_same = (a == b) | ((a != a) & (b != b))
    is_larger = (a > b) | ((a != a) & (b == b))
    is_left = ((is_larger | (is_same & (i < j))) & (i >= 0)) | (j < 0)
    return tl.where(is_left, a, b), tl.where(is_left, i, j)


@triton.jit
def first_smallest(
    a: tl.tensor, i: tl.tensor, b: tl.tensor, j: tl.tensor
) -> tuple[tl.tensor, tl.tensor]:
    """Return the smaller of two elements and its position, of equal ones the first; NaN is smaller
    than any number. A position below 0 is that of no element."""
    is_same = (a == b) | ((a != a) & (b != b))
    is_smaller = (a < b) | ((a != a) & (b == b))
    is_left = ((is_smaller | (is_same & (i < j))) & (i >= 0)) | (j < 0)
    return tl.where(is_left, a, b), tl.where(is_left, i, j)


@triton.jit
def add_exponential(
    total: tl.tensor, largest: tl.tensor, x: tl.tensor, weight: tl.tensor
) -> tl.tensor:
    """Return a sum of terms `weight * exp(x - largest)` with one more term, relative to x if that
    is larger: one exponential does for both. Infinities are equal to themselves here, and count."""
    e = tl.where(x == largest, 1.0, exp(-tl.abs(x - largest)))
    return tl.where(x > largest, total * e + weight, total + weight * e)


@triton.jit
def relative_to(total: tl.tensor, largest: tl.tensor, other: tl.tensor) -> tl.tensor:
    """Return a sum of terms `weight * exp(x - largest)` as one of `weight * exp(x - other)`."""
    return tl.where(largest == other, total, total * exp(largest - other))


@triton.jit
def add_shifted(
    shift: tl.tensor,
    total: tl.tensor,
    squares: tl.tensor,
    x: tl.tensor,
    is_first: tl.tensor,
    inside: tl.tensor,
) -> tuple[tl.tensor, tl.tensor, tl.tensor]:
    """Return the first element, and the sums of differences from it and of their squares, with one
    more element where it is inside."""
    shift = tl.where(is_first & inside, x, shift)
    less = tl.where(inside, x - shift, 0.0)
    return shift, total + less, squares + less * less


@triton.jit
def moments(
    shift: tl.tensor, total: tl.tensor, squares: tl.tensor, count: tl.tensor
) -> tuple[tl.tensor, tl.tensor]:
    """Return the mean of so many elements, and the sum of squared differences from it, by sums of
    differences from the first: its distance is such that only digits of that sum are lost which
    it had too many, about `count` units in the last place in the worst case."""
    mean = total / tl.maximum(count, 1)
    return shift + mean, squares - total * mean


@triton.jit
def squares_around(
    squares: tl.tensor, mean: tl.tensor, count: tl.tensor, other: tl.tensor
) -> tl.tensor:
    """Return the sum of squared differences of so many elements from another place than their mean
    (Chan, Golub and LeVeque)."""
    return squares + (mean - other) * (mean - other) * count
