"""Vectors of elements that lie apart in memory, and of elements that neighbouring lanes share.

Lanes two elements apart are the even places of two vectors, and a vector of which each element is
in several lanes is a short load: both are faster by a shuffle than by a gather. Clang has no
shuffle by computed places; its own loops over lanes are left.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from .elements import Family, of_family
from .targets import AVX2, AVX512
from .text import Definition, MathFunction

_RAW: Final = of_family(Family.FLOAT, Family.SIGNED, Family.UNSIGNED)

_STRIDED: Final = """
$F $load_strided(const $S *p, long stride) {
    $F v;
    for (int i = 0; i < $L; i++) v[i] = p[i * stride];
    return v;
}
"""

_STORE_STRIDED: Final = """
void $store_strided($S *p, long stride, $F v) {
    for (int i = 0; i < $L; i++) p[i * stride] = v[i];
}
"""

_STORE_STRIDED_PART: Final = """
void $store_strided_part($S *p, long stride, $F v, long n) {
    for (int i = 0; i < $L; i++) if (i < n) p[i * stride] = v[i];
}
"""


def _strided_part(instance: MathFunction) -> str:
    """Return the load of `n` elements that lie `stride` apart."""
    by_lane = f"""\
    $F v = {{0}};
    for (int i = 0; i < {instance.lanes}; i++) if (i < n) v[i] = p[i * stride];
    return v;"""
    head = "$F $load_strided_part(const $S *p, long stride, long n)"
    if not _has_masked_loads(instance):
        return f"{head} {{\n{by_lane}\n}}"
    even = ", ".join(str(2 * i) for i in range(instance.lanes))
    return f"""{head} {{
    if (__builtin_constant_p(stride) && stride == 2) {{
        long count = 2 * n - (n > 0);
        $F low = $load_part(p, count < $L ? count : $L);
        $F high = $load_part(p + $L, count > $L ? count - $L : 0);
#ifdef __clang__
        return __builtin_shufflevector(low, high, {even});
#else
        return __builtin_shuffle(low, high, ($I){{{even}}});
#endif
    }}
{by_lane}
}}"""


def _repeated_part(instance: MathFunction) -> str:
    """Return the load whose lane `i` is the element `(first + i) / count`, for `n` lanes."""
    by_lane = """\
    $F v = {0};
    for (int i = 0; i < $L; i++) if (i < n) v[i] = p[(first + i) / count];
    return v;"""
    head = "$F $load_repeated_part(const $S *p, long count, long first, long n)"
    if not _has_masked_loads(instance):
        return f"{head} {{\n{by_lane}\n}}"
    return f"""{head} {{
#ifdef __clang__
{by_lane}
#else
    $F few = $load_part(p, n > 0 ? (first + n - 1) / count + 1 : 0);
    return __builtin_shuffle(few, {_places(instance)});
#endif
}}"""


def _repeated_where(instance: MathFunction) -> str:
    """Return the same load for the lanes of a mask; no element of other lanes alone is read."""
    by_lane = """\
    $F v = {0};
    for (int i = 0; i < $L; i++) if (inside[i]) v[i] = p[(first + i) / count];
    return v;"""
    head = "$F $load_repeated_where(const $S *p, long count, long first, $M inside)"
    if not _has_masked_loads(instance):
        return f"{head} {{\n{by_lane}\n}}"
    return f"""{head} {{
#if defined(__clang__) || !defined(__BMI2__)
{by_lane}
#else
    unsigned long long lanes = ${{bits.bool}}(inside) << first, asked = lanes, each = 0;
    for (long i = 1; i < count; i++) asked |= lanes >> i;
    for (long i = 0; i < {2 * instance.lanes}; i += count) each |= 1ull << i;
    $F few = $load_masked(p, __builtin_ia32_pext_di(asked, each));
    return __builtin_shuffle(few, {_places(instance)});
#endif
}}"""


def _transpose(instance: MathFunction) -> str:
    """Return the function that stores columns of `count` elements, `step` apart, as rows.

    Squares of them are transposed in registers (Eklundh, "A fast computer method for matrix
    transposing", 1972). Lanes beyond the columns repeat the last one.
    """
    lanes = instance.lanes
    lines = [
        "void $transpose(",
        "    const $S *from, long step, $S *to, long to_step, long count, long columns",
        ") {",
        "    $F v[$L];",
        "    for (long k = 0; k < count; k += $L) {",
        "        long n = count - k < $L ? count - k : $L;",
        "        for (int i = 0; i < $L; i++)",
        "            v[i] = $load_part(from + (i < columns ? i : columns - 1) * step + k, n);",
    ]
    width = lanes // 2
    while width:
        low = [i if not i & width else lanes + i - width for i in range(lanes)]
        high = [i + width if not i & width else lanes + i for i in range(lanes)]
        lines += [
            "        for (int i = 0; i < $L; i++) {",
            f"            if (i & {width}) continue;",
            f"            $F a = v[i], b = v[i + {width}];",
            f"            v[i] = MIXED (a, b, $I, {_listed(low)});",
            f"            v[i + {width}] = MIXED (a, b, $I, {_listed(high)});",
            "        }",
        ]
        width //= 2
    lines += [
        "        for (long i = 0; i < n; i++)",
        "            $store(to + (k + i) * to_step, v[i]);",
        "    }",
        "}",
    ]
    return "\n".join(lines)


def _listed(places: Sequence[int]) -> str:
    return ", ".join(map(str, places))


def _has_masked_loads(instance: MathFunction) -> bool:
    if instance.element.bytes < 4 or instance.bytes < 16 or not instance.fits:
        return False
    return instance.target in (AVX2, AVX512)


def _places(instance: MathFunction) -> str:
    """Return the numbers of the elements that are in the lanes."""
    numbers = ", ".join(map(str, range(instance.lanes)))
    element = "int" if instance.element.bytes == 4 else "long"
    return f"(($I){{{numbers}}} + ({element})first) / ({element})count"


SPACED: Final = (
    Definition("load_strided", _RAW, _STRIDED),
    Definition("load_strided_part", _RAW, _strided_part),
    Definition("load_repeated_part", _RAW, _repeated_part),
    Definition("load_repeated_where", _RAW, _repeated_where),
    Definition("store_strided", _RAW, _STORE_STRIDED),
    Definition("store_strided_part", _RAW, _STORE_STRIDED_PART),
    Definition("transpose", _RAW, _transpose),
)
