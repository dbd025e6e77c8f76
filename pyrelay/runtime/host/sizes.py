"""The sizes in scope while code is written: dims as Python integers.

A dim that an attribute mentions is read off the first variable that shows it, once, where that
variable is bound: `n = x.shape[0]`.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Final, final

from ...ir.dims import Dim, DimAtom, DimOp, Monomial
from ...ir.types import Type
from ..values.values import Path, Reach, size_paths
from .frame import Statements


@final
class Sizes:
    """The dims in scope, by local name."""

    def __init__(
        self, writer: Statements, needed: Mapping[Dim, None], names: Mapping[Dim, str] | None = None
    ) -> None:
        self._writer: Final = writer
        self._needed: Final = needed
        self._names: Final[dict[Dim, str]] = dict(names or {})

    def copy(self) -> Sizes:
        """Return the sizes for a nested block."""
        return Sizes(self._writer, self._needed, self._names)

    def forget(self, names: Sequence[str]) -> None:
        """Drop the dims that mention sizes of these names, which mean something else now."""
        hidden = set(names)
        for dim in [d for d in self._names if d.names() & hidden]:
            del self._names[dim]

    def wants(self, ty: Type) -> bool:
        """Return whether a value of the type shows a size that is needed and not known yet."""
        return bool(self._needed) and any(self._is_wanted(d) for d, _ in size_paths(ty))

    def provide(self, name: str, ty: Type) -> None:
        """Read off a variable the sizes that are needed and not known yet."""
        if not self._needed:
            return
        for dim, path in size_paths(ty):
            if not self._is_wanted(dim):
                continue
            if not path:
                self._names[dim] = name
                continue
            local = self._writer.names.fresh(dim.name or "size")
            self._writer.assign(local, self._read(name, path))
            self._names[dim] = local

    def value(self, dim: Dim) -> ast.expr:
        """Return the value of a dim: a name, or the arithmetic that it states."""
        code = self._writer.code
        if dim in self._names:
            return self._writer.load(self._names[dim])
        if dim.constant is not None:
            return code.literal(dim.constant)
        total: ast.expr | None = None
        for monomial, coefficient in dim.terms:
            negative = total is not None and coefficient < 0
            term = self._monomial(monomial, -coefficient if negative else coefficient)
            operator = ast.Sub() if negative else ast.Add()
            total = term if total is None else code.binary(operator, total, term)
        assert total is not None
        return total

    def _monomial(self, monomial: Monomial, coefficient: int) -> ast.expr:
        code = self._writer.code
        factors = [self._atom(a) for a in monomial]
        if coefficient != 1 or not factors:
            factors.insert(0, code.literal(coefficient))
        product = factors[0]
        for factor in factors[1:]:
            product = code.binary(ast.Mult(), product, factor)
        return product

    def _atom(self, atom: DimAtom) -> ast.expr:
        dim = Dim.atom(atom)
        if dim in self._names:
            return self._writer.load(self._names[dim])
        assert isinstance(atom, DimOp), f"no value in scope shows the size {atom.key}"
        code = self._writer.code
        left, right = self.value(atom.left), self.value(atom.right)
        if atom.kind == "max":
            return code.call(code.name("max"), [left, right])
        operator = ast.FloorDiv() if atom.kind == "floordiv" else ast.Mod()
        return code.binary(operator, left, right)

    def _is_wanted(self, dim: Dim) -> bool:
        if dim not in self._needed or dim in self._names:
            return False
        return dim.name is not None or not self._is_computable(dim)

    def _is_computable(self, dim: Dim) -> bool:
        if dim in self._names or dim.constant is not None:
            return True
        return all(
            Dim.atom(a) in self._names
            or (
                isinstance(a, DimOp)
                and self._is_computable(a.left)
                and self._is_computable(a.right)
            )
            for monomial, _ in dim.terms
            for a in monomial
        )

    def _read(self, name: str, path: Path) -> ast.expr:
        code = self._writer.code
        node = self._writer.load(name)
        for step, index in path:
            match step:
                case Reach.FIELD:
                    node = code.item(node, code.literal(index))
                case Reach.SHAPE:
                    node = code.item(code.attribute(node, "shape"), code.literal(index))
                case Reach.CONTENT:
                    node = code.attribute(node, "value")
        return node
