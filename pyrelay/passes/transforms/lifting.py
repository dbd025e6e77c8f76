"""Local functions as global ones: the functions that transforms of local ones differentiate.

The lifted function takes the captures of the local one as leading parameters. Local functions that
it mentions come with it, as copies in a `rec` block. A call of an expanded transform becomes a
direct call; where the transform is used as a value, a local function stands for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final, final

from ...analysis.bindings import definitions, uses
from ...analysis.dim_availability import missing_sizes
from ...dataclass import dataclass
from ...ir.dims import DimVar
from ...ir.expr import (
    Binding,
    Call,
    Expr,
    Flavour,
    Function,
    GlobalVar,
    LetBlock,
    Transform,
    Tuple,
    TupleGet,
    Var,
    function_type,
    type_of,
)
from ...ir.names import Names
from ...ir.traverse import free_vars, map_bindings, rewrite, run
from ...ir.types import FnType, Type, TypeVar, dim_names, subtypes
from ...operators.builder import Builder
from ..deriving.copying import Copier
from ..deriving.instantiation import match_types, type_arguments
from ..deriving.ruled import has_transforms

if TYPE_CHECKING:
    from ...diagnostics.source import Span
    from ..deriving.store import Store


class NotLocal(Exception):  # noqa: N818  says what is so; the whole program is converted then
    """The code of a function cannot be found in the function around it."""


@final
@dataclass(frozen=True, slots=True)
class KnownFunction:
    """A function value: a global function, and the atoms for its leading parameters.

    `sizes` are bindings that make some of the atoms; they must stand where the value is made.
    """

    name: str
    captures: tuple[Expr, ...] = ()
    sizes: tuple[Binding, ...] = ()


@final
class Lifter:
    """Finds the code of function values inside one function."""

    def __init__(self, store: Store, owner: str) -> None:
        self._store: Final = store
        self._owner: Final = owner
        self._functions: Final[dict[Expr, Function]] = {}
        self._aliases: Final[dict[Expr, Expr]] = {}
        self.known: Final[dict[Var, KnownFunction]] = {}
        """The transforms expanded so far, by the variable that is bound to them."""
        self.made: Final[dict[Transform, tuple[tuple[Binding, ...], Function]]] = {}
        """The replacement of each of them, and the bindings that must stand before it."""
        known = definitions(store.functions[owner])
        for var, value in known.items():
            match value:
                case Function():
                    self._functions[var] = value
                case Var() | GlobalVar():
                    self._aliases[var] = value
                case TupleGet(whole, index) if isinstance(type_of(value), FnType):
                    made = known.get(self._aliased(whole))
                    if isinstance(made, Tuple):
                        self._aliases[var] = made.fields[index]
                case _:
                    pass

    def expanded(self, var: Var, transform: Transform, known: KnownFunction) -> None:
        """Take note of an expanded transform, and make a local function of it."""
        ty = function_type(transform)
        self.known[var] = known
        params = tuple(Var(f"x{i}", t, span=var.span) for i, t in enumerate(ty.params))
        body = self.call(known, params, ty.result, var.span)
        function = Function(params, body, ty.result, (), var.name, ty=ty, span=var.span)
        self._functions[var] = function
        self.made[transform] = (known.sizes, function)

    def call(self, known: KnownFunction, args: tuple[Expr, ...], result: Type, span: Span) -> Call:
        """Return a call of a known function."""
        callee = self._store.functions[known.name]
        every = (*known.captures, *args)
        types = match_types(
            callee.type_params, [type_of(p) for p in callee.params], [type_of(a) for a in every]
        )
        type_args = type_arguments(callee.type_params, types)
        return Call(
            GlobalVar(known.name, callee.ty, span=span),
            every,
            type_args=type_args,
            ty=result,
            span=span,
        )

    def resolve(self, function: Expr, ty: Type) -> KnownFunction:
        """Return the global function behind the operand of a transform. Raises NotLocal."""
        function = self._aliased(function)
        if isinstance(function, GlobalVar):
            return self._global(function, ty)
        if isinstance(function, Var) and function in self.known:
            return self.known[function]
        if isinstance(function, Var) and function in self._functions:
            return self._lift(function)
        raise NotLocal

    def _aliased(self, function: Expr) -> Expr:
        """Return the function that a variable is another name of; anything else as it is."""
        while isinstance(function, Var) and function in self._aliases:
            function = self._aliases[function]
        return function

    def _global(self, mention: GlobalVar, ty: Type) -> KnownFunction:
        callee = self._store.functions[mention.name]
        if not any(isinstance(p, TypeVar) for p in callee.type_params):
            return KnownFunction(mention.name)
        # An instance of a polymorphic function: a function of its own that calls it.
        assert isinstance(ty, FnType)
        names = Names()
        params = tuple(
            Var(names.fresh(p.name), t, span=p.span)
            for p, t in zip(callee.params, ty.params, strict=True)
        )
        known = KnownFunction(mention.name)
        body = self.call(known, params, ty.result, mention.span)
        return KnownFunction(self.define(mention.name, params, body))

    def _lift(self, var: Var) -> KnownFunction:
        group = {v: rewrite_calls(f, self) for v, f in self._group(var).items()}
        functions = tuple(group.values())
        if any(map(has_transforms, functions)):
            raise NotLocal  # one of them waits for the program around it to be converted
        outside = _captured(functions, frozenset(group))
        named = {v: g for v in outside if isinstance(g := self._aliased(v), GlobalVar)}
        outside = tuple(v for v in outside if v not in named)
        if any(_holds_functions(type_of(v)) for v in outside):
            raise NotLocal
        builder = Builder(var.span, Names())
        sizes = [builder.size(d).atom for d in missing_sizes(functions, outside)]
        captures = (*outside, *sizes)
        copier = Copier(Names())
        leading = [copier.fresh(c) for c in captures if isinstance(c, Var)]
        function = group[var]
        own = [copier.fresh(p) for p in function.params]
        block = LetBlock(
            tuple(Binding(v, f) for v, f in group.items()),
            Call(var, tuple(own), ty=function.result, span=var.span),
            Flavour.REC,
            ty=function.result,
            span=var.span,
        )
        if named:  # global functions under other names, which the lifted function has itself
            bindings = tuple(Binding(v, g) for v, g in named.items())
            block = LetBlock(bindings, block, Flavour.PURE, ty=function.result, span=var.span)
        body = call_directly(run(copier.copy(block)), self)
        name = self.define(f"{self._owner}.{var.name}", (*leading, *own), body)
        return KnownFunction(name, captures, tuple(builder.bindings))

    def _group(self, var: Var) -> dict[Var, Function]:
        """Return a local function and all local ones that it mentions."""
        found: dict[Var, Function] = {}
        pending = [var]
        while pending:
            var = pending.pop()
            if var not in found:
                function = self._aliased(var)
                found[var] = self._functions[function]
                inside = (v for v in free_vars(found[var]) if self._aliased(v) in self._functions)
                pending += reversed(list(inside))
        return found

    def define(self, hint: str, params: Iterable[Var], body: Expr) -> str:
        """Define a global function; return its name."""
        params = tuple(params)
        types = tuple(type_of(p) for p in params)
        if any(isinstance(part, TypeVar) for ty in types for part in subtypes(ty)):
            raise NotLocal
        sizes = dict.fromkeys(n for ty in types for n in sorted(dim_names(ty)))
        type_params = tuple(DimVar(n) for n in sizes)
        result = type_of(body)
        name = self._store.function_name(hint)
        assumed = self._store.functions[self._owner].assumptions
        self._store.functions[name] = Function(
            params,
            body,
            result,
            type_params,
            name,
            tuple(a for a in assumed if (a.left.names() | a.right.names()) <= sizes.keys()),
            ty=FnType(types, result, type_params),
            span=body.span,
        )
        return name


def _captured(functions: tuple[Function, ...], group: frozenset[Var]) -> tuple[Var, ...]:
    """Return the variables that functions use from outside, those of their own group excepted."""
    found = dict.fromkeys(v for f in functions for v in free_vars(f))
    return tuple(v for v in found if v not in group)


def _holds_functions(ty: Type) -> bool:
    return any(isinstance(part, FnType) for part in subtypes(ty))


# Transforms that are expanded, in the function that holds them.


def rewrite_calls(function: Function, lifter: Lifter) -> Function:
    """Return a function, global or local, with the transforms replaced that are expanded."""
    made = lifter.made
    if not made:
        return function
    direct = call_directly(function, lifter)
    assert isinstance(direct, Function)
    used = uses(direct)

    def change(binding: Binding) -> Iterator[Binding]:
        if not isinstance(binding.value, Transform) or binding.value not in made:
            yield binding
            return
        sizes, local = made[binding.value]
        yield from sizes
        if binding.var in used:
            yield Binding(binding.var, local)

    result = map_bindings(direct, change)
    assert isinstance(result, Function)
    return result


def call_directly(expr: Expr, lifter: Lifter) -> Expr:
    """Return an expression in which calls of expanded transforms are direct calls."""
    known = lifter.known

    def change(node: Expr) -> Expr:
        if isinstance(node, Call) and isinstance(node.callee, Var) and node.callee in known:
            return lifter.call(known[node.callee], node.args, type_of(node), node.span)
        return node

    return rewrite(expr, change)
