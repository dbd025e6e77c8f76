"""The first walk of inference: a type, possibly with holes, for every node, and the constraints.

Walks are generators driven by `traverse.run`; chains of let blocks are loops. A constraint is
tried when it is made; one that is `Stuck` waits in the work-list.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Final, assert_never, final

from ..dataclass import dataclass
from ..diagnostics.catalogue.text import MalformedType
from ..diagnostics.diagnostic import CheckError
from ..ir.dims import Dim
from ..ir.expr import (
    Atom,
    Call,
    Clause,
    Composite,
    Constant,
    Constructor,
    Expr,
    Flavour,
    Function,
    GlobalVar,
    If,
    LetBlock,
    Match,
    RefCreate,
    RefRead,
    RefWrite,
    Transform,
    Tuple,
    TupleGet,
    Var,
    use_of,
)
from ..ir.op import Op
from ..ir.traverse import Steps, attr_exprs, pattern_vars, run, spine
from ..ir.types import (
    UNIT,
    UNKNOWN,
    AdtType,
    FnType,
    RefType,
    Substitution,
    TupleType,
    Type,
    TypeHole,
    dim_names,
    substitution,
)
from ..operators.host.failing import no_element
from ..operators.host.loop import by_type, map_leaves
from .any_rank import with_ranks_open
from .conditions import ConditionConstraint
from .constants import literal_type, out_of_range
from .constraints import (
    ApplyConstraint,
    FieldConstraint,
    FlowConstraint,
    JoinConstraint,
    OperatorConstraint,
)
from .dim_scoping.unavailable import shown_by, with_bound_sizes
from .joins import arrival
from .operators import OperatorCall, Reading
from .overloads.overloads import reading
from .own_sizes import Adapt, adapting, arriving
from .patterns import Patterns
from .records import maker_of, with_own_sizes
from .solver import CheckSite, Solver
from .user_derivatives import AnyTransform, constraint_of
from .worklist import Worklist

if TYPE_CHECKING:
    from ..diagnostics.source import Span
    from ..ir.module import AdtDef


@final
@dataclass(frozen=True, slots=True)
class Scheme:
    """The type of a checked global function, and the sizes in it that only the run determines."""

    type: FnType
    function: Function


@final
class Generator:
    """Assigns a type to every node of a group of functions. One use: walk, then read the tables."""

    def __init__(
        self,
        solver: Solver,
        schemes: Mapping[str, Scheme],
        adts: Mapping[str, AdtDef],
        linked: Callable[[str], Scheme],
        unknown: Collection[str] = (),
    ) -> None:
        """`linked` gives functions of the prelude that the program itself does not mention. Of the
        functions in `unknown` nothing is known, not even that they exist."""
        self.solver: Final = solver
        self.work: Final = Worklist(solver)
        self.types: Final[dict[Expr, Type]] = {}
        self.vars: Final[dict[Var, Type]] = {}
        self.calls: Final[dict[Call, OperatorCall]] = {}
        self.instances: Final[dict[Expr, tuple[Type | Dim, ...]]] = {}
        self.literals: Final[dict[Var, Constant]] = {}
        self.monomorphic: Final[dict[str, FnType]] = {}
        """The functions of this group, whose types are still being found."""
        self.applied: Final[dict[Call, ApplyConstraint]] = {}
        """The calls of functions."""
        self.arrived: Final[dict[Function | Var, Reading]] = {}
        """The results of functions, and values of annotated names, that were brought to other
        types."""
        self.transforms: Final[dict[Transform, AnyTransform]] = {}
        self.around: Final[dict[Function, Function | None]] = {}
        """The local functions, each with the one around it."""
        self._own: Substitution = Substitution({}, {})
        """The type arguments of the local functions around."""
        self._shown: frozenset[str] = frozenset()  # the sizes that parameters around name
        self._instances: Final[dict[Function, Substitution]] = {}
        self._place: CheckSite | None = None
        """Where sizes are compared that the function being mentioned takes to be equal."""
        self._defined: Final[dict[Var, FnType]] = {}
        """The local functions being walked. What calls itself gives no size: its arms differ."""
        self._functions: Final[dict[Var | str, Function]] = {}
        """The functions that names stand for, for messages about their calls."""
        self._schemes: Final = schemes
        self.adts: Final = adts
        self.patterns: Final = Patterns(
            solver, self.work, adts, self.vars, self.declare_var, self.constructor
        )
        self.adapt: Final[Adapt | None] = adapting(adts, solver, self.vars, self.walk)
        self._linked: Final = linked
        self._unknown: Final = unknown

    def declare(self, name: str, function: Function, *, recursive: bool) -> None:
        """Set the types of the parameters of a global function to those annotated.

        What a recursive function returns is never a size: its arms may give different ones.
        """
        for param in function.params:
            self.declare_var(param)
        params = tuple(self.vars[p] for p in function.params)
        result = self._result(function, params, wide=recursive)
        self._functions[name] = function
        self.monomorphic[name] = FnType(params, result)

    def define(self, name: str, function: Function) -> Steps[None]:
        """Walk the body of a declared function."""
        self._shown, self._own = shown_by(function), Substitution({}, {})
        actual = yield self.walk(function.body)
        ty = self.types[function] = self.monomorphic[name]
        self.work.add(self._returns(function, actual, ty.result))

    def declare_var(self, var: Var, *, wide: bool = False) -> Type:
        """Return the type of a variable: annotated, or unknown."""
        if var.ty is None or (wide and var.ty == UNKNOWN):
            found: Type = self.solver.fresh_wide(var) if wide else self.solver.fresh()
        else:
            found = self._filled(var.ty, var.span, var.name)
        self.vars[var] = found
        return found

    def _filled(self, ty: Type, span: Span, name: str | None = None) -> Type:
        """Return a declared type, unknown where the declaration leaves it open."""
        found = self._own(self.solver.fill_unknown(ty))
        return with_ranks_open(found, self.solver, self.work, span, name)

    def _result(self, function: Function, params: tuple[Type, ...], *, wide: bool) -> Type:
        """Return an annotated result type; a size that no parameter mentions is one to be found."""
        known = frozenset[str]().union(*(dim_names(p) for p in params))
        found = self._annotated(function, wide=wide)
        sizes = {n: self.solver.fresh_dim_hole() for n in sorted(dim_names(found) - known)}
        return Substitution(sizes, {})(found)

    def _annotated(self, function: Function, *, wide: bool) -> Type:
        """Return the type of a function's result as far as it is annotated."""
        if function.result is not None:
            return self._filled(function.result, spine(function.body)[1].span)
        return self.solver.fresh_wide(function, "result") if wide else self.solver.fresh()

    def walk(self, expr: Expr) -> Steps[Type]:
        """Return the type of an expression."""
        ty = self._atom(expr) if isinstance(expr, Atom) else (yield self._inner(expr))
        self.types[expr] = ty
        return ty

    def _each(self, exprs: tuple[Expr, ...]) -> Steps[tuple[Type, ...]]:
        """Return the types of expressions, in order."""
        types: list[Type] = []
        for expr in exprs:
            # Atoms, the commonest operands, need no step of their own.
            ty = self._atom(expr) if isinstance(expr, Atom) else (yield self._inner(expr))
            self.types[expr] = ty
            types.append(ty)
        return tuple(types)

    def _atom(self, expr: Atom) -> Type:
        match expr:
            case Var():
                if expr in self._defined:
                    self.solver.widen(self._defined[expr].result, (expr, "result"))
                return self.vars[expr]
            case Constant():
                return self._constant(expr)
            case GlobalVar():
                return self._global(expr)
            case Constructor():
                return self.constructor(expr)
            case _:
                assert_never(expr)

    def _inner(self, expr: Composite) -> Steps[Type]:
        match expr:
            case Call():
                return self._call(expr)
            case LetBlock():
                return self._let(expr)
            case If():
                return self._if(expr)
            case Tuple():
                return self._tuple(expr)
            case TupleGet():
                return self._field(expr)
            case Function():
                return self._function(expr)
            case Match():
                return self._match(expr)
            case RefCreate() | RefRead() | RefWrite():
                return self._ref(expr)
            case Transform():
                return self._transform(expr)
            case _:
                assert_never(expr)

    def _constant(self, expr: Constant) -> Type:
        self.work.problems.extend(out_of_range(expr))
        if expr.ty is not None:
            return self._filled(expr.ty, expr.span)
        return literal_type(expr, self.solver)

    def _global(self, expr: GlobalVar) -> Type:
        self.instances[expr] = ()
        if expr.name in self._unknown:
            return self.solver.fresh()
        scheme = self._schemes.get(expr.name)
        if scheme is None and expr.name not in self.monomorphic:
            scheme = self._linked(expr.name)
        if scheme is None:
            return self.monomorphic[expr.name]
        return self._instantiate(expr, scheme)

    def _instantiate(self, expr: Expr, scheme: Scheme) -> Type:
        args = self.instances[expr] = self.solver.fresh_args(expr, scheme.type.type_params)
        replace = substitution(scheme.type.type_params, args)
        bound = {p.name for p in scheme.type.type_params}
        for name in sorted(dim_names(scheme.type.result) - bound):
            replace.dims[name] = self.solver.fresh_dim(name.rstrip("0123456789").rstrip("_"))
        self.solver.span = expr.span
        for assumption in (a for a in scheme.function.assumptions if not a.is_inside):
            left, right = replace.dim(assumption.left), replace.dim(assumption.right)
            self.work.equate(left, right, expr.span, self._place)
        return replace(FnType(scheme.type.params, scheme.type.result))

    def constructor(self, expr: Constructor, *, is_opened: bool = False) -> FnType:
        """Return the type of a constructor at an instance of its own, for a match if it is
        opened."""
        adt = self.adts[expr.adt]
        args = self.instances[expr] = self.solver.fresh_args(expr, adt.type_params)
        constructor = adt.constructor(expr.name)
        replace = substitution(adt.type_params, args)
        replace = with_own_sizes(self.solver, constructor, replace, is_opened=is_opened)
        return FnType(tuple(replace(f) for f in constructor.fields), AdtType(adt.name, args))

    def _call(self, expr: Call) -> Steps[Type]:
        if isinstance(expr.callee, Op):
            return (yield self._operator(expr, expr.callee))
        if isinstance(expr.callee, GlobalVar):
            self._place = CheckSite(expr, is_after=False)
        callee = yield self.walk(expr.callee)
        self._place = None
        self._take_type_args(expr, expr.callee)
        types = yield self._each(expr.args)
        result = self.solver.fresh()
        declared = self._declaration(expr.callee)
        is_open = isinstance(expr.callee, GlobalVar) and expr.callee.name not in self._schemes
        constraint = ApplyConstraint(expr, callee, types, result, declared, self.adapt, is_open)
        self.applied[expr] = constraint
        self.work.add(constraint)
        return result

    def _take_type_args(self, call: Call, callee: Expr) -> None:
        """Let the instance be the one that the call names, as only a text can. A function that is
        being inferred together with its caller has one instance, which it names itself."""
        args, given = self.instances.get(callee, ()), call.type_args
        if not args or not given:
            return
        kinds = [isinstance(a, Dim) for a in args]
        if kinds != [isinstance(g, Dim) for g in given]:
            wanted = ", ".join("a dim" if is_dim else "a type" for is_dim in kinds)
            raise CheckError(
                MalformedType(call.span, "the type arguments do not fit the function", wanted)
            )
        self.solver.span, self.solver.place = call.span, CheckSite(call, is_after=False)
        for arg, named in zip(args, given, strict=True):
            if isinstance(arg, Dim) and isinstance(named, Dim):
                self.solver.unify_dims(arg, named)
            elif not isinstance(arg, Dim) and not isinstance(named, Dim):
                self.solver.unify(arg, self.solver.fill_unknown(named))

    def _declaration(self, callee: Expr) -> Function | None:
        match callee:
            case Var():
                return self._functions.get(callee)
            case Constructor(adt, name):
                return maker_of(self.adts[adt], name)
            case GlobalVar(name) if name in self._schemes:
                return self._schemes[name].function
            case GlobalVar(name):
                return self._functions.get(name)
            case _:
                return None

    def _operator(self, expr: Call, op: Op) -> Steps[Type]:
        # Functions that are copied, or chosen, where the call is read are typed there.
        is_later = op in (map_leaves, by_type)
        types = yield self._each(expr.args[1:] if is_later else expr.args)
        types = (UNIT, *types) if is_later else types
        attr_types: dict[Expr, Type] = {}
        for inside in attr_exprs(expr):
            attr_types[inside] = yield self.walk(inside)
        call = OperatorCall(expr, op, types, self.solver.fresh(), attr_types, self._own)
        self.calls[expr] = call
        self.work.add(OperatorConstraint(call, self._read, self.adts))
        return call.result

    def _read(self, call: OperatorCall) -> bool:
        """Type a call as its reading, and return whether it has one. Raises Stuck and Clash."""
        found = reading(call, self.solver, self.adts)
        if found is None:
            return False
        call.reading = found
        for var, operand in found.operands.items():
            self.vars[var] = self.types[operand]
        settling, self.solver.settling = self.solver.settling, False
        self.solver.unify(call.result, run(self.walk(found.body)))
        self.solver.settling = settling
        return True

    def _let(self, expr: LetBlock) -> Steps[Type]:
        blocks: list[LetBlock] = []
        body: Expr = expr
        while isinstance(body, LetBlock):
            blocks.append(body)
            yield self._bindings(body)
            body = body.body
        ty = yield self.walk(body)
        for block in blocks:
            self.types[block] = ty
        return ty

    def _bindings(self, block: LetBlock) -> Steps[None]:
        if block.flavour is Flavour.REC:
            for binding in block.bindings:
                assert isinstance(binding.value, Function)
                signature = self._signature(binding.value, recursive=len(block.bindings) > 1)
                self.vars[binding.var] = self._defined[binding.var] = signature
        for binding in block.bindings:
            if isinstance(binding.value, Function):
                self._functions[binding.var] = binding.value
            actual = yield self.walk(binding.value)
            self._defined.pop(binding.var, None)
            if block.flavour is Flavour.REC:
                self.solver.unify(self.vars[binding.var], actual)
            elif binding.var.ty is None:
                self.vars[binding.var] = actual
            else:
                var, value = binding.var, binding.value
                self._own = with_bound_sizes(self._own, (var,), self._shown, self.solver)
                ty = self.declare_var(var)
                adapt = arriving(self.adapt, self.arrived, var, value)
                flow = FlowConstraint(actual, ty, var.span, None, "let", value, var.name, adapt)
                self.work.add(flow)
            if isinstance(binding.value, Constant) and binding.value.ty is None:
                self.literals[binding.var] = binding.value

    def _signature(self, function: Function, *, recursive: bool = False) -> FnType:
        known = self.types.get(function)
        if known is None:
            params = tuple(self.declare_var(p, wide=True) for p in function.params)
            known = FnType(params, self._annotated(function, wide=recursive))
            if function.type_params:
                known = self._instance(function, known)
            self.types[function] = known
        assert isinstance(known, FnType)
        return known

    def _instance(self, function: Function, signature: FnType) -> FnType:
        """Return the one instance of a local function with type parameters: it has a copy a use."""
        args = self.solver.fresh_args(function, function.type_params)
        replace = substitution(function.type_params, args)
        self._instances[function] = replace
        for param in function.params:
            self.vars[param] = replace(self.vars[param])
        return FnType(tuple(map(replace, signature.params)), replace(signature.result))

    def _function(self, expr: Function) -> Steps[Type]:
        signature = self._signature(expr)
        self.around[expr] = outer = self.solver.owner
        self.solver.owner = expr
        around, own, shown = self._own, self._instances.get(expr), self._shown
        if own is not None:
            self._own = Substitution({**around.dims, **own.dims}, {**around.types, **own.types})
        self._shown |= shown_by(expr)
        actual = yield self.walk(expr.body)
        self._own, self.solver.owner, self._shown = around, outer, shown
        self.work.add(self._returns(expr, actual, signature.result))
        return self._checked(signature, expr)

    def _returns(self, function: Function, actual: Type, expected: Type) -> FlowConstraint:
        """Return the constraint on the result of a function, which has the annotated sizes."""
        tail = spine(function.body)[1]
        value = None if function.result is None else tail
        adapt = arriving(self.adapt, self.arrived, function, function.body)
        place = use_of(tail, function.span, is_result=True) or tail.span
        return FlowConstraint(actual, expected, place, function, "return", value, adapt=adapt)

    def _if(self, expr: If) -> Steps[Type]:
        condition = yield self.walk(expr.condition)
        self.work.add(ConditionConstraint.of(expr, condition))
        then = yield self.walk(expr.then)
        otherwise = yield self.walk(expr.otherwise)
        return self._join(expr, [(then, expr.then), (otherwise, expr.otherwise)])

    def _join(self, join: If | Match, arms: list[tuple[Type, Expr]]) -> Type:
        result = self.solver.fresh()
        tails = [(ty, spine(expr)[1]) for ty, expr in arms]
        for ty, tail in tails:
            if isinstance(ty, TypeHole) and isinstance(tail, Call) and tail.callee is no_element:
                self.solver.unify(ty, result)  # nothing arrives from there
        places = tuple((ty, arrival(tail, join.span, self._functions)) for ty, tail in tails)
        self.work.add(JoinConstraint(result, places))
        return result

    def _tuple(self, expr: Tuple) -> Steps[Type]:
        return self._checked(TupleType((yield self._each(expr.fields))), expr)

    def _checked(self, ty: Type, expr: Expr) -> Type:
        self.solver.extents.check(ty, expr.span)
        return ty

    def _field(self, expr: TupleGet) -> Steps[Type]:
        value = yield self.walk(expr.value)
        result = self.solver.fresh()
        self.work.add(FieldConstraint(value, expr.index, result, expr.value.span))
        return result

    def _ref(self, expr: RefCreate | RefRead | RefWrite) -> Steps[Type]:
        if isinstance(expr, RefCreate):
            content = yield self.walk(expr.value)
            return self._checked(RefType(self.solver.widen(content, (expr,))), expr)
        cell, content = (yield self.walk(expr.ref)), self.solver.fresh()
        self.work.add(FlowConstraint(cell, RefType(content), expr.ref.span, None, "cell"))
        if isinstance(expr, RefRead):
            return content
        value = yield self.walk(expr.value)
        self.work.add(FlowConstraint(value, content, expr.value.span, None, "content", expr.value))
        return UNIT

    def _transform(self, expr: Transform) -> Steps[Type]:
        types = yield self._each((expr.function, *expr.rules))
        result = self.solver.fresh()
        self.transforms[expr] = made = constraint_of(expr, types, result, self.adts)
        self.work.add(made)
        return result

    def _match(self, expr: Match) -> Steps[Type]:
        value = yield self.walk(expr.value)
        arms: list[tuple[Type, Expr]] = []
        for clause in expr.clauses:
            ty = yield self._clause(clause, value)
            arms.append((ty, clause.body))
        return self._join(expr, arms) if arms else self.solver.fresh()

    def _clause(self, clause: Clause, value: Type) -> Steps[Type]:
        around = self._own
        bound = pattern_vars(clause.pattern)
        self._own = with_bound_sizes(around, bound, self._shown, self.solver)
        self.patterns.declare(clause.pattern, value)
        if clause.guard is not None:
            guard = yield self.walk(clause.guard)
            self.work.add(ConditionConstraint.of_guard(clause.guard, guard))
        ty = yield self.walk(clause.body)
        self._own = around
        return ty
