"""Where values die: after which statement, and at the start of which arm, a name can be deleted.

A *region* is a straight run of host code: the body of a function, an arm, a loop's body. Position
`i` is its binding `i`, counted through chained let blocks; the last position is its result.
"""

from __future__ import annotations

from dataclasses import field
from typing import Final, final

from ...dataclass import dataclass
from ...ir.expr import Call, Expr, Function, If, LetBlock, Match, Tuple, Var
from ...ir.op import Op
from ...ir.traverse import children, free_vars, pattern_vars
from ...ir.types import SizeType, StrType, TensorType, TupleType, Type
from ...kernels.function_plan import FunctionPlan, Planned


@final
@dataclass(slots=True, eq=False)
class Region:
    """A straight run, and for each variable used in it the last position that uses it."""

    parent: Region | None
    position: int
    last: dict[Var, int] = field(default_factory=dict[Var, int])
    inherited: set[Var] = field(default_factory=set[Var])
    """The variables of the regions around it that may be deleted in it."""
    by_position: dict[int, list[Var]] | None = None

    def dying(self, position: int) -> list[Var]:
        """Return the variables last used at a position, in order of first use."""
        if self.by_position is None:
            self.by_position = {}
            for var, last in self.last.items():
                self.by_position.setdefault(last, []).append(var)
        return self.by_position.get(position, [])


@final
class Liveness:
    """The regions of one unit, and the variables that functions inside it capture."""

    def __init__(self, plan: FunctionPlan, unit: Planned) -> None:
        self._plan: Final = plan
        self._regions: Final[dict[tuple[Expr, int], Region]] = {}
        self.captured: Final[set[Var]] = set()
        self.uses: Final[dict[Var, int]] = {}
        self._operand_uses: Final[dict[Var, int]] = {}
        self._tuples: Final[dict[Var, Tuple]] = {}
        self._home: Final[dict[Var, Region]] = {}
        self._pending: Final[list[tuple[Expr, Region]]] = []
        function = unit.function
        self._open((function, 0), function.body, None, 0, function.params)
        while self._pending:
            self._walk(*self._pending.pop())

    def region(self, node: Expr, arm: int = 0) -> Region:
        """Return the region of a function's body, or of an arm of a node."""
        return self._regions[node, arm]

    def is_only_operand(self, var: Var) -> bool:
        """Return whether all uses of a variable are as operands of operators."""
        return 0 < self.uses.get(var, 0) == self._operand_uses.get(var, 0)

    def is_home(self, var: Var, region: Region) -> bool:
        """Return whether the variable is bound in the region."""
        return self._home.get(var) is region

    def _open(
        self,
        key: tuple[Expr, int],
        body: Expr,
        parent: Region | None,
        position: int,
        bound: tuple[Var, ...],
    ) -> None:
        region = Region(parent, position)
        self._regions[key] = region
        for var in bound:
            self._home[var] = region
        self._pending.append((body, region))

    def _walk(self, body: Expr, region: Region) -> None:
        position = 0
        while isinstance(body, LetBlock):
            for binding in body.bindings:
                self._home[binding.var] = region
                if isinstance(binding.value, Tuple):
                    self._tuples[binding.var] = binding.value
                if not isinstance(binding.value, Function):
                    self._visit(binding.value, region, position)
                elif self._plan.by_function[binding.value].place is None:
                    self._capture(binding.value, region, position)
                position += 1
            body = body.body
        self._visit(body, region, position)

    def _visit(self, expr: Expr, region: Region, position: int) -> None:
        match expr:
            case Var():
                self._use(expr, region, position)
            case Function():
                self._capture(expr, region, position)
            case If(condition, then, otherwise):
                self._visit(condition, region, position)
                self._open((expr, 0), then, region, position, ())
                self._open((expr, 1), otherwise, region, position, ())
            case Match():
                self._visit_match(expr, region, position)
            case Call(callee=Op(), args=args):
                for arg in args:
                    self._visit_operand(arg, region, position)
            case Call():
                self._enter(expr, region, position)
            case _:
                for part in children(expr):
                    self._visit(part, region, position)

    def _visit_match(self, node: Match, region: Region, position: int) -> None:
        self._visit(node.value, region, position)
        for i, clause in enumerate(node.clauses):
            bound = pattern_vars(clause.pattern)
            self._open((node, 2 * i), clause.body, region, position, bound)
            if clause.guard is not None:
                # It sees what the pattern binds, and is over before the body starts.
                inside = self.region(node, 2 * i)
                self._open((node, 2 * i + 1), clause.guard, inside, -1, ())

    def _visit_operand(self, arg: Expr, region: Region, position: int) -> None:
        self._visit(arg, region, position)
        if isinstance(arg, Var):
            self._operand_uses[arg] = self._operand_uses.get(arg, 0) + 1
            if arg in self._tuples:
                # The tuple keeps its fields alive, so their names may live as long as it does.
                for part in self._tuples[arg].fields:
                    self._visit(part, region, position)

    def _enter(self, call: Call, region: Region, position: int) -> None:
        """Go into the body of a function that stands at this call; jumps do not enter again."""
        callee = self._plan.callee(call)
        # A function that is a value too has a name that may be deleted; others keep theirs.
        for part in children(call) if callee is None or callee.escapes else call.args:
            self._visit(part, region, position)
        if callee is None or callee.place is None or (callee.function, 0) in self._regions:
            return
        function = callee.function
        self._open((function, 0), function.body, region, position, function.params)

    def _capture(self, function: Function, region: Region, position: int) -> None:
        """Note what a function value refers to; it may be called at any later time."""
        pending, seen = [function], {function}
        while pending:
            for var in free_vars(pending.pop()):
                callee = self._plan.by_var.get(var)
                if callee is None or callee.escapes:
                    self.captured.add(var)
                    self._use(var, region, position)
                elif callee.place is not None and callee.function not in seen:
                    # Its body may stand inside this function, and refers to what is around it.
                    seen.add(callee.function)
                    pending.append(callee.function)

    def _use(self, var: Var, region: Region, position: int) -> None:
        self.uses[var] = self.uses.get(var, 0) + 1
        at: Region | None = region
        while at is not None:
            known = at.last.get(var)
            if known is not None and known >= position:
                return
            at.last[var] = position
            if self._home.get(var) is at:
                return
            position, at = at.position, at.parent


def holds_tensors(ty: Type | None) -> bool:
    """Return whether keeping a value of the type may keep a tensor of some size alive."""
    match ty:
        case TensorType(shape):
            return bool(shape)
        case SizeType() | StrType():
            return False
        case TupleType(fields):
            return any(holds_tensors(f) for f in fields)
        case _:
            return True
