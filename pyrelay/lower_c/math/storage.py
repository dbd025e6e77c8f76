"""Vectors from memory and back, of one number, converted, chosen and summed.

Half types are vectors of float32 and bools are masks, all bits of a lane set or none, as soon as
they are loaded. Masks, and vectors of places, have elements as wide as the lanes allow, so that in
a kernel of float64 nothing is converted.
"""

from __future__ import annotations

from typing import Final

from .elements import ELEMENTS, Family, of_family
from .text import Definition, MathFunction

FLOATS: Final = of_family(Family.FLOAT)
SIGNED: Final = of_family(Family.SIGNED)
NUMBERS: Final = (*FLOATS, *SIGNED, "u8")
_RAW: Final = (*FLOATS, *SIGNED, *of_family(Family.UNSIGNED))
_HALVES: Final = of_family(Family.HALF)

_LOAD = """
$F $load(const $S *p) {
    $F v;
    memcpy(&v, p, sizeof v);
    return v;
}
"""

_STORE = """
void $store($S *p, $F v) {
    memcpy(p, &v, sizeof v);
}
"""

_SPLAT = """
$F $splat($S x) {
    return x - ($F){0};
}
"""

_WHERE = """
$F $where($M m, $F a, $F b) {
    $I chosen = __builtin_convertvector(m, $I);
    return ($F)((chosen & ($I)a) | (~chosen & ($I)b));
}
"""

_WHERE_BOOL = """
$M $where($M m, $M a, $M b) {
    return (m & a) | (~m & b);
}
"""


def _first_numbers(instance: MathFunction) -> str:
    """Return the vector 0, 1, 2 and so on."""
    numbers = ", ".join(map(str, range(instance.lanes)))
    return f"$F $numbers(void) {{\n    return ($F){{{numbers}}};\n}}"


def _through(verb: str, parameters: str, given: str, raw: str) -> Definition:
    """Return a load of half types or bools, by that of the integers that are in memory."""

    def body(instance: MathFunction) -> str:
        name = instance.element.name
        result = "$M" if name == "bool" else "${type.f32}"
        return (
            f"{result} ${verb}(const $S *p{parameters}) {{\n"
            f"    return $decoded(${{{verb}.{raw}}}(p{given}));\n}}"
        )

    return Definition(verb, ("bool",) if raw == "u8" else _HALVES, body)


def _back(verb: str, before: str, after: str, raw: str) -> Definition:
    """Return a store of half types or bools, by that of the integers that are in memory."""
    given = "".join(f", {p.split()[-1]}" for p in before.split(", ") if p)
    last = "".join(f", {p.split()[-1]}" for p in after.split(", ") if p)

    def body(instance: MathFunction) -> str:
        value = "$M" if instance.element.name == "bool" else "${type.f32}"
        return (
            f"void ${verb}($S *p{before}, {value} v{after}) {{\n"
            f"    ${{{verb}.{raw}}}(p{given}, $encoded(v){last});\n}}"
        )

    return Definition(verb, ("bool",) if raw == "u8" else _HALVES, body)


_LOADS: Final = {
    "load": ("", ""),
    "load_part": (", long n", ", n"),
    "load_strided": (", long stride", ", stride"),
    "load_strided_part": (", long stride, long n", ", stride, n"),
    "load_repeated_part": (", long count, long first, long n", ", count, first, n"),
    "load_repeated_where": (", long count, long first, $M inside", ", count, first, inside"),
    "gather": (", $M place", ", place"),
    "gather_where": (", $M place, $M inside", ", place, inside"),
}
_STORES: Final = {
    "store": ("", ""),
    "store_part": ("", ", long n"),
    "store_strided": (", long stride", ""),
    "store_strided_part": (", long stride", ", long n"),
}

_BOOL_DECODED = """
$M $decoded(${type.u8} v) {
    return __builtin_convertvector(v != 0, $M);
}
"""

_BOOL_ENCODED = """
${type.u8} $encoded($M v) {
    return __builtin_convertvector(v & 1, ${type.u8});
}
"""

_BF16_DECODED = """
${type.f32} $decoded(${type.u16} v) {
    return (${type.f32})(__builtin_convertvector(v, ${type.u32}) << 16);
}
"""

# To the nearest, halves to even; of NaN a bit is set that the shift leaves.
_BF16_ENCODED = """
${type.u16} $encoded(${type.f32} v) {
    ${type.u32} bits = (${type.u32})v;
    ${type.u32} rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
    ${type.u32} nan = (${type.u32})(v != v);
    rounded = (nan & ((bits >> 16) | 0x40)) | (~nan & rounded);
    return __builtin_convertvector(rounded, ${type.u16});
}
"""

# The exponent is moved by a product, which makes subnormal numbers normal, too.
_F16_DECODED = """
${type.f32} $decoded(${type.u16} v) {
    ${type.u32} bits = __builtin_convertvector(v, ${type.u32});
    ${type.u32} size = (bits & 0x7fff) << 13;
    ${type.u32} sign = (bits & 0x8000) << 16;
    ${type.u32} moved = (${type.u32})((${type.f32})size * 0x1p+112f);
    ${type.u32} far = (${type.u32})(size >= 0x0f800000);
    moved = (far & (size | 0x7f800000)) | (~far & moved);
    return (${type.f32})(moved | sign);
}
"""

# Normal numbers round in their bits; for smaller ones an addition rounds to multiples of 2**-24.
_F16_ENCODED = """
${type.u16} $encoded(${type.f32} v) {
    ${type.u32} bits = (${type.u32})v;
    ${type.u32} sign = (bits >> 16) & 0x8000;
    ${type.u32} size = bits & 0x7fffffff;
    ${type.u32} normal = (size - 0x38000000 + 0xfff + ((size >> 13) & 1)) >> 13;
    ${type.u32} small = (${type.u32})((${type.f32})size + 0.5f) - 0x3f000000;
    ${type.u32} is_small = (${type.u32})(size < 0x38800000);
    ${type.u32} is_large = (${type.u32})(size >= 0x477ff000);
    ${type.u32} is_nan = (${type.u32})(size > 0x7f800000);
    ${type.u32} found = (is_small & small) | (~is_small & normal);
    found = (is_large & 0x7c00) | (~is_large & found);
    found = (is_nan & (0x7e00 | ((size >> 13) & 0x3ff))) | (~is_nan & found);
    return __builtin_convertvector(found | sign, ${type.u16});
}
"""


_ROUNDED = """
${type.f32} $rounded(${type.f32} v) {
    return $decoded($encoded(v));
}
"""


def _cast(to: str) -> Definition:
    """Return the conversion of numbers and masks to an element type."""

    def body(instance: MathFunction) -> str:
        source = "$M" if instance.element.name == "bool" else "$F"
        given = "v & 1" if instance.element.name == "bool" else "v"
        value = f"__builtin_convertvector({given}, ${{type.{to}}})"
        # What is out of range wraps around, as torch's.
        if instance.element.family is Family.FLOAT and ELEMENTS[to].bytes < 4:
            wide = f"__builtin_convertvector({given}, ${{type.i32}})"
            value = f"__builtin_convertvector({wide}, ${{type.{to}}})"
        return f"${{type.{to}}} $cast_{to}({source} v) {{\n    return {value};\n}}"

    return Definition(f"cast_{to}", (*NUMBERS, "bool"), body)


_CAST_BOOL = """
$M $cast_bool($F v) {
    return __builtin_convertvector(v != 0, $M);
}
"""


def _folded(op: str, combine: str) -> Definition:
    """Return the reduction of a vector to a number: halves are combined until one lane is left."""

    def body(instance: MathFunction) -> str:
        lines = [f"$S ${op}($F v) {{"]
        width = instance.lanes // 2
        while width:
            moved = ", ".join(str(i ^ width) for i in range(instance.lanes))
            lines.append(f"    v = {combine.format(f'$moved_{width}(v)')};")
            width //= 2
            del moved
        return "\n".join((*lines, "    return v[0];\n}"))

    return Definition(op, NUMBERS, body)


def _moved(width: int) -> Definition:
    """Return the exchange of lanes whose numbers differ by a power of two."""

    def body(instance: MathFunction) -> str:
        places = ", ".join(str(i ^ width) for i in range(instance.lanes))
        return (
            f"$F $moved_{width}($F v) {{\n#ifdef __clang__\n"
            f"    return __builtin_shufflevector(v, v, {places});\n#else\n"
            f"    return __builtin_shuffle(v, ($I){{{places}}});\n#endif\n}}"
        )

    return Definition(f"moved_{width}", NUMBERS, body)


def _sums(instance: MathFunction) -> str:
    """Return the sums of as many vectors as they have lanes, as the lanes of one: of two vectors
    a half of each is added to the other half, until one is left. Lanes are added as by `sum`."""
    lanes = range(instance.lanes)
    half = instance.lanes // 2
    lines: list[str] = []
    width = half
    while width:
        kept = [i + instance.lanes * bool(i & width) for i in lanes]
        added = ", ".join(str(p) for p in kept), ", ".join(str(p ^ width) for p in kept)
        lines += [
            f"    v{i} = {_shuffles(name.format(i), name.format(i + width), added)};"
            for name in ("v[{}]" if width == half else "v{}",)
            for i in range(width)
        ]
        width //= 2
    declared = ", ".join(f"v{i}" for i in range(half))
    return "\n".join(
        (
            "$F $sums(const $F *v) {",
            "#ifdef __clang__",
            "#define SHUFFLED(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)",
            "#else",
            "#define SHUFFLED(a, b, ...) __builtin_shuffle(a, b, ($I){__VA_ARGS__})",
            "#endif",
            f"    $F {declared};",
            *lines,
            "#undef SHUFFLED",
            "    return v0;\n}",
        )
    )


def _shuffles(one: str, other: str, places: tuple[str, str]) -> str:
    return " + ".join(f"SHUFFLED({one}, {other}, {p})" for p in places)


def _rows(count: int) -> tuple[Definition, Definition]:
    """Return the load and the store of a vector whose lanes are the places of some rows, which lie
    `step` apart."""

    def half(instance: MathFunction) -> tuple[str, str, list[str]]:
        """Return the type and the suffix of functions of half a vector, and its lanes."""
        kind = f"{instance.element.name}x{instance.lanes // 2}"
        return kind, "" if count == 2 else f"_rows_{count // 2}", [*map(str, range(instance.lanes))]

    def load(instance: MathFunction) -> str:
        kind, suffix, lanes = half(instance)
        step = "" if count == 2 else ", step"
        return f"""
$F $load_rows_{count}(const $S *p, long step) {{
    {kind} low = relay_load{suffix}_{kind}(p{step});
    {kind} high = relay_load{suffix}_{kind}(p + {count // 2} * step{step});
#if defined(__clang__) || __GNUC__ >= 12
    return __builtin_shufflevector(low, high, {", ".join(lanes)});
#else
    $F v;
    memcpy(&v, &low, sizeof low);
    memcpy((char *)&v + sizeof low, &high, sizeof high);
    return v;
#endif
}}
"""

    def store(instance: MathFunction) -> str:
        kind, suffix, lanes = half(instance)
        step, middle = "" if count == 2 else ", step", instance.lanes // 2
        return f"""
void $store_rows_{count}($S *p, long step, $F v) {{
#if defined(__clang__) || __GNUC__ >= 12
    {kind} low = __builtin_shufflevector(v, v, {", ".join(lanes[:middle])});
    {kind} high = __builtin_shufflevector(v, v, {", ".join(lanes[middle:])});
#else
    {kind} low, high;
    memcpy(&low, &v, sizeof low);
    memcpy(&high, (char *)&v + sizeof low, sizeof high);
#endif
    relay_store{suffix}_{kind}(p{step}, low);
    relay_store{suffix}_{kind}(p + {count // 2} * step{step}, high);
}}
"""

    return (
        Definition(f"load_rows_{count}", FLOATS, load),
        Definition(f"store_rows_{count}", FLOATS, store),
    )


STORAGE: Final = (
    Definition("load", _RAW, _LOAD),
    Definition("store", _RAW, _STORE),
    Definition("splat", NUMBERS, _SPLAT),
    Definition("numbers", NUMBERS, _first_numbers),
    Definition("where", NUMBERS, _WHERE),
    Definition("where", ("bool",), _WHERE_BOOL),
    *(_through(v, *p, raw) for v, p in _LOADS.items() for raw in ("u8", "u16")),
    *(_back(v, *p, raw) for v, p in _STORES.items() for raw in ("u8", "u16")),
    Definition("decoded", ("bool",), _BOOL_DECODED),
    Definition("encoded", ("bool",), _BOOL_ENCODED),
    Definition("decoded", ("bf16",), _BF16_DECODED),
    Definition("encoded", ("bf16",), _BF16_ENCODED),
    Definition("decoded", ("f16",), _F16_DECODED),
    Definition("encoded", ("f16",), _F16_ENCODED),
    Definition("rounded", _HALVES, _ROUNDED),
    *(_cast(to) for to in NUMBERS),
    Definition("cast_bool", NUMBERS, _CAST_BOOL),
    *(definition for count in (2, 4) for definition in _rows(count)),
    *(_moved(2**n) for n in range(6)),
    _folded("sum", "v + {}"),
    Definition("sums", FLOATS, _sums),
    _folded("product", "v * {}"),
    _folded("largest", "$maximum(v, {})"),
    _folded("smallest", "$minimum(v, {})"),
)
