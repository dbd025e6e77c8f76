"""Operations of a processor that C has no operator for.

With GCC each is a builtin of the instruction set, where the target has it for vectors of that size.
Clang makes the same instruction of most loops over the lanes, which are also left elsewhere.
"""

from __future__ import annotations

from typing import Final

from .elements import Family, of_family
from .targets import AVX2, AVX512
from .text import Body, Definition, MathFunction, mask_element

_FLOATS: Final = of_family(Family.FLOAT)
_STORED: Final = of_family(Family.FLOAT, Family.SIGNED, Family.UNSIGNED)
_SUFFIX: Final = {"f32": "ps", "f64": "pd"}
_PART: Final = {"f32": "ups", "f64": "upd", "i32": "dqusi", "i64": "dqudi", "i16": "dquhi"} | {
    "i8": "dquqi"
}
_MASKED: Final = {"f32": "ps", "f64": "pd", "i32": "d", "i64": "q"}
_POINTED: Final = {"i64": "long long", "i32": "int", "i16": "short", "i8": "char"}


def _has_x86(instance: MathFunction) -> bool:
    return instance.target in (AVX2, AVX512) and instance.fits and instance.bytes >= 16


def _builtin(instance: MathFunction, name: str, rest: str, wide: str) -> str | None:
    """Return the call of an x86 builtin for floats, `rest` or, of 64 bytes, `wide` behind its
    operands; None if the target has none."""
    if not _has_x86(instance):
        return None
    suffix = _SUFFIX[instance.element.name]
    match instance.bytes:
        case 64:
            return f"__builtin_ia32_{wide.format(suffix=suffix)}"
        case 32:
            return f"__builtin_ia32_{name}{suffix}256({rest})"
        case _:
            return f"__builtin_ia32_{name}{suffix}({rest})"


def _either(head: str, builtin: str | None, other: str) -> str:
    """Return a function that is a builtin with GCC, and a text otherwise."""
    if builtin is None:
        return f"{head} {{\n{other}\n}}"
    chosen = f"#ifndef __clang__\n    return {builtin};\n#else\n{other}\n#endif"
    return f"{head} {{\n{chosen}\n}}"


def by_lane(value: str) -> str:
    """Return statements that compute each lane `i` by itself."""
    return f"    $F r;\n    for (int i = 0; i < $L; i++) r[i] = {value};\n    return r;"


def c_function(instance: MathFunction, name: str) -> str:
    """Return the name of a function of C's library for the elements."""
    return f"{name}f" if instance.element.name == "f32" else name


def _fma(instance: MathFunction) -> str:
    call = _builtin(instance, "vfmadd", "a, b, c", wide="vfmadd{suffix}512_mask(a, b, c, -1, 4)")
    name = "__builtin_" + c_function(instance, "fma")
    # Clang does not always find the instruction behind the loop.
    other = f"""#if defined(__clang__) && __clang_major__ >= 18
    return __builtin_elementwise_fma(a, b, c);
#else
{by_lane(f"{name}(a[i], b[i], c[i])")}
#endif"""
    return _either("$F $fma($F a, $F b, $F c)", call, other)


def _mad(instance: MathFunction) -> str:
    value = "$fma(a, b, c)" if instance.target.has_fma else "a * b + c"
    return f"$F $mad($F a, $F b, $F c) {{\n    return {value};\n}}"


def _square_root(instance: MathFunction) -> str:
    call = _builtin(instance, "sqrt", "a", wide="sqrt{suffix}512_mask(a, a, -1, 4)")
    name = "__builtin_" + c_function(instance, "sqrt")
    return _either("$F $square_root($F a)", call, by_lane(f"{name}(a[i])"))


def _extreme(op: str, builtin: str, sign: str) -> Body:
    def body(instance: MathFunction) -> str:
        call = _builtin(
            instance, builtin, "a, b", wide=builtin + "{suffix}512_mask(a, b, a, -1, 4)"
        )
        lanes = by_lane(f"a[i] {sign} b[i] ? a[i] : b[i]")
        return _either(f"$F ${op}($F a, $F b)", call, lanes)

    return body


def _rounding(op: str, immediate: int, generic: str) -> Body:
    def body(instance: MathFunction) -> str:
        call = _builtin(
            instance,
            "round",
            f"a, {immediate}",
            wide=f"rndscale{{suffix}}_mask(a, {immediate}, a, -1, 4)",
        )
        name = "__builtin_" + c_function(instance, generic)
        return _either(f"$F ${op}($F a)", call, by_lane(f"{name}(a[i])"))

    return body


def _load_part(instance: MathFunction) -> str:
    """Return the load of the first `n` lanes; the others are zero."""
    head = "$F $load_part(const $S *p, long n)"
    whole = "    if (__builtin_constant_p(n) && n == $L) return $load(p);\n"
    if call := _masked_load(instance, "(1ull << n) - 1", "{numbers} < ({element})n"):
        return f"{head} {{\n{whole}    return {call};\n}}"
    rest = (
        "    if (n == $L) return $load(p);\n"
        "    $F v = {0};\n    memcpy(&v, p, n * sizeof($S));\n    return v;"
    )
    return f"{head} {{\n{rest}\n}}"


def _load_masked(instance: MathFunction) -> str:
    """Return the load of the lanes whose bits are set; the others are zero."""
    lanes = (
        "    $F v = {0};\n"
        "    for (int i = 0; i < $L; i++) if (bits >> i & 1) v[i] = p[i];\n"
        "    return v;"
    )
    call = _masked_load(instance, "bits", "(({element})bits >> {numbers} & 1) != 0")
    return _either("$F $load_masked(const $S *p, unsigned long long bits)", call, lanes)


def _store_part(instance: MathFunction) -> str:
    """Return the store of the first `n` lanes."""
    head = "void $store_part($S *p, $F v, long n)"
    if instance.target == AVX512 and (name := _part_builtin(instance, "store")) is not None:
        pointer = f"({_pointed(instance)} *)p"
        part = f"{name}({pointer}, {_cast(instance, 'v')}, (1ull << n) - 1)"
        whole = "if (__builtin_constant_p(n) && n == $L) $store(p, v);"
        return f"{head} {{\n    {whole}\n    else {part};\n}}"
    lines = ["if (n == $L) $store(p, v);"]
    if (name := _part_builtin(instance, "store")) is not None:
        # Some processors take a dozen cycles for it: longer than for a few stores, but not than
        # for a call of `memcpy`.
        mask = _lane_mask(instance, "{numbers} < ({element})n")
        pointer = f"({_vector(instance, _pointed(instance))} *)p"
        call = f"{name}({pointer}, {mask}, {_cast(instance, 'v')})"
        lines.append(f"else if (!__builtin_constant_p(n)) {call};")
    lines.append("else memcpy(p, &v, n * sizeof($S));")
    return "\n".join((f"{head} {{", *(f"    {line}" for line in lines), "}"))


def _masked_load(instance: MathFunction, bits: str, lanes: str) -> str | None:
    """Return the load of chosen lanes, as the bits of an integer or as a vector of truth values:
    AVX-512 has masks of their own, AVX2 takes vectors. None where neither has one."""
    if (name := _part_builtin(instance, "load")) is None:
        return None
    pointed = _pointed(instance)
    if instance.target == AVX512:
        return f"($F){name}((const {pointed} *)p, {_cast(instance, '($F){0}')}, {bits})"
    pointer = f"(const {_vector(instance, pointed)} *)p"
    return f"($F){name}({pointer}, {_lane_mask(instance, lanes)})"


def _lane_mask(instance: MathFunction, chosen: str) -> str:
    """Return a vector of truth values as the builtins of AVX2 take it."""
    numbers = ", ".join(map(str, range(instance.lanes)))
    element, of = ("int", "int") if instance.element.bytes == 4 else ("int64_t", "long long")
    found = chosen.format(numbers=f"($I){{{numbers}}}", element=element)
    return f"({_vector(instance, of)})({found})"


def _part_builtin(instance: MathFunction, verb: str) -> str | None:
    """Return the name of the builtin that loads or stores some lanes, if there is one."""
    if not _has_x86(instance):
        return None
    kind = _PART[_signed(instance)]
    if instance.target == AVX512:
        return f"__builtin_ia32_{verb}{kind}{8 * instance.bytes}_mask"
    if instance.element.bytes < 4:
        return None
    wide = "256" if instance.bytes == 32 else ""
    return f"__builtin_ia32_mask{verb}{_MASKED[_signed(instance)]}{wide}"


def _signed(instance: MathFunction) -> str:
    name = instance.element.name
    return f"i{8 * instance.element.bytes}" if name[0] == "u" else name


def _pointed(instance: MathFunction) -> str:
    return _POINTED.get(_signed(instance), instance.element.c)


def _cast(instance: MathFunction, value: str) -> str:
    """Return a vector as the builtins want it: `int64_t` is `long`, which is another type."""
    if instance.element.family is Family.FLOAT:
        return value
    return f"({_vector(instance, _pointed(instance))}){value}"


def _vector(instance: MathFunction, of: str) -> str:
    """Return the type of vectors of the same size of another element type."""
    return f"{of} __attribute__((vector_size({instance.bytes})))"


def _mask_bits(instance: MathFunction) -> str:
    """Return the function that packs masks in an integer, one bit a lane."""
    element = mask_element(instance.lanes, instance.target)
    size = instance.lanes * (8 if element == "i64" else 4)
    floats = f"({'double' if element == 'i64' else 'float'} __attribute__((vector_size({size}))))m"
    suffix = "pd" if element == "i64" else "ps"
    other = (
        "    unsigned long long bits = 0;\n"
        "    for (int i = 0; i < $L; i++) bits |= (m[i] & 1ull) << i;\n"
        "    return bits;"
    )
    head = "unsigned long long $bits($M m)"
    if instance.target not in (AVX2, AVX512) or not 16 <= size <= instance.target.register_bytes:
        return f"{head} {{\n{other}\n}}"
    if size == 64:
        kind, of = ("q", "long long") if element == "i64" else ("d", "int")
        integers = f"({of} __attribute__((vector_size(64))))m"
        return f"{head} {{\n    return __builtin_ia32_cvt{kind}2mask512({integers});\n}}"
    wide = "256" if size == 32 else ""
    return f"{head} {{\n    return (unsigned)__builtin_ia32_movmsk{suffix}{wide}({floats});\n}}"


_GATHERS: Final = {
    ("f32", 16): "gathersiv16sf",
    ("i32", 16): "gathersiv16si",
    ("f32", 8): "gatherdiv16sf",
    ("i32", 8): "gatherdiv16si",
    ("f64", 8): "gatherdiv8df",
    ("i64", 8): "gatherdiv8di",
}
"""The builtins of AVX-512 that load at computed places, by element and lanes."""


def _gather_where(instance: MathFunction) -> str:
    head = "$F $gather_where(const $S *p, $M place, $M inside)"
    other = (
        "    $F v = {0};\n"
        "    for (int i = 0; i < $L; i++) if (inside[i]) v[i] = p[place[i]];\n"
        "    return v;"
    )
    return _either(head, _gather_builtin(instance, "${bits.bool}(inside)"), other)


def _gather(instance: MathFunction) -> str:
    lanes = by_lane("p[place[i]]")
    return _either("$F $gather(const $S *p, $M place)", _gather_builtin(instance, "-1"), lanes)


def _gather_builtin(instance: MathFunction, chosen: str) -> str | None:
    name = _GATHERS.get((_signed(instance), instance.lanes))
    if instance.target != AVX512 or name is None:
        return None
    of = "int" if instance.lanes == 16 else "long long"
    place = f"({of} __attribute__((vector_size(64))))place"
    zeros, size = _cast(instance, "($F){0}"), instance.element.bytes
    return f"($F)__builtin_ia32_{name}({zeros}, p, {place}, {chosen}, {size})"


def _picked(instance: MathFunction) -> str:
    """Return the choice of one of the lanes of two vectors for each lane, as the last bits of
    `place` say; GCC makes one instruction of it where there is one."""
    lanes = by_lane("(place[i] & $L ? high : low)[place[i] & ($L - 1)]")
    if instance.target == AVX512 and (instance.element.name, instance.lanes) == ("f32", 16):
        lanes = "    return __builtin_ia32_vpermi2varps512(low, place, high);"
    return f"""
$F $picked($F low, $F high, $I place) {{
#ifndef __clang__
    return __builtin_shuffle(low, high, place);
#else
{lanes}
#endif
}}"""


INTRINSICS: Final = (
    Definition("fma", _FLOATS, _fma),
    Definition("mad", _FLOATS, _mad),
    Definition("square_root", _FLOATS, _square_root),
    Definition("upper", _FLOATS, _extreme("upper", "max", ">")),
    Definition("lower", _FLOATS, _extreme("lower", "min", "<")),
    Definition("round_even", _FLOATS, _rounding("round_even", 8, "rint")),
    Definition("floor", _FLOATS, _rounding("floor", 9, "floor")),
    Definition("ceil", _FLOATS, _rounding("ceil", 10, "ceil")),
    Definition("trunc", _FLOATS, _rounding("trunc", 11, "trunc")),
    Definition("load_part", _STORED, _load_part),
    Definition("load_masked", _STORED, _load_masked),
    Definition("store_part", _STORED, _store_part),
    Definition("gather", _STORED, _gather),
    Definition("gather_where", _STORED, _gather_where),
    Definition("bits", ("bool",), _mask_bits),
    Definition("picked", _FLOATS, _picked),
)
