"""Backward code before anything is decided about what the forward pass saves for it.

The code mentions variables of the forward function freely. Where the forward function branched,
the code has a `Fork`: one code per arm, chosen at run time by what that arm saved.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import Enum
from typing import TYPE_CHECKING, final

from ...dataclass import dataclass
from ...ir.expr import Binding, Expr, Var

if TYPE_CHECKING:
    from ...ir.dims import Dim
    from ...ir.types import AdtType, Type
    from ..deriving.bodies import Arm, FunctionBody, Step
    from ..deriving.cotangents.masks import Masks
    from .instances import Instance


class Ending(Enum):
    """Which paths through a function a piece of backward code reverses."""

    ALL = "all"
    LEAVE = "leave"
    """Those on which a loop ends."""
    AGAIN = "again"
    """Those on which a loop goes on."""


@final
@dataclass(slots=True, eq=False)
class Needs:
    """Forward variables and sizes that code mentions, in order of first mention."""

    vars: dict[Var, None] = field(default_factory=dict[Var, None])
    dims: dict[Dim, None] = field(default_factory=dict["Dim", None])


@final
@dataclass(slots=True, eq=False)
class Code:
    """Bindings in order; a binding whose variable is a key of `forks` stands for that fork."""

    bindings: list[Binding] = field(default_factory=list[Binding])
    forks: dict[Var, Fork] = field(default_factory=dict["Var", "Fork"])
    results: tuple[Expr, ...] = ()
    needs: Needs = field(default_factory=Needs)
    effects: set[Var] = field(default_factory=set[Var])
    """Variables of the bindings that work on shadows, forks included: they stay."""
    recomputed: list[Step] = field(default_factory=list["Step"])
    """Cheap steps of the forward function, done again at the start of the code."""


@final
@dataclass(slots=True, eq=False)
class Fork:
    """The reverse of an `If` or a `Match`; `var` is the tuple of the arms' results."""

    step: Step
    ending: Ending
    var: Var
    arms: list[tuple[Arm, Code]]
    types: tuple[Type, ...]


@final
@dataclass(slots=True, eq=False)
class Scope:
    """The residual that the forward function saves at the end of one body: of an arm, or its
    own."""

    codes: list[Code] = field(default_factory=list[Code])
    saved: list[Var] = field(default_factory=list[Var])
    """Variables, and the sizes of `Work.sizes`."""


@final
@dataclass(slots=True, eq=False)
class Branching:
    """How the forward function passes to the backward one which arm ran, and what it saved."""

    step: Step
    var: Var
    """Holds the residual."""
    scopes: dict[Arm, Scope] = field(default_factory=dict["Arm", Scope])
    forks: list[Fork] = field(default_factory=list[Fork])
    constructors: dict[Arm, str] = field(default_factory=dict["Arm", str])
    """Empty where there is one arm: then the residual is a tuple."""
    by_condition: bool = False
    """Chosen by the condition of the `If`, which is saved, since no arm saves anything else."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class PulledCall:
    """A call whose callee is differentiated."""

    instance: Instance
    type_args: tuple[Type | Dim, ...]
    residual: Var | None
    trace: AdtType | None = None
    """The type of the trace, where the callee is a loop."""


@final
@dataclass(slots=True, eq=False)
class Work:
    """One function while it is differentiated."""

    source: FunctionBody
    instance: Instance
    varied: Masks
    useful: Masks | None
    """For recursive functions, whose masks must not depend on the order of derivation."""
    run: Var
    """A cell that stands for one run of the backward function: what shadows belong to."""
    group: Mapping[str, Instance] = field(default_factory=dict[str, "Instance"])
    """The instances of the functions that call each other around this one."""
    calls: dict[Step, PulledCall | None] = field(default_factory=dict["Step", PulledCall | None])
    expanded: set[Step] = field(default_factory=set["Step"])
    """Steps whose expansion is what is differentiated."""
    branchings: dict[tuple[Step, Ending], Branching] = field(
        default_factory=dict[tuple["Step", Ending], Branching]
    )
    open_calls: dict[Var, PulledCall] = field(default_factory=dict[Var, PulledCall])
    """Backward calls, by the variable that is bound to them, of functions in the same group."""
    types: dict[Var, Type] = field(default_factory=dict[Var, "Type"])
    """Types of the variables that hold residuals."""
    residuals: dict[Var, Step] = field(default_factory=dict[Var, "Step"])
    """Forward variables that hold what a call or a branch saved, by the step they belong to."""
    kept: set[Var] = field(default_factory=set[Var])
    """The residual variables that are saved; a call whose residual is not stays as it is."""
    sizes: dict[Var, Dim] = field(default_factory=dict[Var, "Dim"])
    """Made-up forward variables that hold a size."""
