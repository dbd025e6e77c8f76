"""Sine, tangent, their inverses, and the error function, on whole vectors: the fast mode.

Angles are reduced to `|r| <= pi / 4` by pi / 2 in several parts (Cody and Waite), up to a limit;
angles beyond it go lane by lane through the C library. The polynomials were fitted by Remez'
algorithm for the relative error.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Final

from .piecewise import piecewise
from .polynomials import Coefficients, horner
from .storage import FLOATS
from .targets import AVX512
from .text import Definition, MathFunction

# (sin(r) / r - 1) / r**2 and (cos(r) - 1 + r**2 / 2) / r**4, in r**2
_SIN: Final[Coefficients] = {
    "f32": (
        *(-0.1666666716337204, 0.008333329111337662, -0.0001983933470910415),
        *(2.718311179705779e-06,),
    ),
    "f64": (
        *(-0.16666666666666666, 0.008333333333333323, -0.00019841269841255137),
        *(2.755731921422717e-06, -2.5052104921411005e-08, 1.6058367908519628e-10),
        *(-7.578762743545133e-13,),
    ),
}
_COS: Final[Coefficients] = {
    "f32": (0.04166664555668831, -0.001388736767694354, 2.4438499167445116e-05),
    "f64": (
        *(0.0416666666666666, -0.0013888888888874149, 2.4801587289498525e-05),
        *(-2.7557314357113673e-07, 2.0875723929531896e-09, -1.135968211012277e-11),
    ),
}
# (asin(x) / x - 1) / x**2 and (atan(x) / x - 1) / x**2, in x**2
_ASIN: Final[Coefficients] = {
    "f32": (
        *(0.16666753590106964, 0.07495244592428207, 0.045476801693439484),
        *(0.0241489727050066, 0.04221628978848457),
    ),
    "f64": (
        *(0.1666666666666539, 0.07500000000341964, 0.04464285682433626, 0.030381959296821706),
        *(0.02237175434004032, 0.017359758876688745, 0.013884718424009882, 0.012172498382095644),
        *(0.00651419656033156, 0.01956486354527792, -0.016280067220446233, 0.03194949867904674),
    ),
}
_ATAN: Final[Coefficients] = {
    "f32": (
        *(-0.33333316445350647, 0.19998490810394287, -0.14243866503238678),
        *(0.10596129298210144, -0.06083760783076286),
    ),
    "f64": (
        *(-0.333333333333332, 0.19999999999954118, -0.14285714280252154),
        *(0.11111110786328222, -0.09090897842269378, 0.07692061746860865, -0.06663121695933247),
        *(0.05848018876151905, -0.05039891997162947, 0.038079536967646, -0.017923643482045032),
    ),
}
# erf(x) / x is a quotient of these in x**2 below 2.8; from there to 3.9 1 - erf(x) is one in
# x - 3.365. They are scaled so that the roundings of float32 add up to little.
_ERF_OVER: Final[Coefficients] = {
    "f32": (1.69254398, 0.272950113, 0.0730160922, 0.0045554759, 0.00024634102),
}
_ERF_UNDER: Final[Coefficients] = {
    "f32": (1.49997807, 0.741888165, 0.162008628, 0.0195610821, 0.00126268202, 1.9621164e-05),
}
_ERF_LEFT: Final[Coefficients] = {
    "f32": (
        *(1.9471966e-06, -1.4062723e-05, 4.6111512e-05, -8.792773e-05, 0.00014504834),
        *(-0.00023712464, 0.00018635597),
    ),
}
# in float64: erf(x) / x as a quotient in x**2 below 1, and (1 - erf(x)) exp(x**2) in x up to 6
_ERF64: Final = {
    "over": (
        *(1.1283791670955126, 0.14214874428063382, 0.04530431496553584, 0.0018273246406360385),
        *(0.00019496984753178997,),
    ),
    "under": (
        *(1.0, 0.45930937793412957, 0.09325302973969972, 0.010582353560685183),
        *(0.0006812436819785099, 2.029955528683424e-05),
    ),
    "far_over": (
        *(0.9999999756753725, 1.8570301625561771, 1.7008973551738693, 0.9655104192185203),
        *(0.3635867714027941, 0.09093837429746385, 0.014142551981801038, 0.0010911245408056556),
        *(4.3773703156934535e-13,),
    ),
    "far_under": (
        *(1.0, 2.9854090859127407, 4.069571953721941, 3.3243706241534365, 1.790956110057799),
        *(0.6569735782223982, 0.162151100387967, 0.02506701870864784, 0.001933967951506263),
    ),
}
# where products are rounded: erf(x) / x in x**2 below 1, and -log(1 - erf(x)) in x from 1 to 4
_ERF_NEAR: Final[Coefficients] = {
    "f32": (
        *(1.128379225730896, -0.37612637877464294, 0.11283782869577408, -0.02686544507741928),
        *(0.005221073981374502, -0.0008484704303555191, 0.00011270508548477665),
        *(-9.680075891083106e-06,),
    ),
}
_ERF_FAR: Final[Coefficients] = {
    "f32": (
        *(-0.00018839440599549562, 1.129580020904541, 0.6332170367240906, 0.10842142254114151),
        *(-0.025209922343492508, 0.0042051346972584724, -0.0004414433497004211),
        *(2.169521940231789e-05,),
    ),
}

_PI: Final = Fraction(
    "3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803482534"
)
_LIMITS: Final = {"f32": 1e4, "f64": 1e6}
"""Angles up to these are reduced by multiples of pi / 2, of which there are less than 2**13 and
2**20."""


def _parts_of_a_right_angle(instance: MathFunction) -> list[float]:
    """Return pi / 2 as a sum of numbers: with a fused product each may have all digits that there
    are, else so few that its products with the multiples are exact."""
    digits, multiples = {"f32": (24, 13), "f64": (53, 20)}[instance.element.name]
    kept = [digits] * 3 if instance.target.has_fma else [digits - multiples] * 5 + [digits]
    left, parts = _PI / 2, []
    for count in kept:
        exponent = 1
        while left * 2 ** (exponent - 1) < 1:
            exponent += 1
        scale = Fraction(2) ** (count + exponent - 2)
        part = Fraction(int(left * scale)) / scale
        parts.append(float(part))
        left -= part
    return parts


def _reduced(instance: MathFunction) -> str:
    """Return the lines from an angle `x` to the number of right angles in the last bits of `k`, and
    to the sine `s` and the cosine `c` of what is left."""
    lines = [
        "    $F moved = x * 0.6366197723675814 + MAGIC;",
        "    $I k = ($I)moved;",
        "    $F n = moved - MAGIC, r = x;",
        *(f"    r = $mad(n, $splat(-{p!r}), r);" for p in _parts_of_a_right_angle(instance)),
        "    $F z = r * r;",
        horner("p", "z", _SIN, instance),
        "    $F s = $mad(p * z, r, r);",
        horner("q", "z", _COS, instance),
        "    $F c = $mad(q * z, z, $mad(z, $splat(-0.5), $splat(1.0)));",
    ]
    return "\n".join(lines)


def _angular(op: str, result: str, ulp: float) -> tuple[Definition, ...]:
    """Return a function of an angle: as it is near 0, far away, and the choice."""

    def near(instance: MathFunction) -> str:
        return f"$F $near_{op}($F x) {{\n{_reduced(instance)}\n    {result}\n}}"

    def either(instance: MathFunction) -> str:
        limit = _LIMITS[instance.element.name]
        return f"""
$F ${op}($F x) {{
    $F size = $abs(x);
    $I is_far = (size > {limit!r}) & (size < $splat(__builtin_inf()));
    int is_any = ${{bits.bool}}(__builtin_convertvector(is_far, $M)) != 0;
    return __builtin_expect(is_any, 0) ? $far_{op}(x) : $near_{op}(x);
}}
"""

    far = f"""
$F $far_{op}($F x) {{
    for (int i = 0; i < $L; i++) x[i] = ($S){op}((double)x[i]);
    return x;
}}
"""
    return (
        Definition(f"near_{op}", FLOATS, near),
        Definition(f"far_{op}", FLOATS, far),
        Definition(op, FLOATS, either, ulp),
    )


_SIN_RESULT = """$F found = ($F)$blend((k & 1) != 0, ($I)c, ($I)s);
    return ($F)$blend(x == 0, ($I)x, ($I)found ^ (k & 2) << (8 * sizeof($S) - 2));"""
_COS_RESULT = """$F found = ($F)$blend((k & 1) != 0, ($I)s, ($I)c);
    return ($F)(($I)found ^ ((k + 1) & 2) << (8 * sizeof($S) - 2));"""
_TAN_RESULT = """$I odd = (k & 1) != 0;
    $F found = ($F)$blend(odd, ($I)(-c), ($I)s) / ($F)$blend(odd, ($I)s, ($I)c);
    return ($F)$blend(x == 0, ($I)x, ($I)found);"""


def _asin_of(instance: MathFunction) -> str:
    return f"""
/* Returns the arc sine of s, whose square is z. */
$F $asin_of($F s, $F z) {{
{horner("p", "z", _ASIN, instance)}
    return $mad(p * z, s, s);
}}
"""


_ASIN_BODY = """
$F $asin($F x) {
    $F size = $abs(x);
    $I is_large = size > 0.5;
    $F z = ($F)$blend(is_large, ($I)((1.0 - size) * 0.5), ($I)(x * x));
    $F s = ($F)$blend(is_large, ($I)$square_root(z), ($I)size);
    $F near = $asin_of(s, z);
    $F far = PI_HALF - (near * 2.0 - PI_HALF_LOW);
    return $copysign(($F)$blend(is_large, ($I)far, ($I)near), x);
}
"""

_ACOS_BODY = """
$F $acos($F x) {
    $F size = $abs(x);
    $I is_large = size > 0.5;
    $F z = ($F)$blend(is_large, ($I)((1.0 - size) * 0.5), ($I)(x * x));
    $F s = ($F)$blend(is_large, ($I)$square_root(z), ($I)x);
    $F near = $asin_of(s, z);
    $F twice = near * 2.0;
    $F far = ($F)$blend(x < 0, ($I)(2.0 * PI_HALF - (twice - 2.0 * PI_HALF_LOW)), ($I)twice);
    return ($F)$blend(is_large, ($I)far, ($I)(PI_HALF - (near - PI_HALF_LOW)));
}
"""


def _atan(instance: MathFunction) -> str:
    return f"""
$F $atan($F x) {{
    $F size = $abs(x);
    $I is_large = size > 2.414213562373095, is_middle = (size > 0.41421356237309503) & ~is_large;
    $F over = ($F)$blend(is_large, ($I)$splat(-1.0), ($I)(size - 1.0));
    $F under = ($F)$blend(is_large, ($I)size, ($I)(size + 1.0));
    $F t = ($F)$blend(is_large | is_middle, ($I)(over / under), ($I)size);
    $F base = ($F)(is_large & ($I)$splat(PI_HALF)) + ($F)(is_middle & ($I)$splat(PI_HALF * 0.5));
    $F low = ($F)(is_large & ($I)$splat(PI_HALF_LOW));
    low += ($F)(is_middle & ($I)$splat(PI_HALF_LOW * 0.5));
    $F z = t * t;
{horner("p", "z", _ATAN, instance)}
    return $copysign(base + ($mad(p * z, t, t) + low), x);
}}
"""


def _erf(instance: MathFunction) -> str:
    """Return erf in pieces, as a quotient of polynomials, or by an exponential where the first are
    not as close: where products are rounded before they are added."""
    if instance.target == AVX512:
        return piecewise("erf", instance)
    if not instance.target.has_fma:
        return _erf_by_exponential(instance)
    return f"""
$F $erf($F x) {{
    $F size = $lower($splat(3.9), $abs(x));
    $F z = size * size, t = size - 3.365;
{horner("over", "z", _ERF_OVER, instance)}
{horner("under", "z", _ERF_UNDER, instance)}
{horner("left", "t", _ERF_LEFT, instance)}
    $F found = ($F)$blend(size < 2.8, ($I)(size * over / under), ($I)(1.0 - left));
    return $copysign(found, x);
}}
"""


def _erf_f64(instance: MathFunction) -> str:
    def polynomial(name: str, variable: str) -> str:
        return horner(name, variable, {"f64": _ERF64[name]}, instance)

    return f"""
$F $erf($F x) {{
    $F size = $lower($splat(6.0), $abs(x));
    $F z = size * size;
    $I is_near = size < 1;
{polynomial("over", "z")}
{polynomial("under", "z")}
{polynomial("far_over", "size")}
{polynomial("far_under", "size")}
    over = ($F)$blend(is_near, ($I)over, ($I)far_over);
    under = ($F)$blend(is_near, ($I)under, ($I)far_under);
    $F quotient = over / under;
    $F found = ($F)$blend(is_near, ($I)(size * quotient), ($I)(1.0 - $exp(-z) * quotient));
    return $copysign(found, x);
}}
"""


def _erf_by_exponential(instance: MathFunction) -> str:
    return f"""
$F $erf($F x) {{
    $F size = $lower($splat(4.0), $abs(x));
    $F z = size * size;
{horner("near", "z", _ERF_NEAR, instance)}
{horner("far", "size", _ERF_FAR, instance)}
    $F found = ($F)$blend(size < 1, ($I)(size * near), ($I)(1.0 - $exp(-far)));
    return $copysign(found, x);
}}
"""


CIRCULAR: Final = (
    *_angular("sin", _SIN_RESULT, ulp=2),
    *_angular("cos", _COS_RESULT, ulp=2),
    *_angular("tan", _TAN_RESULT, ulp=4),
    Definition("asin_of", FLOATS, _asin_of),
    Definition("asin", FLOATS, _ASIN_BODY, ulp=3),
    Definition("acos", FLOATS, _ACOS_BODY, ulp=2),
    Definition("atan", FLOATS, _atan, ulp=3),
    Definition("erf", ("f32",), _erf, ulp=5),
    Definition("erf", ("f64",), _erf_f64, ulp=2),
)
