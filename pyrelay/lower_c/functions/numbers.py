"""Operators of numbers in C: their bodies are read as terms, and each term is an expression.

What an operator gives that is one integer keeps to the range of its dtype, as everywhere: 64 bits
stop the program where they overflow, narrower ones wrap around. A division by zero stops it, and so
does a float that no integer is.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final, final

from ...ir.constant import nearest
from ...ir.declaration.elements import Place
from ...ir.declaration.lowering import Elementwise, Pointwise, inside
from ...ir.declaration.scalars import compute_dtype
from ...ir.dims import Dim
from ...ir.expr import Call, type_of
from ...ir.op import Op
from ...ir.types import DType, DTypeKind, bool_, float32, int64, is_float
from ...kernels.plans.arithmetic import TermArithmetic, highest, lowest
from ...kernels.plans.terms import Term, Terms
from ...kernels.plans.text import Text, call, infix, negative
from ...operators.host.conversions import to_bool, to_int
from .c_types import NotInC, number_dtype, number_name
from .rooms import RoomWriter

_LONGEST: Final = 60
"""An expression that is longer gets a name."""

_INFIX: Final = {"add": "+", "sub": "-", "mul": "*", "div": "/"} | {
    "eq": "==",
    "ne": "!=",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
}
_BITS: Final = ("&", "|", "^", "<<", ">>")
_OVERFLOWING: Final = {"add": "add", "sub": "sub", "mul": "mul", "neg": "sub", "abs": ""}
"""Operations that may leave 64 bits, and what compilers call them."""
_LIBRARY: Final = {
    "floor": "floor",
    "ceil": "ceil",
    "trunc": "trunc",
    "round_even": "rint",
    "square_root": "sqrt",
    "abs": "fabs",
    "power": "pow",
    **{
        name: name
        for name in (
            *("exp", "exp2", "expm1", "log", "log2", "log1p", "sin", "cos", "tan", "asin", "acos"),
            *("atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "erfc"),
        )
    },
}
"""Functions of the C library, by the operations that they are."""


@final
class _Operand:
    """A number as an operand of an element-wise body."""

    shape: tuple[Dim, ...] = ()

    def __init__(self, term: Term, dtype: DType) -> None:
        self._term: Final = term
        self.dtype: Final = dtype

    def __call__(self, *index: Dim) -> Term:
        """Return the number."""
        assert not index
        return self._term

    def within(self, index: Sequence[Dim], inside: Term, otherwise: Term) -> Term:
        """Return the number, which is always there."""
        del index, inside, otherwise
        return self._term


@final
class NumberWriter:
    """Writes one call of an operator whose operands and results are numbers."""

    def __init__(self, writer: RoomWriter, call_: Call, operands: Sequence[str | None]) -> None:
        """`operands` are the C expressions of the operands, None for one that is omitted."""
        self._writer: Final = writer
        self._call: Final = call_
        self._types: Final = [type_of(a) for a in call_.args]
        self._operands: Final = operands
        self._terms: Final = Terms()
        self._texts: Final[dict[Term, Text]] = {}
        self._is_checked = False
        self._is_integer = False

    def write(self, *, is_checked: bool) -> list[tuple[str, DType]]:
        """Write the call, and return the expressions of its results with their dtypes.

        `is_checked` says that an integer that is its result may leave the range of 64 bits. Raises
        NotInC for an operator that is not one of numbers.
        """
        integer = _integer_of(self._call)
        self._is_checked = is_checked and integer == int64
        self._is_integer = integer is not None
        found = self._read()
        roots = found if isinstance(found, tuple) else (found,)
        self._compute(roots)
        return [(self._texts[r].text, self._dtype(r)) for r in roots]

    def _dtype(self, term: Term) -> DType:
        assert term.dtype is not None
        return term.dtype

    # Bodies as terms.

    def _read(self) -> Any:
        op = self._call.callee
        assert isinstance(op, Op)
        values = [self._leaf(i) for i in range(len(self._types))]
        attrs = tuple(self._call.attrs.values())
        arithmetic = self._arithmetic(compute_dtype(self._types))
        if op is to_int or op is to_bool:
            (value,) = values
            assert value is not None  # it is no operand that may be omitted
            return arithmetic.cast(value, int64 if op is to_int else bool_)
        match inside(op.lowering):
            case Pointwise(body):
                found = body(arithmetic, *values, *attrs)
            case Elementwise(body):
                sources = [
                    None if v is None else _Operand(v, self._operand_dtype(i))
                    for i, v in enumerate(values)
                ]
                found = body(arithmetic, Place((), ()), *sources, *attrs)
            case _:
                found = None
        if found is None:
            raise NotInC(f"it calls `{op.name}`")
        return self._as_declared(arithmetic, found)

    def _as_declared(self, arithmetic: TermArithmetic, found: Any) -> Any:
        """Return the results in the dtypes that the call has; a body of constants gives numbers."""
        ty = type_of(self._call)
        if isinstance(found, tuple):
            return found
        dtype = number_dtype(ty)
        if dtype is None:
            raise NotInC(f"it calls `{_name(self._call)}`, which gives no number")
        return found if found.dtype == dtype else arithmetic.cast(found, dtype)

    def _arithmetic(self, dtype: DType) -> TermArithmetic:
        def no_coordinate(*_: Any) -> Dim:
            raise NotInC(f"it calls `{_name(self._call)}`, which reads at a computed place")

        return TermArithmetic(self._terms, dtype, no_coordinate)

    def _operand_dtype(self, index: int) -> DType:
        dtype = number_dtype(self._types[index])
        if dtype is None:
            raise NotInC(f"it calls `{_name(self._call)}` of what is no number")
        return dtype

    def _leaf(self, index: int) -> Term | None:
        text = self._operands[index]
        if text is None:
            return None
        dtype = self._operand_dtype(index)
        number_name(dtype)
        return self._terms.make("value", dtype=dtype, detail=text)

    # Terms as expressions.

    def _compute(self, roots: Sequence[Term]) -> None:
        needed = sorted(self._terms.needed(roots), key=lambda t: t.number)
        uses = Counter(o for t in needed for o in t.operands)
        for term in needed:
            text = self._expression(term)
            is_leaf = term.op in ("const", "value")
            is_long = uses[term] > 1 or (uses[term] and len(text.text) > _LONGEST)
            if not is_leaf and is_long and not text.text.isidentifier():
                text = self._named(term, text)
            self._texts[term] = text

    def _named(self, term: Term, text: Text) -> Text:
        name = self._writer.fresh(f"{term.op}_" if term.op.isidentifier() else "bits")
        self._writer.line(f"const {number_name(self._dtype(term))} {name} = {text};")
        return Text(name)

    def _expression(self, term: Term) -> Text:
        match term.op:
            case "const":
                return literal(term.detail, term.dtype or float32)
            case "value":
                return Text(term.detail) if term.detail.isidentifier() else Text(term.detail, 7)
            case "size":
                return Text(self._writer.size(term.detail), 0)
            case "cast":
                return self._cast(term)
            case _ if is_float(self._operating(term)):
                return self._of_floats(term)
            case _:
                return self._of_integers(term)

    def _operating(self, term: Term) -> DType:
        """Return the dtype of the operands of an operation: of the widest of them."""
        dtypes = [o.dtype for o in term.operands[term.op == "where" :] if o.dtype is not None]
        wide = max(dtypes, key=lambda d: (d.kind.value, d.bits), default=None)
        return wide or self._dtype(term)

    def _given(self, term: Term) -> list[Text]:
        """Return the operands of an operation in its dtype; C converts those that are narrower."""
        dtype = self._operating(term)
        return [
            literal(o.detail, dtype) if o.op == "const" else self._texts[o] for o in term.operands
        ]

    def _of_floats(self, term: Term) -> Text:
        dtype = self._operating(term)
        is_single, given = dtype == float32, self._given(term)
        suffix, short = ("f", "f32") if is_single else ("", "f64")
        match term.op:
            case op if op in _INFIX:
                return self._infix(_INFIX[op], given, term)
            case "neg":
                return negative(given[0])
            case "where":
                return _chosen(*given)
            case "minimum" | "maximum" as op:
                names = [self._atom(t, number_name(dtype)) for t in given]
                return call(f"RELAY_{op.upper()}", *names)
            case "sign":
                x = self._atom(given[0], number_name(dtype))
                return Text(f"({number_name(dtype)})(({x} > 0) - ({x} < 0))", 7)
            case "floor_divide" | "remainder" as op:
                return call(f"relay_{op}_{short}", *given)
            case "reciprocal_root":
                return infix(literal(1.0, dtype), "/", call(f"sqrt{suffix}", *given))
            case "sigmoid":
                one = literal(1.0, dtype)
                return infix(one, "/", infix(one, "+", call(f"exp{suffix}", negative(given[0]))))
            case op if op in _LIBRARY:
                return call(f"{_LIBRARY[op]}{suffix}", *given)
            case op:
                raise NotInC(f"it calls `{_name(self._call)}`, and C has no `{op}`")

    def _infix(self, sign: str, given: Sequence[Text], term: Term) -> Text:
        text = infix(given[0], sign, given[1])
        if term.dtype is not None and term.dtype.kind is DTypeKind.INT and term.dtype.bits < 64:
            return Text(f"({number_name(term.dtype)})({text})", 7)
        return text

    def _atom(self, text: Text, c_type: str) -> Text:
        """Return a text that may be written several times."""
        if text.text.isidentifier():
            return text
        name = self._writer.fresh("operand")
        self._writer.line(f"const {c_type} {name} = {text};")
        return Text(name)

    def _of_integers(self, term: Term) -> Text:
        given, op = self._given(term), term.op
        if self._is_checked and term.dtype == int64 and op in _OVERFLOWING:
            return self._overflowing(op, given)
        match op:
            case "integer_floor_divide" | "integer_remainder" | "quotient" | "rest":
                return self._division(term, given)
            case "integer_power":
                return self._power(term, given)
            case _ if op in _INFIX:
                return self._infix(_INFIX[op], given, term)
            case _ if op in _BITS:
                return self._bits(op, given, term)
            case "neg":
                return _narrowed(negative(given[0]), self._dtype(term))
            case "where":
                return _chosen(*given)
            case "least" | "most" | "abs" | "sign":
                return self._compared(term, given)
            case _:
                raise NotInC(f"it calls `{_name(self._call)}`, and C has no `{op}` of integers")

    def _compared(self, term: Term, given: Sequence[Text]) -> Text:
        """Return the outcome that one comparison with another operand, or with 0, decides."""
        first, *rest = (self._atom(t, number_name(self._operating(term))) for t in given)
        match term.op:
            case "least":
                return _chosen(infix(first, "<", rest[0]), first, rest[0])
            case "most":
                return _chosen(infix(first, ">", rest[0]), first, rest[0])
            case "sign":
                return Text(f"({first} > 0) - ({first} < 0)", 5)
            case _:
                absolute = _chosen(infix(first, "<", Text("0")), negative(first), first)
                return _narrowed(absolute, self._dtype(term))

    def _bits(self, op: str, given: Sequence[Text], term: Term) -> Text:
        a, b = given
        if op == "<<":  # of a negative number it has no meaning in C
            a = Text(f"(uint64_t){a.inside(7)}", 7)
            return Text(f"({number_name(self._dtype(term))})({infix(a, op, b)})", 7)
        return infix(a, op, b)

    def _overflowing(self, op: str, given: Sequence[Text]) -> Text:
        """Return a result that fits into 64 bits; the program stops where it does not."""
        if op == "abs":
            x = self._atom(given[0], "int64_t")
            self._fail_if(f"{x} == INT64_MIN")
            return _chosen(infix(x, "<", Text("0")), negative(x), x)
        a, b = map(_wide, given if op != "neg" else (Text("0"), *given))
        name = self._writer.fresh(f"{op}_")
        self._writer.line(f"int64_t {name};")
        self._fail_if(f"__builtin_{_OVERFLOWING[op]}_overflow({a}, {b}, &{name})")
        return Text(name)

    def _division(self, term: Term, given: Sequence[Text]) -> Text:
        c_type = number_name(self._dtype(term))
        divisor = term.operands[1]
        a, b = (self._atom(t, c_type) if t.text != "0" else t for t in given)
        known = divisor.detail if divisor.op == "const" else None
        if not known:
            self._fail_if(f"{b} == 0")
        is_quotient = term.op in ("integer_floor_divide", "quotient")
        if is_quotient and self._is_checked and known in (None, -1):
            self._fail_if(f"{b} == -1 && {a} == INT64_MIN")
        function = "relay_floor_divide" if is_quotient else "relay_modulo"
        return _narrowed(call(function, a, b), self._dtype(term))

    def _power(self, term: Term, given: Sequence[Text]) -> Text:
        base, exponent = given
        self._fail_if(f"{exponent.inside(1)} < 0")
        if not self._is_checked:
            power = call("relay_power", base, exponent)
            return Text(f"({number_name(self._dtype(term))}){power}", 7)
        name = self._writer.fresh("power")
        self._writer.line(f"int64_t {name};")
        self._fail_if(f"relay_power_overflows({base}, {exponent}, &{name})")
        return Text(name)

    def _cast(self, term: Term) -> Text:
        (source,) = term.operands
        assert source.dtype is not None
        to, text = self._dtype(term), self._texts[source]
        if isinstance(term.detail, DType):
            raise NotInC(f"it computes with numbers of {term.detail}")
        if to == bool_:
            return infix(text, "!=", Text("0"))
        if is_float(source.dtype) and not is_float(to) and self._is_integer:
            x = self._atom(text, number_name(source.dtype))
            self._fail_if(f"!({_within(x.text, source.dtype, to)})")
            text = x
        return Text(f"({number_name(to)}){text.inside(7)}", 7)

    def _fail_if(self, condition: str) -> None:
        texts = enumerate(self._operands)
        given = [(self._operand_dtype(i), text) for i, text in texts if text is not None]
        failure = self._writer.failure(self._call, given)
        self._writer.line(f"if (RELAY_RARELY({condition})) {failure}")


def _integer_of(call_: Call) -> DType | None:
    dtype = number_dtype(type_of(call_))
    return dtype if dtype is not None and dtype.kind is DTypeKind.INT else None


def _name(call_: Call) -> str:
    assert isinstance(call_.callee, Op)
    return call_.callee.name


def _wide(text: Text) -> Text:
    """Return an operand of a check of overflow, which a literal has to fit."""
    is_number = text.text.lstrip("-").isdecimal()
    return Text(f"INT64_C({text})") if is_number else text


def _narrowed(text: Text, dtype: DType) -> Text:
    return text if dtype == int64 else Text(f"({number_name(dtype)}){text.inside(7)}", 7)


def _chosen(condition: Text, a: Text, b: Text) -> Text:
    return Text(f"({condition.inside(1)} ? {a.inside(1)} : {b.inside(1)})")


def _within(x: str, source: DType, to: DType) -> str:
    """Return the condition that the whole part of a float is an integer of a dtype."""
    low, high = int(lowest(to)), int(highest(to)) + 1
    lower = f"{x} >= {literal(float(low), source)}"
    if to != int64:  # the fraction below the lowest is cut off
        lower = f"{x} > {literal(float(low - 1), source)}"
        if source == float32 and to.bits == 32:
            lower = f"{x} >= {literal(float(low), source)}"
    return f"{lower} && {x} < {literal(float(high), source)}"


def literal(value: float, dtype: DType) -> Text:
    """Return a number as it is written in C, as one of a dtype."""
    if dtype == bool_:
        return Text("true" if value else "false")
    if not is_float(dtype):
        number = int(value)
        if number == -(2**63):
            return Text("INT64_MIN")
        text = Text(f"INT64_C({abs(number)})" if abs(number) >= 2**31 else str(abs(number)))
        return negative(text) if number < 0 else text
    suffix = "f" if dtype == float32 else ""
    value = float(nearest(float(value), dtype))
    if math.isnan(value):
        return Text(f'__builtin_nan{suffix}("")')
    text = Text(f"{abs(value)!r}{suffix}")
    if math.isinf(value):
        text = Text(f"__builtin_inf{suffix}()")
    return negative(text) if math.copysign(1.0, value) < 0 else text
