"""Invariants of a typed module: complete types, and every node agreeing with its parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..calls.attributes import same
from ..constant import constant_type
from ..dims import Dim, DimVar
from ..expr import (
    BindPattern,
    Call,
    Constant,
    Constructor,
    ConstructorPattern,
    Expr,
    Function,
    GlobalVar,
    If,
    LetBlock,
    LiteralPattern,
    Match,
    Pattern,
    RefCreate,
    RefRead,
    RefWrite,
    Tuple,
    TupleGet,
    TuplePattern,
    Var,
    type_of,
)
from ..layouts import result_type
from ..nested import leaves
from ..op import Clash, Op, Param, RuleCall, Stuck
from ..traverse import bound_vars
from ..types import (
    BOOL,
    STR,
    UNIT,
    AdtType,
    DTypeHole,
    FnType,
    RefType,
    SizeType,
    TensorType,
    TupleType,
    Type,
    TypeHole,
    dim_names,
    dims,
    show,
    substitution,
    subtypes,
)
from .scene import Finding, Scene


def types_are_complete(scene: Scene) -> Iterator[Finding]:
    """Every node and variable has a type without holes; a callee by name may leave it out."""
    whole: set[int] = set()
    for node, ty in _types(scene):
        if ty is None:
            yield node, "it has no type"
        elif id(ty) in whole:
            continue  # nodes share types
        elif _has_holes(ty):
            yield node, f"its type is open: {ty}"
        else:
            whole.add(id(ty))


def _types(scene: Scene) -> Iterator[tuple[Expr, Type | None]]:
    for node in scene.nodes:
        if isinstance(node, Var):
            continue  # looked at where it is bound: its type may be as long as the program
        by_name = isinstance(node, GlobalVar | Constructor) and node in scene.callees
        if not by_name or node.ty is not None:
            yield node, node.ty
        yield from ((var, var.ty) for var in bound_vars(node))
        if isinstance(node, Function):
            yield node, node.result


def _has_holes(ty: Type) -> bool:
    return any(d.has_holes() for d in dims(ty)) or any(
        isinstance(p, TypeHole) or (isinstance(p, TensorType) and isinstance(p.dtype, DTypeHole))
        for p in subtypes(ty)
    )


def attributes_are_normal(scene: Scene) -> Iterator[Finding]:
    """An operator call has all its attributes, in order, each in its normal form."""
    for node in scene.nodes:
        if not isinstance(node, Call) or not isinstance(node.callee, Op):
            continue
        expected = [p.name for p in node.callee.attributes]
        if list(node.attrs) != expected:
            yield node, f"it has the attributes {list(node.attrs)}, not {expected}"
            continue
        for param in node.callee.attributes:
            value = node.attrs[param.name]
            if any(map(_is_open, leaves(value))) or not _is_normal(param, value):
                yield node, f"the attribute {param.name} is {value!r}"


def _is_normal(param: Param, value: Any) -> bool:
    if param.convert is None:
        return True
    try:
        normal = param.convert(value)
    except TypeError:
        return False
    return same(value, normal)


def _is_open(value: Any) -> bool:
    return value is not None and (
        isinstance(value, Expr | DTypeHole | list | Mapping)
        or (isinstance(value, Dim) and value.has_holes())
    )


def operators_follow_their_rules(scene: Scene) -> Iterator[Finding]:
    """The type of an operator call is the one its rule gives for the types of its operands."""
    for node in scene.nodes:
        if not isinstance(node, Call) or not isinstance(node.callee, Op):
            continue
        op = node.callee
        types = tuple(type_of(a) for a in node.args)
        try:
            given = result_type(RuleCall(op, types, node.attrs, scene.agreement))
        except (Clash, Stuck) as reason:
            shown = ", ".join(show(t) for t in types)
            yield node, f"`{op.name}` does not take ({shown}): {reason}"
            continue
        # A rule that leaves the type open, as that of `fail`, agrees with any.
        if not isinstance(given, TypeHole) and not scene.agreement.types(type_of(node), given):
            yield node, f"`{op.name}` gives {show(given)}, not {show(type_of(node))}"


def calls_agree(scene: Scene) -> Iterator[Finding]:
    """Arguments have the types of the parameters, the call that of the result."""
    for node in scene.nodes:
        if not isinstance(node, Call) or isinstance(node.callee, Op):
            continue
        callee = callee_type(scene, node)
        if isinstance(callee, str):
            yield node, callee
        elif len(callee.params) != len(node.args):
            yield node, f"it passes {len(node.args)} arguments to {len(callee.params)} parameters"
        else:
            yield from _arguments(scene, node, callee)


def _arguments(scene: Scene, node: Call, callee: FnType) -> Iterator[Finding]:
    for arg, param in zip(node.args, callee.params, strict=True):
        if not scene.agreement.types(type_of(arg), param):
            yield arg, f"an argument is {show(type_of(arg))}, the parameter {show(param)}"
    if not scene.agreement.types(type_of(node), callee.result):
        yield node, f"the call is {show(type_of(node))}, the result {show(callee.result)}"


def callee_type(scene: Scene, call: Call) -> FnType | str:
    """Return the type of the callee, instantiated by the call; or why there is none."""
    match call.callee:
        case GlobalVar(name):
            function = scene.module.functions[name]
            declared, params = function.ty, function.type_params
        case Constructor(adt, name):
            return _constructor_type(scene, call, adt, name)
        case Op():
            return "an operator is no function"
        case other:
            declared = other.ty
            params = declared.type_params if isinstance(declared, FnType) else ()
    if not isinstance(declared, FnType):
        return "what is called is no function"
    are_dims = [isinstance(a, Dim) for a in call.type_args]
    if are_dims != [isinstance(p, DimVar) for p in params]:
        return f"{len(call.type_args)} type arguments do not fit {len(params)} type parameters"
    bare = FnType(declared.params, declared.result)
    found = substitution(params, call.type_args)(bare)
    assert isinstance(found, FnType)
    return found


def _constructor_type(scene: Scene, call: Call, adt: str, name: str) -> FnType | str:
    made = call.ty
    if not isinstance(made, AdtType) or made.name != adt:
        return f"a constructor of `{adt}` does not make {made}"
    return FnType(_fields(scene, made, name), made)


def _fields(scene: Scene, ty: AdtType, name: str) -> tuple[Type, ...]:
    """Return the types of a constructor's fields in a value of type `ty`.

    A size that the data type does not quantify belongs to each value: it agrees with any.
    """
    definition = scene.module.adts[ty.name]
    replace = substitution(definition.type_params, ty.args)
    fields = definition.constructor(name).fields
    for own in frozenset[str]().union(*map(dim_names, fields)):
        replace.dims.setdefault(own, Dim.of(f"{own}?"))
    return tuple(replace(f) for f in fields)


def nodes_agree(scene: Scene) -> Iterator[Finding]:
    """The type of a node that is no call follows from the types of its parts."""
    for node in scene.nodes:
        for part, actual, expected in _claims(node):
            if expected is None or not scene.agreement.types(actual, expected):
                shown = "another kind of type" if expected is None else show(expected)
                yield part, f"it is {show(actual)}, not {shown}"


_Claim = tuple[Expr, Type, "Type | None"]
"""A part of a node, its type, and the type it should have; None where no type would do."""


def _claims(node: Expr) -> Iterator[_Claim]:
    match node:
        case Constant(value):
            yield node, type_of(node), constant_type(value, type_of(node))
        case Tuple(fields):
            yield node, type_of(node), TupleType(tuple(type_of(f) for f in fields))
        case TupleGet(value, index):
            yield node, type_of(node), _field_type(type_of(value), index)
        case If() | Match():
            yield from _branch_claims(node)
        case LetBlock(bindings, body):
            yield body, type_of(body), type_of(node)
            for binding in bindings:
                yield binding.value, type_of(binding.value), type_of(binding.var)
        case Function(params, body, result, type_params):
            assert result is not None
            declared = FnType(tuple(type_of(p) for p in params), result, type_params)
            yield node, type_of(node), declared
            yield body, type_of(body), result
        case RefCreate() | RefRead() | RefWrite():
            yield from _cell_claims(node)
        case _:
            pass


def _field_type(ty: Type, index: int) -> Type | None:
    if not isinstance(ty, TupleType) or index >= len(ty.fields):
        return None
    return ty.fields[index]


def _branch_claims(node: If | Match) -> Iterator[_Claim]:
    if isinstance(node, If):
        yield node.condition, type_of(node.condition), BOOL
        arms = (node.then, node.otherwise)
    else:
        arms = tuple(c.body for c in node.clauses)
        for guard in (c.guard for c in node.clauses):
            if guard is not None:
                yield guard, type_of(guard), BOOL
    for arm in arms:
        yield arm, type_of(arm), type_of(node)


def _cell_claims(node: RefCreate | RefRead | RefWrite) -> Iterator[_Claim]:
    match node:
        case RefCreate(value):
            yield node, type_of(node), RefType(type_of(value))
        case RefRead(ref):
            yield ref, type_of(ref), RefType(type_of(node))
        case RefWrite(ref, value):
            yield ref, type_of(ref), RefType(type_of(value))
            yield node, type_of(node), UNIT


def patterns_fit(scene: Scene) -> Iterator[Finding]:
    """A pattern is of the type of the value it is matched with, and so are its variables."""
    for node in scene.nodes:
        if isinstance(node, Match):
            for clause in node.clauses:
                yield from _pattern_fits(scene, clause.pattern, type_of(node.value))


def _pattern_fits(scene: Scene, pattern: Pattern, ty: Type) -> Iterator[Finding]:
    pending = [(pattern, ty)]
    while pending:
        current, ty = pending.pop()
        match current, ty:
            case BindPattern(Var() as var, inner), _:
                if not scene.agreement.types(type_of(var), ty):
                    yield var, f"`{var.name}` is {show(type_of(var))}, the value {show(ty)}"
                pending += () if inner is None else ((inner, ty),)
            case ConstructorPattern(adt, name, fields), AdtType(other) if adt == other:
                pending += zip(fields, _fields(scene, ty, name), strict=True)
            case TuplePattern(fields), TupleType(types) if len(fields) == len(types):
                pending += zip(fields, types, strict=True)
            case ((ConstructorPattern() | TuplePattern()), _):
                yield current, f"a value of {show(ty)} is matched with it"
            case LiteralPattern(value), _:
                if not _literal_fits(value, ty):
                    yield current, f"a value of {show(ty)} is matched with {value!r}"
            case _:
                pass


def _literal_fits(value: bool | float | str, ty: Type) -> bool:
    match ty:
        case SizeType():
            return isinstance(value, int) and not isinstance(value, bool)
        case TensorType(()):
            return not isinstance(value, str)
        case _:
            return isinstance(value, str) and ty == STR
