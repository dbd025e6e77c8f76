"""Exponentials, logarithms, hyperbolic functions and powers, on whole vectors: the fast mode.

`exp` reduces its operand to `|r| <= log(2) / 2` (Cody and Waite), where a polynomial is close, and
scales that by a power of two. `log` takes the exponent off, so that the rest is between the roots
of 1/2 and 2. The polynomials were fitted by Remez' algorithm, the quotient of `tanh` by weighted
least squares, for the relative error, and scaled so that the roundings of float32 add up to little.
"""

from __future__ import annotations

from typing import Final

from .piecewise import piecewise
from .polynomials import Coefficients, horner
from .storage import FLOATS
from .targets import AVX512
from .text import Definition, MathFunction

# the rest of the series of exp: (exp(r) - 1 - r) / r**2
_EXP: Final[Coefficients] = {
    "f32": (
        *(0.5, 0.1666651964187622, 0.04166620224714279, 0.008368873037397861),
        *(0.0013950614957138896,),
    ),
    "f64": (
        *(0.5, 0.16666666666666685, 0.04166666666666673, 0.008333333333316765),
        *(0.001388888888885842, 0.00019841269897003438, 2.4801587373714027e-05),
        *(2.755723428839292e-06, 2.7557233412101075e-07, 2.5112222499264365e-08),
        *(2.0926922166363086e-09,),
    ),
}
# (log(1 + f) - f + f**2 / 2) / f**3, and for float64 (log((1 + s) / (1 - s)) / s - 2) / s**2
_LOG: Final[Coefficients] = {
    "f32": (
        *(0.3333331346511841, -0.25000008940696716, 0.2000211626291275, -0.16667988896369934),
        *(0.1421958953142166, -0.12405703216791153, 0.11887967586517334, -0.11675014346837997),
        *(0.06746424734592438,),
    ),
    "f64": (
        *(0.666666666666667, 0.3999999999989841, 0.2857142862640574, 0.22222211072502215),
        *(0.18182893211548654, 0.15331597882483777, 0.14617855601853982),
    ),
}
# tanh(x) / x is a quotient of these in x**2, for |x| up to 9.1, where it is 1 / x
_TANH_OVER: Final[Coefficients] = {
    "f32": (1.15803969, 0.154942438, 0.00404622965, 2.38364701e-05, 1.54239963e-08),
}
_TANH_UNDER: Final[Coefficients] = {
    "f32": (1.15803969, 0.540955484, 0.0299597252, 0.000380195008, 8.9887169e-07),
}

_TWO_TO = """
$F $two_to($F n) {
    return ($F)(($I)(n + (MAGIC + BIAS.0)) << MANTISSA);
}
"""

_WHOLE = """
$F $whole($F x) {
    return (x + MAGIC) - MAGIC;
}
"""


def _scaled(instance: MathFunction) -> str:
    """Return the product with a power of two, rounded once but where both parts are subnormal."""
    twice = "    $F half = $whole(n * 0.5);\n    return p * $two_to(half) * $two_to(n - half);"
    head = "$F $scaled($F p, $F n)"
    if instance.target != AVX512 or not 16 <= instance.bytes <= 64:
        return f"{head} {{\n{twice}\n}}"
    suffix = "ps" if instance.element.name == "f32" else "pd"
    rounding = ", 4" if instance.bytes == 64 else ""
    call = f"__builtin_ia32_scalef{suffix}{8 * instance.bytes}_mask(p, n, p, -1{rounding})"
    return f"{head} {{\n    return {call};\n}}"


def _reduced(instance: MathFunction) -> str:
    """Return the lines from an operand `kept` to `n`, `r` and a polynomial `q`, with
    `kept = n log(2) + r` and `exp(r) = 1 + r + r**2 q`."""
    lines = """\
    $F moved = $mad(kept, $splat(1.4426950408889634), $splat(MAGIC));
    $F n = moved - MAGIC;
    $F r = $mad(n, $splat(-LN2_HIGH), kept);
    r = $mad(n, $splat(-(LN2_LOW)), r);
"""
    return lines + horner("q", "r", _EXP, instance)


def _exp_times(instance: MathFunction) -> str:
    return f"""
/* Returns exp(x) * 2**more, which need not be in range before it is scaled. */
$F $exp_times($F x, int more) {{
    $F kept = $lower($splat(EXP_HIGH), $upper($splat(EXP_LOW), x));
{_reduced(instance)}
    $F p = $mad(q, r * r, r) + 1.0;
    return $scaled(p, n + ($S)more);
}}
"""


_EXP_BODY = """
$F $exp($F x) {
    return $exp_times(x, 0);
}
"""


def _exp2(instance: MathFunction) -> str:
    return f"""
$F $exp2($F x) {{
    $F kept = $lower($splat(EXP_HIGH * 1.5), $upper($splat(EXP_LOW * 1.5), x));
    $F n = $whole(kept);
    $F r = (kept - n) * 0.6931471805599453;
{horner("q", "r", _EXP, instance)}
    return $scaled($mad(q, r * r, r) + 1.0, n);
}}
"""


def _expm1(instance: MathFunction) -> str:
    return f"""
$F $expm1($F x) {{
    $F kept = $lower($splat(EXP_HIGH), $upper($splat(EXPM1_LOW), x));
{_reduced(instance)}
    $F p = $mad(q, r * r, r);
    /* Half of 2**n, since that itself may be too large, and their difference is not. */
    $F half = $two_to($lower(n, $splat(BIAS.0 + 1.0)) - 1.0);
    $F grown = ($mad(half, p, half - 0.5)) * 2.0;
    $F found = ($F)$blend(n == 0, ($I)p, ($I)grown);
    found = ($F)$blend(n > BIAS.0 + 0.5, ($I)$exp(x), ($I)found);
    return $copysign(found, x);
}}
"""


def _log_of(instance: MathFunction) -> str:
    """Return the logarithm of a positive number and a small addend."""
    if instance.element.name == "f32":
        near = f"""\
    $F z = f * f;
{horner("q", "f", _LOG, instance)}
    $F y = $mad(n, $splat(LN2_LOW), q * f * z) + lost;
    y = $mad($splat(-0.5), z, y);
    return $mad(n, $splat(LN2_HIGH), f + y);"""
    else:
        near = f"""\
    $F s = f / (f + 2.0);
    $F z = s * s;
{horner("q", "z", _LOG, instance)}
    $F half = f * f * 0.5;
    $F y = $mad(s, $mad(q, z, half), $mad(n, $splat(LN2_LOW), lost));
    return $mad(n, $splat(LN2_HIGH), f - (half - y));"""
    return f"""
/* Returns log(x) + lost, for a positive x that is finite. */
$F $log_of($F x, $F lost) {{
    $I is_small = x < SMALLEST;
    $F grown = ($F)$blend(is_small, ($I)(x * GROWTH), ($I)x);
    $U moved = ($U)grown + (ONE_BITS - ROOT_HALF_BITS);
    $F n = ($F)((moved >> MANTISSA) | MAGIC_BITS) - (MAGIC + BIAS.0);
    n -= ($F)(is_small & ($I)$splat(SHIFT.0));
    $F f = ($F)((moved & FRACTION) + ROOT_HALF_BITS) - 1.0;
{near}
}}
"""


_LOG_BODY = """
/* Returns found where x has a logarithm, and its limit or not-a-number elsewhere. */
$F $log_at($F x, $F found) {
    $F none = ($F)$blend(x > 0, ($I)x, ($I)$splat(__builtin_nan("")));
    none = ($F)$blend(x == 0, ($I)$splat(-__builtin_inf()), ($I)none);
    return ($F)$blend((x > 0) & (x < $splat(__builtin_inf())), ($I)found, ($I)none);
}
"""

_LOG_FUNCTION = """
$F $log($F x) {
    return $log_at(x, $log_of(x, ($F){0}));
}
"""

_LOG1P = """
$F $log1p($F x) {
    $F u = x + 1.0;
    $F lost = ($F)$blend(x < 1, ($I)(x - (u - 1.0)), ($I)(1.0 - (u - x)));
    $F found = $log_at(u, $log_of(u, lost / u));
    return ($F)$blend(x == 0, ($I)x, ($I)found);
}
"""

_SIGMOID = """
$F $sigmoid($F x) {
    return 1.0 / ($exp(-x) + 1.0);
}
"""


def _tanh(instance: MathFunction) -> str:
    """Return tanh in pieces, as a quotient of polynomials, or of exponentials where the first are
    not as close: in float64, and where products are rounded before they are added."""
    if instance.element.name == "f32" and instance.target == AVX512:
        return piecewise("tanh", instance)
    if instance.element.name != "f32" or not instance.target.has_fma:
        return _tanh_by_exponentials(instance)
    return f"""
$F $tanh($F x) {{
    $F size = $lower($splat(9.1), $abs(x));
    $F z = size * size;
{horner("over", "z", _TANH_OVER, instance)}
{horner("under", "z", _TANH_UNDER, instance)}
    return $copysign($lower($splat(1.0), size * over / under), x);
}}
"""


def _tanh_by_exponentials(instance: MathFunction) -> str:
    return f"""
/* (e - 1) / (e + 1) with e = exp(2 |x|) = 2**n (1 + p): no digits of p are lost where n is 0. */
$F $tanh($F x) {{
    $F kept = $lower($splat(40.0), $abs(x) * 2.0);
{_reduced(instance)}
    $F p = $mad(q, r * r, r);
    $F grown = ($F)(($I)(moved + BIAS.0) << MANTISSA);
    $F found = $mad(grown, p, grown - 1.0) / $mad(grown, p, grown + 1.0);
    return $copysign(found, x);
}}
"""


_SINH = """
$F $sinh($F x) {
    $F size = $abs(x);
    $F t = $expm1($lower($splat(20.0), size));
    $F near = (t + t / (t + 1.0)) * 0.5;
    $F found = ($F)$blend(size < 20, ($I)near, ($I)$exp_times(size, -1));
    return $copysign(found, x);
}
"""

_COSH = """
$F $cosh($F x) {
    $F half = $exp_times($abs(x), -1);
    return half + 0.25 / half;
}
"""

_WIDE_POWER = """
/* Returns x to the power of y with an error of 3 + |y log(x)| units in the last place. */
$F $rough_power($F x, $F y) {
    $F half = y * 0.5, size = $abs(x);
    $I is_whole = $trunc(y) == y;
    $I is_odd = is_whole & ($trunc(half) != half);
    $F grown = $exp(y * $log(size));
    $I is_one = (y == 0) | (x == 1) | ((size == 1) & ($abs(y) == $splat(__builtin_inf())));
    grown = ($F)$blend(is_one, ($I)$splat(1.0), ($I)grown);
    $I is_real = (x >= 0) | is_whole | (size == $splat(__builtin_inf())) | (x != x);
    grown = ($F)$blend(is_real, ($I)grown, ($I)$splat(__builtin_nan("")));
    return ($F)(($I)grown ^ (is_odd & (($I)x ^ ($I)size)));
}
"""


def _power(instance: MathFunction) -> str:
    """Return the power of float32 by way of float64, in two halves where one would not fit."""
    lanes, fits = instance.lanes, instance.lanes * 8 <= instance.target.register_bytes
    if fits:
        wide = "${type.f64}"
        return (
            "$F $power($F x, $F y) {\n    return __builtin_convertvector("
            f"${{rough_power.f64}}(__builtin_convertvector(x, {wide}), "
            f"__builtin_convertvector(y, {wide})), $F);\n}}"
        )
    half = lanes // 2
    part, wide = f"f32x{half}", f"f64x{half}"
    return f"""
$F $power($F x, $F y) {{
    {part} parts[2][2], found[2];
    memcpy(parts[0], &x, sizeof x);
    memcpy(parts[1], &y, sizeof y);
    for (int i = 0; i < 2; i++) {{
        {wide} base = __builtin_convertvector(parts[0][i], {wide});
        {wide} exponent = __builtin_convertvector(parts[1][i], {wide});
        found[i] = __builtin_convertvector(relay_rough_power_{wide}(base, exponent), {part});
    }}
    $F r;
    memcpy(&r, found, sizeof r);
    return r;
}}
"""


EXPONENTIALS: Final = (
    Definition("two_to", FLOATS, _TWO_TO),
    Definition("whole", FLOATS, _WHOLE),
    Definition("scaled", FLOATS, _scaled),
    Definition("exp_times", FLOATS, _exp_times),
    Definition("exp", FLOATS, _EXP_BODY, ulp=1),
    Definition("exp2", FLOATS, _exp2, ulp=2),
    Definition("expm1", FLOATS, _expm1, ulp=2),
    Definition("log_of", FLOATS, _log_of),
    Definition("log_at", FLOATS, _LOG_BODY),
    Definition("log", FLOATS, _LOG_FUNCTION, ulp=1),
    Definition("log1p", FLOATS, _LOG1P, ulp=1),
    Definition("sigmoid", FLOATS, _SIGMOID, ulp=3),
    Definition("tanh", ("f32",), _tanh, ulp=5),
    Definition("tanh", ("f64",), _tanh, ulp=3),
    Definition("sinh", FLOATS, _SINH, ulp=3),
    Definition("cosh", FLOATS, _COSH, ulp=2),
    Definition("rough_power", ("f64",), _WIDE_POWER),
    Definition("power", ("f32",), _power, ulp=1),
)
