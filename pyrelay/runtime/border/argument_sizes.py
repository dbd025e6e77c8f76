"""The named sizes of a call: read off arguments, and solved where they stand inside larger dims."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, final

from ...ir.dims import Dim, DimOp, DimVar
from ...ir.equations import root_of, root_of_quotient, solutions
from ...ir.expr import Function, type_of
from ..values.values import follow, size_paths
from .failure import check_assumption


@final
class NoSize(ValueError):  # noqa: N818  becomes a diagnostic at the argument
    """A dim has a value that it has for no size."""

    def __init__(self, name: str, dim: Dim) -> None:
        super().__init__(name)
        self.name: Final = name
        self.dim: Final = dim


@final
class ShownSizes:
    """Values of dims, of which some are names."""

    def __init__(self, shown: Mapping[Dim, int]) -> None:
        """Solve for the names in dims. Raises NoSize where no size makes a dim equal its value."""
        self.names: Final = {d.name: v for d, v in shown.items() if d.name is not None}
        self._shown: Final = shown
        rest = [d for d in shown if d.name is None]
        while sum(map(self._alone, rest)):
            rest = [d for d in rest if not d.names() <= self.names.keys()]
        if rest:
            self._together(rest)

    def value(self, dim: Dim) -> int:
        """Return the value of a dim. Raises KeyError for one that is not known."""
        return dim.value(self._known)

    def _known(self, dim: Dim) -> int | None:
        return self._shown.get(dim) if dim.name is None else self.names.get(dim.name)

    def _alone(self, dim: Dim) -> bool:
        """Solve a dim for the one name in it that is not known; return whether it has one."""
        unknown = sorted(dim.names() - self.names.keys())
        if len(unknown) != 1:
            return False
        found = solve_dim(dim, DimVar(unknown[0]), self._shown[dim], self.names)
        if found is not None:
            self.names[unknown[0]] = found
        return found is not None

    def _together(self, dims: Sequence[Dim]) -> None:
        """Solve several dims, of which none has one unknown name."""
        wanted = {n for d in dims for n in d.names() if n not in self.names}
        known = (*map(Dim.of, self.names), *dims)
        for solution in solutions(known, wanted):
            try:
                total = sum(self.value(factor) * self.value(d) for factor, d in solution.terms)
                divisor = self.value(solution.divisor)
            except KeyError:
                continue
            if divisor == 0:
                continue
            found = root_of_quotient(total, divisor, solution.power)
            if found is None:
                raise NoSize(solution.name, next(d for _, d in solution.terms if d in dims))
            self.names[solution.name] = found


def solve_dim(dim: Dim, name: DimVar, actual: int, sizes: Mapping[str, int]) -> int | None:
    """Return the size that makes `dim` equal `actual`, the other names in it being known; None if
    several may, as in `N // 2`. Raises NoSize if none does."""
    degree = _degree(dim, name)
    if degree < 1:
        return None
    try:
        values = [_part(dim, name, power).evaluate(sizes) for power in range(degree + 1)]
    except ZeroDivisionError:
        return None
    rest, *factors = values
    if not any(factors):
        if rest != actual:
            raise NoSize(name.name, dim)
        return None
    if len(factors) == 1:
        found = root_of_quotient(actual - rest, factors[0])
    else:
        found = root_of(values, actual) if min(factors) >= 0 else None
    if found is None and (len(factors) == 1 or min(factors) >= 0):
        raise NoSize(name.name, dim)
    return found


def _degree(dim: Dim, name: DimVar) -> int:
    """Return the degree of a dim in a name; -1 if the name also stands in a quotient."""
    for atom in (a for monomial, _ in dim.terms for a in monomial):
        if isinstance(atom, DimOp) and name.name in Dim.atom(atom).names():
            return -1
    return max((monomial.count(name) for monomial, _ in dim.terms), default=0)


def _part(dim: Dim, name: DimVar, power: int) -> Dim:
    """Return the coefficient of a power of a name."""
    return Dim(
        tuple(
            (tuple(a for a in monomial if a != name), coefficient)
            for monomial, coefficient in dim.terms
            if monomial.count(name) == power
        )
    )


def check_assumptions(function: Function, args: Sequence[Any]) -> None:
    """Stop if the sizes of arguments break an equation that the program needs."""
    shown: dict[Dim, int] = {}
    for param, arg in zip(function.params, args, strict=True):
        for dim, path in size_paths(type_of(param)):
            if dim not in shown:
                shown[dim] = follow(arg, path)
    try:
        sizes = ShownSizes(shown)
    except NoSize:
        return  # the program stops where it computes the size
    for needed in function.assumptions:
        if not needed.is_inside:
            check_assumption(needed, sizes.value)
