"""The scene of an invariant: one function of a module, its nodes, and their surroundings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Final, TypeAlias, final

from ...dataclass import dataclass
from ..dims import DimVar
from ..effect import Effects, effects_of
from ..expr import Call, Expr, Function, Pattern, Var
from ..traverse import post_order
from .agreement import TypeComparison

if TYPE_CHECKING:
    from ..module import Module

Finding: TypeAlias = "tuple[Expr | Pattern, str]"
"""A node that breaks an invariant, and how."""


@final
@dataclass(frozen=True, slots=True)
class Invariant:
    """Something that holds of every function of a module at a stage."""

    name: str
    check: Callable[[Scene], Iterator[Finding]]
    is_local: bool = True
    """Whether it goes on holding of a function while that, the data types and the types of other
    functions stay the same."""


class VerifyError(Exception):
    """An invariant that a pass was to keep and did not: a mistake in the compiler."""

    def __init__(
        self, function: str, node: Expr | Pattern, invariant: Invariant, detail: str
    ) -> None:
        self.function: Final = function
        self.node: Final = node
        self.invariant: Final = invariant
        self.detail: Final = detail
        where = f"{type(node).__name__} at {node.span}"
        super().__init__(f"in `{function}`, {where}: {detail} ({invariant.name})")


@final
class ModuleFacts:
    """The state that all functions of a module share while it is verified."""

    def __init__(self, module: Module) -> None:
        self.module: Final = module
        self.binders: Final[dict[Var, str]] = {}
        """The variables bound so far, and in which function."""

    @cached_property
    def effects(self) -> Effects:
        """The effects of the module's functions."""
        return effects_of(self.module)


@final
class Scene:
    """One global function under verification."""

    def __init__(self, facts: ModuleFacts, name: str, function: Function) -> None:
        self.facts: Final = facts
        self.module: Final = facts.module
        self.name: Final = name
        self.function: Final = function

    @cached_property
    def nodes(self) -> tuple[Expr, ...]:
        """Every node of the function, children before parents."""
        return tuple(post_order(self.function))

    @cached_property
    def callees(self) -> frozenset[Expr]:
        """The nodes that are called where they stand."""
        calls = (n.callee for n in self.nodes if isinstance(n, Call))
        return frozenset(callee for callee in calls if isinstance(callee, Expr))

    @cached_property
    def agreement(self) -> TypeComparison:
        """How types are compared: by the sizes and assumptions of the functions around."""
        functions = [n for n in self.nodes if isinstance(n, Function)]
        sizes = frozenset(p.name for f in functions for p in f.type_params if isinstance(p, DimVar))
        assumed = tuple(a for f in functions for a in f.assumptions)
        return TypeComparison(sizes, assumed)
