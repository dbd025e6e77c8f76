"""Comparisons, signs, extremes, and division, as torch defines them."""

from __future__ import annotations

from typing import Final

from .storage import FLOATS, NUMBERS, SIGNED
from .text import Definition

_COMPARISONS: Final = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


def _compared(op: str, sign: str) -> Definition:
    body = f"$M ${op}($F a, $F b) {{\n    return __builtin_convertvector(a {sign} b, $M);\n}}"
    return Definition(op, NUMBERS, body)


_BOOL_EQ = "$M $eq($M a, $M b) {\n    return ~(a ^ b);\n}"
_BOOL_NE = "$M $ne($M a, $M b) {\n    return a ^ b;\n}"

_NEG = "$F $neg($F a) {\n    return -a;\n}"

_ABS = """
$F $abs($F a) {
    return ($F)(($U)a & (($U){0} - 1) >> 1);
}
"""

_ABS_SIGNED = """
$F $abs($F a) {
    $F below = a < 0;
    return (a ^ below) - below;
}
"""

_SIGN = """
$F $sign($F a) {
    return __builtin_convertvector((a < 0) - (a > 0), $F);
}
"""

# Subtracted: a true comparison is -1.
_SIGN_U8 = "$F $sign($F a) {\n    return ($F)(a != 0) & 1;\n}"

_COPYSIGN = """
$F $copysign($F size, $F sign) {
    $U bit = (($U){0} + 1) << (8 * sizeof($S) - 1);
    return ($F)((($U)sign & bit) | (($U)size & ~bit));
}
"""

# Of two numbers the comparison decides; NaN in `a` is kept here, NaN in `b` by the first line.
_MINIMUM = """
$F $minimum($F a, $F b) {
    $F r = $lower(a, b);
    return ($F)($blend(a == a, ($I)r, ($I)a));
}
"""

_MAXIMUM = """
$F $maximum($F a, $F b) {
    $F r = $upper(a, b);
    return ($F)($blend(a == a, ($I)r, ($I)a));
}
"""

_BLEND = """
$I $blend($I chosen, $I a, $I b) {
    return (chosen & a) | (~chosen & b);
}
"""

_LEAST = """
$F $least($F a, $F b) {
    return ($F)($blend(($I)(a < b), ($I)a, ($I)b));
}
"""

_MOST = """
$F $most($F a, $F b) {
    return ($F)($blend(($I)(a > b), ($I)a, ($I)b));
}
"""

_RECIPROCAL_ROOT = """
$F $reciprocal_root($F a) {
    return 1.0 / $square_root(a);
}
"""

# As torch: `fmod` leaves a remainder that is exact, and the quotient of the rest is all but whole.
_FLOOR_DIVIDE = """
$F $floor_divide($F a, $F b) {
    $F r;
    for (int i = 0; i < $L; i++) {
        $S left = FMOD(a[i], b[i]);
        $S q = (a[i] - left) / b[i];
        if (left != 0 && (b[i] < 0) != (left < 0)) q -= 1;
        $S whole = __builtin_floor(q);
        if (q - whole > 0.5) whole += 1;
        if (q == 0) whole = __builtin_copysign(0.0, a[i] / b[i]);
        r[i] = b[i] == 0 ? a[i] / b[i] : whole;
    }
    return r;
}
"""

_REMAINDER = """
$F $remainder($F a, $F b) {
    $F r;
    for (int i = 0; i < $L; i++) {
        $S left = FMOD(a[i], b[i]);
        r[i] = left != 0 && (b[i] < 0) != (left < 0) ? left + b[i] : left;
    }
    return r;
}
"""

_FMOD = """
$F $fmod($F a, $F b) {
    $F r;
    for (int i = 0; i < $L; i++) r[i] = FMOD(a[i], b[i]);
    return r;
}
"""

# A processor traps where the divisor is 0, and where the quotient of the lowest number by -1 is out
# of range: that one wraps around, and by 0 the quotient is 0 here.
_QUOTIENT = """
$F $quotient($F a, $F b) {
    $F r;
    for (int i = 0; i < $L; i++) r[i] = b[i] == 0 ? 0 : a[i] / b[i];
    return r;
}
"""

_REST = """
$F $rest($F a, $F b) {
    $F r;
    for (int i = 0; i < $L; i++) r[i] = b[i] == 0 ? a[i] : a[i] % b[i];
    return r;
}
"""

_INTEGER_FLOOR_DIVIDE = """
$F $integer_floor_divide($F a, $F b) {
    $F r;
    for (int i = 0; i < $L; i++) {
        if (b[i] == 0 || b[i] == -1) {
            r[i] = ($S)(b[i] * (__typeof__(b[i] * 1u))a[i]);
            continue;
        }
        $S q = a[i] / b[i];
        r[i] = q - (a[i] % b[i] != 0 && (a[i] < 0) != (b[i] < 0));
    }
    return r;
}
"""

_INTEGER_REMAINDER = """
$F $integer_remainder($F a, $F b) {
    $F r;
    for (int i = 0; i < $L; i++) {
        if (b[i] == 0 || b[i] == -1) {
            r[i] = b[i] == 0 ? a[i] : 0;
            continue;
        }
        $S left = a[i] % b[i];
        r[i] = left != 0 && (left < 0) != (b[i] < 0) ? left + b[i] : left;
    }
    return r;
}
"""

_INTEGER_POWER = """
$F $integer_power($F a, $F b) {
    $F r;
    for (int i = 0; i < $L; i++) {
        uint64_t found = 1, square = (uint64_t)a[i];
        for (int64_t left = b[i]; left > 0; left >>= 1) {
            if (left & 1) found *= square;
            square *= square;
        }
        int is_unit = a[i] == 1 || a[i] == ($S)-1;
        int64_t whole = is_unit ? (b[i] & 1 ? a[i] : 1) : 0;
        r[i] = ($S)(b[i] < 0 ? (uint64_t)whole : found);
    }
    return r;
}
"""


def _of_library(op: str, text: str) -> tuple[Definition, ...]:
    """Return definitions that call the C library, which has a name for each type."""
    return (
        Definition(op, ("f32",), _narrow(text)),
        Definition(op, ("f64",), text.replace("FMOD", "__builtin_fmod")),
    )


def _narrow(text: str) -> str:
    for name in ("__builtin_floor", "__builtin_copysign"):
        text = text.replace(name, f"{name}f")
    return text.replace("FMOD", "__builtin_fmodf")


ARITHMETIC: Final = (
    *(_compared(op, sign) for op, sign in _COMPARISONS.items()),
    Definition("eq", ("bool",), _BOOL_EQ),
    Definition("ne", ("bool",), _BOOL_NE),
    Definition("neg", NUMBERS, _NEG),
    Definition("abs", FLOATS, _ABS),
    Definition("abs", SIGNED, _ABS_SIGNED),
    Definition("sign", (*FLOATS, *SIGNED), _SIGN),
    Definition("sign", ("u8",), _SIGN_U8),
    Definition("copysign", FLOATS, _COPYSIGN),
    Definition("blend", NUMBERS, _BLEND),
    Definition("minimum", FLOATS, _MINIMUM),
    Definition("maximum", FLOATS, _MAXIMUM),
    Definition("minimum", (*SIGNED, "u8"), _LEAST.replace("$least", "$minimum")),
    Definition("maximum", (*SIGNED, "u8"), _MOST.replace("$most", "$maximum")),
    Definition("least", (*SIGNED, "u8"), _LEAST),
    Definition("most", (*SIGNED, "u8"), _MOST),
    Definition("reciprocal_root", FLOATS, _RECIPROCAL_ROOT),
    *_of_library("floor_divide", _FLOOR_DIVIDE),
    *_of_library("remainder", _REMAINDER),
    *_of_library("fmod", _FMOD),
    Definition("quotient", ("u8",), _QUOTIENT),
    Definition("rest", ("u8",), _REST),
    Definition("integer_floor_divide", SIGNED, _INTEGER_FLOOR_DIVIDE),
    Definition("integer_remainder", SIGNED, _INTEGER_REMAINDER),
    Definition("integer_power", (*SIGNED, "u8"), _INTEGER_POWER),
)
