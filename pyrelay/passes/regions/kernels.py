"""Groups as functions: the code of each is taken out of the body it stands in.

A kernel function is closed: what it reads are its parameters, sizes are type parameters, what
floats (`grouping`) is computed in it. Equal functions are one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

from ...ir.dims import Dim, DimOp, DimVar
from ...ir.equality import structural_hash
from ...ir.expr import (
    Assumption,
    Binding,
    Call,
    Constant,
    Expr,
    Flavour,
    Function,
    GlobalVar,
    LetBlock,
    TensorData,
    Tuple,
    TupleGet,
    Var,
    type_of,
)
from ...ir.ops.descent import overwrite
from ...ir.ops.host import size
from ...ir.traverse import children, rebuild
from ...ir.types import UNIT, FnType, SizeType, TupleType, Type
from ..retype import types_in
from ..sizes import needed, shown, uncovered
from ..summary import names_in
from .items import Role, role_of
from .reading import Reader, shape_of
from .recording import Recording

if TYPE_CHECKING:
    from ...diagnostics.source import Span
    from .clusters import Cluster
    from .grouping import Grouping


@final
@dataclass(frozen=True, slots=True)
class Extracted:
    """A kernel function and how it is called where its code stood."""

    function: Function
    args: tuple[Expr, ...]
    results: tuple[Var, ...]
    """The variables that hold what it gives."""
    sizes: tuple[Binding, ...]
    """Sizes that it needs and that no argument shows; bound before the call."""


@final
class Kernels:
    """The kernel functions of a module under construction."""

    def __init__(self, taken: Iterable[str]) -> None:
        self.functions: Final[dict[str, Function]] = {}
        self._taken: Final = frozenset(taken)
        self._known: Final[dict[str, str]] = {}
        self._count = 0

    def name(self, function: Function) -> str:
        """Give the name of a function, which is new unless an equal one is there."""
        digest = structural_hash(function)
        if digest not in self._known:
            self._known[digest] = self._fresh()
            self.functions[self._known[digest]] = function
        return self._known[digest]

    def _fresh(self) -> str:
        while True:
            self._count += 1
            name = f"{KERNEL}{self._count}"
            if name not in self._taken:
                return name


KERNEL: Final = "kernel."
"""How the names of kernel functions begin."""


def call_of(name: str, kernel: Extracted) -> tuple[Binding, ...]:
    """Give the bindings that call a kernel function and take its results apart."""
    function = kernel.function
    ty = function.result
    span = function.span
    dims = tuple(Dim.atom(p) for p in function.type_params if isinstance(p, DimVar))
    callee = GlobalVar(name, span=span)
    call = Call(callee, kernel.args, type_args=dims, ty=ty, span=span)
    if len(kernel.results) == 1:
        return (*kernel.sizes, Binding(kernel.results[0], call))
    whole = Var("_" if not kernel.results else "r", ty, span=span)
    parts = (
        Binding(var, TupleGet(whole, number, var.ty, span=span))
        for number, var in enumerate(kernel.results)
    )
    return (*kernel.sizes, Binding(whole, call), *parts)


@final
class Extraction:
    """The code of the groups of one body."""

    def __init__(
        self, grouping: Grouping, outside: Iterable[Var], assumptions: Sequence[Assumption]
    ) -> None:
        """`outside` are the variables that are used after the body."""
        self._grouping: Final = grouping
        self._assumptions: Final = assumptions
        self._affine: Final[dict[Var, bool]] = {}
        self._stored: Final[dict[Var, list[Var]]] = {}
        self._seen: Final[set[Var]] = set()
        for cluster in grouping.clusters:
            for leaf in cluster.reads:
                self._store(leaf)
        for var in outside:
            for leaf in grouping.bases(var):
                self._store(leaf)

    def _store(self, leaf: Var) -> None:
        """Note that a leaf must be stored: it is a computed value, or a part of one."""
        if leaf in self._seen:
            return
        self._seen.add(leaf)
        base = leaf
        bindings = self._grouping.bindings
        while base not in self._grouping.home:
            bound = bindings.get(base)
            if not isinstance(bound, TupleGet) or not isinstance(bound.value, Var):
                return
            base = bound.value
        self._stored.setdefault(base, []).append(leaf)

    def kernel(self, cluster: Cluster) -> Extracted:
        """Give the kernel function of a group."""
        members = sorted(cluster.members, key=lambda m: self._grouping.position[m.var])
        results = [v for m in members for v in self._stored.get(m.var, ())]
        inputs, inner = self._code(cluster, [*(m.var for m in members), *results])
        bindings = [Binding(v, self._grouping.bindings[v]) for v in inner]
        return self._close(bindings, inputs, results, members[0].value.span)

    def _code(self, cluster: Cluster, wanted: Sequence[Var]) -> tuple[list[Var], list[Var]]:
        """Give the variables that a group reads, and those that are bound in it, in order."""
        grouping = self._grouping
        own = {m.var for m in cluster.members}
        inputs: dict[Var, None] = {}
        inner: dict[Var, None] = {}
        pending = list(reversed(wanted))
        while pending:
            var = pending.pop()
            if var in inputs or var in inner:
                continue
            home = grouping.home_of(var) if grouping.is_leaf(var) else None
            is_inner = var in own or (
                home is cluster if grouping.is_leaf(var) else self._is_inside(var, cluster)
            )
            if not is_inner:
                inputs[var] = None
                continue
            inner[var] = None
            value = grouping.bindings[var]
            operands = (value,) if isinstance(value, Var) else children(value)
            pending += (v for v in reversed(operands) if isinstance(v, Var))
        position = grouping.position
        return list(inputs), sorted(inner, key=position.__getitem__)

    def _is_inside(self, var: Var, cluster: Cluster) -> bool:
        """Tell whether a value that is no leaf is computed in a group: all but views of what is
        stored elsewhere whose places take divisions to find."""
        grouping = self._grouping
        if role_of(var, grouping.bindings[var]) is not Role.VIEW:
            return True
        bases = grouping.bases(var)
        if any(grouping.home_of(b) is cluster for b in bases) or not self._shows_leaf(var):
            return True
        if var not in self._affine:
            record = Recording(is_leaf=grouping.is_leaf)
            index = record.places.index("i", shape_of(type_of(var)))
            Reader(grouping.bindings, record).element(var, index)
            dims = (d for _, at in record.reads for d in at)
            atoms = (a for d in dims for m, _ in d.terms for a in m)
            self._affine[var] = not any(isinstance(a, DimOp) for a in atoms)
        return self._affine[var]

    def _shows_leaf(self, var: Var) -> bool:
        """Tell whether a view is one of a leaf, through views alone."""
        grouping = self._grouping
        while not grouping.is_leaf(var):
            value = grouping.bindings[var]
            if role_of(var, value) is not Role.VIEW or not isinstance(value, Call):
                return False
            operand = value.args[0]
            if not isinstance(operand, Var):
                return False
            var = operand
        return True

    def _close(
        self, bindings: Sequence[Binding], inputs: Sequence[Var], results: Sequence[Var], span: Span
    ) -> Extracted:
        """Give bindings as a closed function of what they read."""
        copies: dict[Expr, Expr] = {v: Var(v.name, v.ty, span=v.span) for v in inputs}
        args: list[Expr] = list(inputs)
        code: list[Binding] = []
        for binding in bindings:
            for operand in children(binding.value):
                if isinstance(operand, Constant) and isinstance(operand.value, TensorData):
                    copies[operand] = Var("c", operand.ty, span=operand.span)
                    args.append(operand)
            value = _copied(binding.value, copies)
            var = copies[binding.var] = Var(binding.var.name, binding.var.ty, span=binding.var.span)
            assert isinstance(var, Var)
            code.append(Binding(var, value))
        params = [copies[a] for a in args]
        known = {d for a in args for d in shown(a.ty)}
        sizes: list[Binding] = []
        for dim in dict.fromkeys(
            d for b in code for n in needed(b.value) for d in uncovered(n, known)
        ):
            ty = SizeType(dim)
            told = Var("n", ty, span=span)
            sizes.append(Binding(told, Call(size, (), {"dim": dim}, ty=ty, span=span)))
            args.append(told)
            params.append(Var("n", ty, span=span))
        fields = tuple(copies[r] for r in results)
        function = self._function(
            tuple(p for p in params if isinstance(p, Var)), code, fields, span
        )
        return Extracted(function, tuple(args), tuple(results), tuple(sizes))

    def _function(
        self, params: tuple[Var, ...], code: list[Binding], fields: tuple[Expr, ...], span: Span
    ) -> Function:
        end: Expr
        if len(fields) == 1:
            (end,) = fields
        elif fields:
            ty: Type = TupleType(tuple(map(type_of, fields)))
            end = Var("r", ty, span=span)
            code.append(Binding(end, Tuple(fields, ty, span=span)))
        else:
            end = Tuple((), UNIT, span=span)
        body = end
        for flavour, block in reversed(_blocks(code)):
            body = LetBlock(tuple(block), body, flavour, ty=end.ty, span=span)
        types = [*(type_of(p) for p in params), *(t for b in code for t in types_in(b.value))]
        names = dict.fromkeys(names_in(types))
        type_params = tuple(map(DimVar, names))
        assumed = tuple(
            a for a in self._assumptions if a.left.names() | a.right.names() <= names.keys()
        )
        result = type_of(end)
        ty = FnType(tuple(type_of(p) for p in params), result, type_params)
        return Function(params, body, result, type_params, assumptions=assumed, ty=ty, span=span)


def _copied(value: Expr, copies: Mapping[Expr, Expr]) -> Expr:
    if isinstance(value, Var):
        return copies.get(value, value)
    return rebuild(value, tuple(copies.get(c, c) for c in children(value)))


def _blocks(code: Sequence[Binding]) -> list[tuple[Flavour, list[Binding]]]:
    """Give bindings as runs of pure ones and of those that overwrite."""
    blocks: list[tuple[Flavour, list[Binding]]] = []
    for binding in code:
        writes = isinstance(binding.value, Call) and binding.value.callee is overwrite
        flavour = Flavour.IMPURE if writes else Flavour.PURE
        if not blocks or blocks[-1][0] is not flavour:
            blocks.append((flavour, []))
        blocks[-1][1].append(binding)
    return blocks
