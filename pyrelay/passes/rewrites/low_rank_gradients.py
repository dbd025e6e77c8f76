"""Gradients that are products of matrices, or few rows of a table, which leave a program as parts.

The gradient of a layer's weight is a product of two small matrices and as large as the weight. A
script that only moves the weight against it multiplies the factors into the weight, as compiled
code does (`in_place`), and never makes the product; one that looks at the gradient makes it then.
The gradient of a table of embeddings is as large as the table, and zero but for the rows that were
looked up: these leave with their numbers.

This is right because nothing can write to the factors in between: they must come from operators
that make storage of their own, and share it with no other result.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import ClassVar, Final, TypeAlias, final

from ...analysis.bindings import definitions, uses
from ...dataclass import dataclass
from ...ir.calls.storage import makes_storage
from ...ir.expr import Binding, Call, Expr, Function, LetBlock, Tuple, TupleGet, Var, type_of
from ...ir.module import Module
from ...ir.op import Op, View
from ...ir.traverse import spine
from ...ir.types import FnType, TensorType, TupleType, Type, is_float
from ...ir.verify import Stage
from ...operators.builder import Builder
from ...operators.composite.table_rows import existing_rows
from ...operators.matrices.products import matmul
from ...operators.primitive.embedding import embedding_grad
from ...operators.primitive.index import extract
from ..base import Context, Pass

Root: TypeAlias = tuple[Var, int | None]
"""The origin of a tensor's storage: the variable of an operator's result, or a field of it."""


def gives_fresh(function: Function, path: tuple[int, ...] = ()) -> bool:
    """Return whether all results of a function, in A-normal form, at a path in its result are
    tensors that operators in it made, in storage that is shared with nothing."""
    results = _Results(function)
    atom = results.last
    for index in path:
        atom = results.field(atom, index)
    return all(results.root(leaf) is not None for leaf in results.leaves(atom))


def factor_gradients(module: Module, entry: str, path: tuple[int, ...]) -> Module:
    """Return the module, in A-normal form, with pairs of factors in the place of the products among
    the gradients that `entry` gives; `path` leads to them in its result.

    The module comes back as it is where a result may share storage with anything.
    """
    function = module.functions[entry]
    results = _Results(function)
    if not gives_fresh(function):
        return module
    leaves = results.leaves(results.last)
    shared = Counter(results.root(leaf) for leaf in leaves)
    products: dict[Var, tuple[Var, Var]] = {}
    lent: set[Var] = set()
    for leaf in gradients_at(function, path):
        factors = factors_of(leaf, results.made, results.uses)
        roots = [results.root(f) for f in factors or () if is_float_tensor(f)]
        if factors and (None in roots or any(shared[root] for root in roots)):
            lent.update(factors)
        if factors and (lent.isdisjoint(factors) or not is_float_tensor(factors[1])):
            products[leaf] = factors
    if not products:
        return module
    return module.with_functions({entry: _rewritten(function, products, lent)})


def gradients_at(function: Function, path: tuple[int, ...]) -> list[Var]:
    """Return the variables that a function, in A-normal form, gives at a path of its result, as far
    as it makes the tuples around them."""
    results = _Results(function)
    atom = results.last
    for index in path:
        atom = results.field(atom, index)
    return [leaf for leaf in results.leaves(atom) if leaf is not None] if atom else []


@final
@dataclass(frozen=True, slots=True)
class FactorGradients(Pass):
    """Return gradients that are products of matrices as their factors."""

    name: ClassVar = "low-rank-gradients"
    needs: ClassVar = Stage.DERIVED
    path: tuple[int, ...] = ()
    """Where the gradients are in the result of the entry."""

    def run(self, module: Module, context: Context) -> Module:
        """Return the module after the pass."""
        return factor_gradients(module, context.entry, self.path)


@final
class _Results:
    """The result of a function, and how its straight line computes it."""

    def __init__(self, function: Function) -> None:
        self.uses: Final = uses(function)
        self.made: Final = definitions(function)
        last = spine(function.body)[1]
        self.last: Final = last if isinstance(last, Var) else None

    def field(self, atom: Var | None, index: int) -> Var | None:
        """Return the variable that is a field of a tuple that the function makes."""
        value = None if atom is None else self.made.get(atom)
        found = value.fields[index] if isinstance(value, Tuple) else None
        return found if isinstance(found, Var) else None

    def leaves(self, atom: Var | None) -> list[Var | None]:
        """Return the variables in nested tuples; None for what is no variable."""
        found: list[Var | None] = []
        pending: list[Expr | None] = [atom]
        while pending:
            current = pending.pop()
            if not isinstance(current, Var):
                found.append(None)
                continue
            value = self.made.get(current)
            if isinstance(value, Tuple) and self.uses[current] == 1:
                pending += reversed(value.fields)
            else:
                found.append(current)
        return found

    def root(self, leaf: Var | None) -> Root | None:
        """Return the origin of the storage of a value that is surely a tensor; None if unknown."""
        while leaf is not None and _is_tensor(leaf.ty):
            match self.made.get(leaf):
                case Call(Op(lowering=View()), (Var() as source, *_)):
                    leaf = source
                case TupleGet(Var() as source, index) if self._makes_storage(source):
                    return source, index
                case _:
                    return (leaf, None) if self._makes_storage(leaf) else None
        return None

    def _makes_storage(self, var: Var) -> bool:
        match self.made.get(var):
            case Call(Op() as op):
                return makes_storage(op)
            case _:
                return False


def factors_of(leaf: Var, made: Mapping[Expr, Expr], uses: Counter[Expr]) -> tuple[Var, Var] | None:
    """Return the two matrices whose product a variable is, or the rows that are all of it with
    their numbers, if it is needed for nothing else."""
    match made.get(leaf):
        case Call(callee, (Var() as rows, Var() as numbers)) if callee is embedding_grad:
            ty = numbers.ty
            is_tensor = isinstance(ty, TensorType) and ty.rank > 0
            return (rows, numbers) if is_tensor and uses[leaf] == 1 else None
        case Call(callee, (Var() as left, Var() as right)) if callee is matmul:
            ranks = [t.rank if isinstance(t, TensorType) else 0 for t in (left.ty, right.ty)]
            return (left, right) if ranks == [2, 2] and uses[leaf] == 1 else None
        case _:
            return None


def is_float_tensor(var: Var) -> bool:
    """Return whether a variable holds floats, as the numbers of rows do not."""
    return isinstance(var.ty, TensorType) and is_float(var.ty.dtype)


def _is_tensor(ty: Type | None) -> bool:
    """Return whether a value of the type is never a Python number."""
    return isinstance(ty, TensorType) and (ty.rank > 0 or is_float(ty.dtype))


def _rewritten(
    function: Function, products: Mapping[Var, tuple[Var, Var]], lent: AbstractSet[Var]
) -> Function:
    """Return the function with pairs for products, and the tuples around them with their types.
    What is `lent` may share its storage."""
    new: dict[Var, Var] = {}
    blocks: list[LetBlock] = []
    body = function.body
    while isinstance(body, LetBlock):
        bindings = tuple(c for b in body.bindings for c in _changed(b, products, lent, new))
        blocks.append(replace(body, bindings=bindings))
        body = body.body
    assert isinstance(body, Var)
    result = new[body]
    whole: Expr = result
    for block in reversed(blocks):
        whole = replace(block, body=whole, ty=result.ty)
    assert isinstance(function.ty, FnType)
    ty = replace(function.ty, result=type_of(result))
    return replace(function, body=whole, result=result.ty, ty=ty)


def _changed(
    binding: Binding,
    products: Mapping[Var, tuple[Var, Var]],
    lent: AbstractSet[Var],
    new: dict[Var, Var],
) -> list[Binding]:
    """Return a binding as it is then; `new` has the variables whose types have changed so far."""
    var, value = binding.var, binding.value
    copies: list[Binding] = []
    fields: tuple[Expr, ...] | None = products.get(var)
    if fields is not None:
        fields = tuple(_kept(f, var, lent, copies) for f in products[var])
    if fields is None and isinstance(value, Tuple) and any(f in new for f in value.fields):
        fields = tuple(new.get(f, f) if isinstance(f, Var) else f for f in value.fields)
    if fields is None:
        return [binding]
    ty: Type = TupleType(tuple(map(type_of, fields)))
    new[var] = Var("factors" if var in products else var.name, ty, span=var.span)
    return [*copies, Binding(new[var], Tuple(fields, ty, span=value.span))]


def _kept(factor: Var, table: Var, lent: AbstractSet[Var], copies: list[Binding]) -> Var:
    """Return a factor in storage of its own: a script may write to the numbers that it passed. Each
    of these is that of a row of the table, which nothing else may have looked for."""
    if is_float_tensor(factor) and factor not in lent:
        return factor
    builder = Builder(factor.span)
    value = builder.value(factor)
    if not is_float_tensor(factor):
        assert isinstance(table.ty, TensorType)
        value = existing_rows(value, rows=table.ty.shape[0])
    copy = extract(value, builder.unit(), spec=(("ellipsis",),))
    copies += builder.bindings
    assert isinstance(copy.atom, Var)
    return copy.atom
