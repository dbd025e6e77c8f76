"""From a clash in the solver to a problem with the user's places, names and types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ...diagnostics.catalogue.dtypes import Cast, MixedWidths
from ...diagnostics.catalogue.layouts import Conversion, LayoutMismatch
from ...diagnostics.catalogue.lists import MixedElements
from ...diagnostics.catalogue.patterns import AlternativesMismatch
from ...diagnostics.catalogue.types import (
    ArgumentMismatch,
    ConditionMismatch,
    LoopMismatch,
    NotStatic,
    OperatorMismatch,
    UnpackMismatch,
)
from ...diagnostics.diagnostic import Label, Problem
from ...diagnostics.source import Construct
from ...ir.calls.attributes import WrongAttribute
from ...ir.dims import Dim
from ...ir.expr import Call, Constructor, Expr, Function, GlobalVar, Tuple, Var, use_of
from ...ir.layouts import LayoutClash
from ...ir.op import Clash
from ...ir.traverse import post_order
from ...ir.types import (
    DEFAULT_DTYPE,
    INT,
    PRELUDE,
    UNIT,
    AdtType,
    AnyDType,
    DType,
    DTypeHole,
    DTypeKind,
    FnType,
    SizeType,
    TensorType,
    TupleType,
    Type,
    TypeHole,
    TypeVar,
    element_name,
    show,
    subtypes,
)
from ...operators.host.loop import element_at
from ...operators.primitive.compare import logical_not
from ...operators.primitive.extrema import max_, min_
from ...operators.primitive.index import index
from ...prelude.library import LIST, element_of, inner_of
from ...text.reader.vocabulary import wrong_attribute
from ..operators import OperatorCall, ResultClash, StaticNeeded, WidthsMixed
from ..overloads.joined_lists import joins_lists, mixed_lists
from ..solver import Solver

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...diagnostics.source import Span


def explain_operator(solver: Solver, call: OperatorCall, clash: Exception) -> Problem:
    """Return the problem of an operator call that cannot be typed."""
    span = call.call.span
    if call.op is logical_not and (optional := _optional_operand(solver, call)) is not None:
        way = f"write `{operand_text(call.call.args[0])} is None`"
        return ConditionMismatch(span, show(optional), way, is_optional=True)
    match clash:
        case StaticNeeded():
            return _not_static(call, clash, show(solver.resolve(clash.actual)))
        case WrongAttribute():
            return wrong_attribute(call.call, call.op, clash)
        case WidthsMixed():
            return _mixed(solver, call, clash)
        case LayoutClash():
            return _in_other_layout(solver, call, clash)
        case ResultClash():
            return _of_result(solver, call, clash)
        case Clash() if _is_row_unpacked(solver, call):
            return _row_unpacked(solver, call)
        case Clash():
            return _unfit(solver, call, clash)
        case _:
            raise AssertionError(f"not a clash: {clash!r}")


def _unfit(solver: Solver, call: OperatorCall, clash: Clash) -> Problem:
    labels = _labels(call.call, clash.labels)
    help_ = clash.help
    if not labels:
        labels = _operand_types(solver, call)
    if help_ is None and any(inner_of(solver.shallow(t)) is not None for t in call.types):
        help_ = _test_first(solver, call)
    cast = _cast(call.call, clash.cast)
    return OperatorMismatch(call.call.span, clash.message, labels, help_, cast)


def _of_result(solver: Solver, call: OperatorCall, clash: ResultClash) -> Problem:
    span, wanted = call.call.span, clash.wanted
    text = span.text if len(span.text) <= _SHORT and "\n" not in span.text else "this"
    shown = f"`{text}`" if text != "this" else text
    message = f"{shown} is {show(clash.actual)} where {show(wanted)} is needed"
    assert isinstance(wanted.dtype, DType)
    cast = Cast(text if text != "this" else "x", str(wanted.dtype), None)
    return OperatorMismatch(span, message, _operand_types(solver, call), cast.help)


def _in_other_layout(solver: Solver, call: OperatorCall, clash: LayoutClash) -> Problem:
    operand = call.call.args[clash.index]
    shown = show(solver.resolve(call.types[clash.index]))
    place = use_of(operand, call.call.span)
    way = Conversion(operand_text(operand), clash.wanted.value, place)
    label = Label(place or operand.span, f"this is {shown}")
    return LayoutMismatch(call.call.span, clash.message, label, way)


def _not_static(call: OperatorCall, clash: StaticNeeded, actual: str) -> Problem:
    if clash.argument == "spec":
        what = f"a bound of a slice is an integer, not {actual}"
        way = "divide with `//`: `x[: n // 2]`"
        return OperatorMismatch(clash.expr.span, what, (), way)
    if call.op in (max_, min_) and clash.argument == "dim":
        what = f"`relay.{call.op.name}` takes one tensor, and the number of a dim"
        way = f"of two tensors, element by element: `relay.{call.op.name}imum(a, b)`"
        return OperatorMismatch(call.call.span, what, (), way)
    return NotStatic(clash.expr.span, call.op.name, clash.argument, actual)


def _optional_operand(solver: Solver, call: OperatorCall) -> Type | None:
    """Return the type of the first operand of a call if that is an optional."""
    ty = solver.resolve(call.types[0]) if call.types else UNIT
    return ty if inner_of(ty) is not None else None


def _is_row_unpacked(solver: Solver, call: OperatorCall) -> bool:
    """Return whether a loop over a tensor takes its rows for tuples."""
    is_tensor = isinstance(solver.shallow(call.types[0]), TensorType) if call.types else False
    is_row = call.op in (element_at, index)
    return is_row and is_tensor and isinstance(solver.shallow(call.result), TupleType)


def _row_unpacked(solver: Solver, call: OperatorCall) -> Problem:
    rows, wanted = solver.resolve(call.types[0]), solver.shallow(call.result)
    assert isinstance(rows, TensorType)
    assert isinstance(wanted, TupleType)
    row = TensorType(rows.shape[1:], rows.dtype)
    return explain_unpacking(call.call.span, len(wanted.fields), row, call.call)


def explain_unpacking(span: Span, names: int, actual: Type, value: Expr | None) -> Problem:
    """Return the problem of a value that is unpacked into names and does not have as many fields;
    `value` is the expression that gives it, if the program has one."""
    fields = len(actual.fields) if isinstance(actual, TupleType) else None
    is_list = element_of(actual) is not None
    has_parts = is_list or (isinstance(actual, TensorType) and actual.rank > 0)
    is_element = isinstance(value, Call) and value.callee in (element_at, index)
    iterated = operand_text(value.args[0]) if isinstance(value, Call) and is_element else None
    text = "x" if value is None or is_element else operand_text(value)
    return UnpackMismatch(span, names, show(actual), fields, text, has_parts, iterated)


def _test_first(solver: Solver, call: OperatorCall) -> str:
    pairs = zip(call.call.args, call.types, strict=False)
    optionals = (a for a, t in pairs if inner_of(solver.shallow(t)) is not None)
    x = operand_text(next(optionals, call.call))
    return f"test it first: `if {x} is None`, or `match {x}` with `case None`"


def _labels(call: Call, texts: dict[int, str]) -> tuple[Label, ...]:
    found: list[Label] = []
    for position, text in texts.items():
        if position < len(call.args):
            found.extend(_places(call.args[position], text, call.span))
    return tuple(found)


def _places(operand: Expr, text: str, within: Span) -> list[Label]:
    """Label the operand, and the place where its name comes from if it is a name."""
    place = use_of(operand, within) or operand.span
    labels = [Label(place, text)]
    if isinstance(operand, Var) and operand.name and place != operand.span:
        labels.append(Label(operand.span, f"`{operand.name}` comes from here"))
    return labels


def _operand_types(solver: Solver, call: OperatorCall) -> tuple[Label, ...]:
    found: list[Label] = []
    for param, operand, ty in zip(call.op.operands, call.call.args, call.types, strict=False):
        ty = solver.resolve(ty)
        # What the user wrote as several arguments, or as an index.
        is_apart = param.name == "indices" or operand.span == call.call.span
        if isinstance(operand, Tuple) and isinstance(ty, TupleType) and is_apart:
            for field, part in zip(operand.fields, ty.fields, strict=True):
                text = f"this is {show(solver.resolve(part))}"
                found.extend(_places(field, text, call.call.span))
        else:
            found.extend(_places(operand, f"this is {show(ty)}", call.call.span))
    return tuple(found)


def _mixed(solver: Solver, call: OperatorCall, clash: WidthsMixed) -> Problem:
    labels: list[Label] = []
    narrow = min(clash.dtypes, key=lambda i: clash.dtypes[i].bits)
    wider = max(clash.dtypes.values(), key=lambda d: d.bits)
    for position in clash.dtypes:
        operand = call.call.args[position]
        ty = solver.resolve(call.types[position])
        labels.extend(_places(operand, f"this is {show(ty)}", call.call.span))
    operand = call.call.args[narrow]
    place, text = use_of(operand, call.call.span), operand_text(operand)
    return MixedWidths(call.call.span, call.op.name, tuple(labels), str(wider), text, place)


def _cast(call: Call, wanted: tuple[int, DType] | None) -> Cast | None:
    """Return the cast of an operand that a rule names."""
    if wanted is None or wanted[0] >= len(call.args):
        return None
    operand, dtype = call.args[wanted[0]], str(wanted[1])
    return Cast(operand_text(operand), dtype, use_of(operand, call.span))


def explain_argument(
    call: Call,
    declared: Function | None,
    position: int,
    actual: Type,
    wanted: Type,
    why: str,
    types: Sequence[Type],
    *,
    is_open: bool,
) -> Problem:
    """Return the problem of an argument that its parameter does not take; `is_open` if the type of
    the function is still being found, so that it is called at the sizes that it is called with.
    `types` are those of all arguments."""
    of_list = _explain_list(call, position, actual, wanted, why, types)
    if of_list is not None:
        return of_list
    argument = call.args[position]
    name = _called(call, declared)
    place, parameter, written = call.span, f"argument {position + 1}", wanted
    role, means = "" if len(call.args) == 1 else f" as argument {position + 1}", None
    witness: int | None = None
    if declared is not None:
        variable = declared.params[position]
        place, parameter = variable.span, variable.name
        written = wanted if variable.ty is None or not _is_written(variable.ty) else variable.ty
        witness = _teller(declared, position)
        role = f" as `{parameter}`"
    elif isinstance(call.callee, Var) and isinstance(call.callee.ty, FnType):
        means = Label(call.callee.span, f"`{name}` is {show(call.callee.ty)}")
    local = call.callee.span if isinstance(call.callee, Var) else None
    if local is not None and local.construct is Construct.LOOP:
        return _loop_mismatch(call, declared, position, actual, wanted, (parameter, place))
    if local is not None and local.construct is Construct.CASE and local == call.span:
        return AlternativesMismatch(call.span, parameter, show(wanted), show(actual))
    is_name = isinstance(argument, Var)
    return ArgumentMismatch(
        use_of(argument, call.span) or call.span,
        name,
        role,
        means or Label(place, f"`{parameter}` is {show(written)}"),
        show(written),
        show(actual),
        f"`{argument.name}` is {show(actual)}" if is_name else f"this is {show(actual)}",
        Label(argument.span, f"`{argument.name}` comes from here") if is_name else None,
        why,
        f"annotate what `{name}` returns, with `Any` for sizes that change, and it may call itself "
        "at other sizes"
        if is_open and _differ_in_sizes(actual, wanted)
        else _way_out(operand_text(argument), actual, wanted),
        _argument_cast(argument, call, actual, wanted),
        None if witness is None else _shown_by(call.args[witness], show(wanted), types[witness]),
    )


def _explain_list(
    call: Call, position: int, actual: Type, wanted: Type, why: str, types: Sequence[Type]
) -> Problem | None:
    """Return the problem of an argument of a list's constructor, of `+` of lists or of an index;
    None for any other call."""
    if _is_part_of_list(call) and position == 0:
        return _mixed_elements(call, actual, wanted, why)
    if _is_part_of_list(call) and isinstance(actual, AdtType) and position == 1:
        return _mixed_lists(call, actual, wanted, why)
    if joins_lists(call):
        return mixed_lists(call, types)
    if call.span.construct is not Construct.ITEM or position != 1:
        return None
    argument = call.args[position]
    place = Label(use_of(argument, call.span) or argument.span, f"this is {show(actual)}")
    cast = _argument_cast(argument, call, actual, wanted)
    what = f"an index of a list is an integer, not {show(actual)}"
    return OperatorMismatch(call.span, what, (place,), None, cast)


def _called(call: Call, declared: Function | None) -> str:
    """Return the name of the function that a call calls, as the user knows it."""
    if declared is not None and declared.name and not isinstance(call.callee, Var):
        return declared.name
    if isinstance(call.callee, Var | GlobalVar):
        return call.callee.name.removeprefix(PRELUDE)
    return "this function"


def _teller(declared: Function, position: int) -> int | None:
    """Return the index of the argument that determines the type parameters of a parameter; None if
    there is none before it."""
    wanted = _type_vars(declared.params[position].ty)
    before = (_type_vars(p.ty) for p in declared.params[:position])
    return next((i for i, found in enumerate(before) if wanted & found), None)


def _type_vars(ty: Type | None) -> frozenset[str]:
    return frozenset(p.name for p in subtypes(ty or UNIT) if isinstance(p, TypeVar))


def _shown_by(witness: Expr, wanted: str, actual: Type) -> tuple[str, Label]:
    """Return the type that a parameter must have here, and the argument that requires it."""
    shown = show(INT if isinstance(actual, SizeType) else actual)
    name = f"`{witness.name}`" if isinstance(witness, Var) and witness.name else "this"
    return wanted, Label(witness.span, f"{name} is {shown}")


def _differ_in_sizes(actual: Type, wanted: Type) -> bool:
    """Return whether two types are those of tensors of different sizes, and alike else."""
    match actual, wanted:
        case TensorType(a, p), TensorType(b, q):
            return p == q and len(a) == len(b)
        case _:
            return False


def _is_part_of_list(call: Call) -> bool:
    match call.callee:
        case Constructor(adt, "Cons"):
            return adt == LIST
        case _:
            return False


def _mixed_lists(call: Call, actual: AdtType, wanted: Type, why: str) -> Problem:
    """Return the problem of an element that wants another rest than the actual one."""
    own = wanted.args[0] if isinstance(wanted, AdtType) else wanted
    others = actual.args[0] if actual.name == LIST else actual
    assert not isinstance(own, Dim)
    assert not isinstance(others, Dim)
    return _mixed_elements(call, own, others, why)


def _mixed_elements(call: Call, own: Type, others: Type, why: str) -> Problem:
    """Return the problem of an element that is put before elements of another type."""
    first, rest = call.args
    place = rest.args[0] if isinstance(rest, Call) and rest.args else rest
    known = "" if "?" in why else why
    at = use_of(first, call.span) or call.span
    other = use_of(place, call.span) or place.span
    return MixedElements(at, _shown(own), other, _shown(others), known)


def _shown(ty: Type) -> str:
    """Return a type, that of a number literal as the one it has alone."""
    match ty:
        case TensorType((), DTypeHole(weak=DTypeKind() as weak)):
            return show(TensorType((), DEFAULT_DTYPE[weak]))
        case TupleType(fields):
            return f"tuple[{', '.join(map(_shown, fields))}]"
        case SizeType():
            return show(INT)
        case _:
            return show(ty)


def _is_written(ty: Type) -> bool:
    return not any(isinstance(part, TypeHole) for part in subtypes(ty))


def _way_out(text: str, actual: Type, wanted: Type) -> str | None:
    match actual, wanted:
        case TensorType(a, p, m), TensorType(b, q, n) if m is not n and len(a) == len(b) and p == q:
            return Conversion(text, n.value, None).help
        case TensorType(a, DType()), TensorType(b, _) if len(a) + 1 == len(b):
            return f"add the missing dimension: relay.unsqueeze({text}, 0) makes a batch of one"
        case _, TypeVar(name):
            return (
                f"{name} is one type in each call, and the caller chooses it: if it always is "
                f"{show(actual)}, write that in place of {name}"
            )
        case FnType(given), FnType(taken) if len(given) != len(taken):
            count = f"{len(taken)} argument{'s' * (len(taken) != 1)}"
            return f"it is called with {count}: pass a function that takes so many"
        case FnType(_, given), FnType(_, taken) if given != taken and _is_written(taken):
            return f"its result is {show(given)}: make it {show(taken)}"
        case TupleType(()), _ if element_of(wanted) is not None:
            return "an empty list is `[]`, and as a tuple `tuple()`"
        case AdtType(), AdtType(name, (*args, _)) if element_name(name) is not None:
            element = show(AdtType(element_name(name) or name, tuple(args)))
            return (
                f"values side by side are annotated `Batch[{element}, N]`, and a list of them is "
                "that where a script passes it; `relay.vmap` of a class makes them of their fields"
            )
        case _ if inner_of(actual) == wanted:
            return "it may be None: test that with `is not None` first"
        case _:
            return None


def _argument_cast(argument: Expr, call: Call, actual: Type, wanted: Type) -> Cast | None:
    match actual, wanted:
        case TensorType(a, DType() as x), TensorType(b, DType() as y) if (
            len(a) == len(b) and x != y
        ):
            return Cast(operand_text(argument), str(y), use_of(argument, call.span))
        case _:
            return None


def operand_text(operand: Expr) -> str:
    """Return an operand as the user would write it again: its name, or its text if it is short."""
    text = operand.name if isinstance(operand, Var) else operand.span.text
    return text if 0 < len(text) <= _SHORT and "\n" not in text else "x"


_SHORT: Final = 40


def _loop_mismatch(
    call: Call,
    loop: Function | None,
    position: int,
    actual: Type,
    wanted: Type,
    carried: tuple[str, Span],
) -> LoopMismatch:
    """Return the problem of a carried name, with the place where it is bound before the loop."""
    name, place = carried
    argument, resized = call.args[position], _differ_in_sizes(actual, wanted)
    again = None if loop is None else _next_round(call, loop, position)
    if again is not None and again is not argument:  # the call that enters the loop came last
        start = argument.span
        return LoopMismatch(again.span, name, show(actual), start, show(wanted), resized)
    return LoopMismatch(argument.span, name, show(wanted), place, show(actual), resized)


def _next_round(call: Call, loop: Function, position: int) -> Expr | None:
    """Return the argument at a position of the call that starts the next round of a loop; None if
    the call itself is one of those that do."""
    rounds = [n for n in post_order(loop) if isinstance(n, Call) and n.callee is call.callee]
    if not rounds or any(n is call for n in rounds):
        return None
    return rounds[0].args[position]


def one_type(first: Type, second: Type) -> str | None:
    """Return a help that says how two types of tensors become one; None for other types."""
    match first, second:
        case TensorType(a), TensorType(b) if len(a) != len(b):
            ranks = f"{len(a)} and {len(b)}"
            way = "index or reduce the one, or `relay.expand` the other"
            return f"the ranks are {ranks}: make both branches give one shape; {way}"
        case TensorType(a, p), TensorType(b, q) if p != q:
            dtype = max(_dtype(p), _dtype(q), key=lambda d: (d.kind.value, d.bits))
            also = "" if a == b else ", and slice or pad one to the shape of the other"
            return f"cast one of them: `relay.cast(x, relay.{dtype})`{also}"
        case TensorType(layout=m), TensorType(layout=n) if m is not n:
            return f'give both one layout: `relay.to_layout(x, "{m.value}")` for the other'
        case TensorType(), TensorType():
            return "make both branches give one shape: slice, pad or reshape one of them"
        case _:
            return None


def _dtype(dtype: AnyDType) -> DType:
    """Return a dtype; of a number without one that which it has alone."""
    if isinstance(dtype, DType):
        return dtype
    return DEFAULT_DTYPE[dtype.weak or DTypeKind.FLOAT]
