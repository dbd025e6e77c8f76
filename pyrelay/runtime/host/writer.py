"""The context of the code of one global function: names, sizes and values in scope.

Whatever may nest is a step of `ir.traverse.run`, so no program nests too deeply for the compiler
itself.
"""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

from ...ir.dims import Dim
from ...ir.expr import (
    Call,
    Constant,
    Constructor,
    Expr,
    GlobalVar,
    TensorData,
    Transform,
    Tuple,
    Var,
    type_of,
)
from ...ir.op import Op
from ...ir.traverse import Steps
from ...ir.types import UNIT, DType, dtype_of
from ...kernels.function_plan import Planned
from ...lower_torch.code import Code
from ...lower_torch.constants import dtype_of as constant_dtype
from ...lower_torch.constants import is_host_number
from ...lower_torch.terms import Form, Number, Term, form_of, leaf, write
from .exits import Exit
from .frame import Frame, Mode, Statements
from .liveness import Liveness, Region, holds_tensors
from .names import NO_NAMES, Identifiers
from .program import HostProgram
from .sizes import Sizes
from .trampoline import deep_function


class Writer(Statements, ABC):
    """Writes the Python functions of one global function; the context of the calls in them."""

    def __init__(
        self, program: HostProgram, home: Planned, shown: Mapping[str, Var | None] = NO_NAMES
    ) -> None:
        """`shown` are the names of the source that a debugger shows (`Identifiers`)."""
        names = Identifiers(program.function_names(), shown)
        super().__init__(names, Code(home.function.span.file))
        self.program: Final = program
        self.home: Final = home
        self.written: Final[list[ast.FunctionDef]] = []
        self.bases: Final[dict[Planned, str]] = {}
        self.live: Liveness = program.liveness(home)
        self.loops_made: int = 0
        self.definitions: int = 0
        self._terms: Final[dict[Var, Term]] = {}
        self._holders: Final[dict[Var, str]] = {}
        self._sizes: Sizes = Sizes(self, home.needed_sizes)

    @abstractmethod
    def block(self, body: Expr, region: Region, exit_: Exit) -> Steps[None]:
        """Write a region: its bindings in order, then its result."""

    def scalar(self, value: Number, dtype: DType) -> ast.expr:
        """Return a 0-d tensor that is made once, at compile time."""
        return self.code.name(self.program.pool.scalar(value, dtype))

    def body(self, op: Op) -> ast.expr:
        """Return the body of an operator's lowering, as a global name."""
        return self.code.name(self.program.pool.body(op))

    def kernel(self, name: str) -> ast.expr:
        """Return a function of torch's lowest layer, as a global name."""
        return self.code.name(self.program.pool.kernel(name))

    def size(self, dim: Dim) -> ast.expr:
        """Return the integer value of a dim."""
        return self._sizes.value(dim)

    def is_in_range(self, call: Call) -> bool:
        """Return whether the integer result of a call is known to fit into its dtype."""
        return call in self.program.in_range

    def delete(self, variables: Sequence[Var]) -> None:
        """Add a deletion of the names of variables, if there are any."""
        names = [self._holders.get(v) or self.names.of(v) for v in variables]
        for name in names:
            self.frame.read(name)
        if names:
            self.emit(self.code.delete(names))

    @contextmanager
    def nested(self) -> Generator[list[ast.stmt]]:
        """Collect the statements of a nested block; what it learns of sizes stays inside."""
        outer, sizes = self.frame.statements, self._sizes
        self.frame.statements, self._sizes = [], sizes.copy()
        self.frame.nesting += 1
        yield self.frame.statements
        self.frame.nesting -= 1
        self.frame.statements, self._sizes = outer, sizes

    @contextmanager
    def inside(self, frame: Frame) -> Generator[None]:
        """Write into another Python function."""
        outer, sizes, live = self.frame, self._sizes, self.live
        self.frame, self._sizes = frame, sizes.copy()
        yield
        self.frame, self._sizes, self.live = outer, sizes, live

    def forget_sizes(self, names: Sequence[str]) -> None:
        """Drop sizes that a function quantifies itself."""
        self._sizes.forget(names)

    def define(self, var: Var, form: Form | None = None) -> None:
        """Bring a variable, just assigned under its name, into scope with its sizes."""
        ty = type_of(var)
        if ty == UNIT:
            self._terms[var] = leaf(lambda: self.code.tuple(()), Form.OTHER)
            return
        name = self.names.of(var)
        self._terms[var] = leaf(lambda: self.load(name), form or form_of(ty), dtype_of(ty))
        self._sizes.provide(name, ty)

    def define_as(self, var: Var, name: str) -> None:
        """Bring a variable into scope whose value has another name."""
        self._holders[var] = name
        self._terms[var] = leaf(lambda: self.load(name), Form.OTHER)

    def target(self, var: Var) -> str | None:
        """Return the name to assign a variable's value to; None if nothing will read it."""
        if type_of(var) == UNIT:
            return None
        if var not in self.live.uses and not self._sizes.wants(type_of(var)):
            return None
        return self.names.of(var)

    def dying(self, region: Region, position: int) -> list[Var]:
        """Return the variables that can be deleted once a position is done: none that a debugger
        may look at."""
        if self.program.is_debugged:
            return []
        return [v for v in region.dying(position) if self._deletable(v, region)]

    def _deletable(self, var: Var, region: Region) -> bool:
        if self._terms[var].parts is not None:
            return False  # a tuple that was never made
        owned = var in region.inherited or self.live.is_home(var, region)
        return owned and var not in self.live.captured and holds_tensors(var.ty)

    def atom(self, expr: Expr) -> Term:
        """Return the value of an atom."""
        match expr:
            case Var():
                return self._terms[expr]
            case Constant():
                return self._constant(expr)
            case GlobalVar():
                return self._global(expr)
            case Constructor():
                return self._constructor(expr)
            case Tuple(()):
                return leaf(lambda: self.code.tuple(()), Form.OTHER)
            case _:
                kind = "a transform" if isinstance(expr, Transform) else "not an operand"
                raise AssertionError(f"the program is not in its last stage: {kind}")

    def _constant(self, constant: Constant) -> Term:
        value = constant.value
        if isinstance(value, str):
            return leaf(lambda: self.code.literal(value), Form.OTHER)
        if isinstance(value, TensorData):
            name = self.program.pool.tensor(constant)
            return leaf(lambda: self.code.name(name), Form.TENSOR, dtype_of(type_of(constant)))
        if is_host_number(constant):
            return Term((), lambda: self.code.literal(value), Form.NUMBER, None, value)
        dtype = constant_dtype(constant)
        return Term((), lambda: self.scalar(value, dtype), Form.TENSOR, dtype, value)

    def _global(self, expr: GlobalVar) -> Term:
        planned = self.program.plan.by_global[expr.name]
        base = self.program.name(planned)
        name = f"{base}__value" if planned.is_deep else base
        return leaf(lambda: self.code.name(name), Form.OTHER)

    def _constructor(self, expr: Constructor) -> Term:
        """Return a constructor as a function value."""
        program = self.program
        make = program.layout.function(expr.adt, expr.name)
        make = deep_function(make) if program.deep_values else make
        name = program.pool.constructor(expr, make)
        return leaf(lambda: self.code.name(name), Form.OTHER)

    def node(self, expr: Expr) -> ast.expr:
        """Return the syntax of an atom."""
        return write(self.atom(expr), self, "value")

    def nodes(self, exprs: Sequence[Expr]) -> list[ast.expr]:
        """Return the syntax of atoms."""
        return [self.node(e) for e in exprs]

    def arguments(self, call: Call) -> list[ast.expr]:
        """Return the arguments of a function's call."""
        return [
            self.code.method(node, "clone") if self.program.copies(call, i) else node
            for i, node in enumerate(self.nodes(call.args))
        ]

    def step(self, steps: ast.expr, *, is_tail: bool) -> ast.expr:
        """Return the value of steps: in tail position they are handed to the trampoline."""
        if is_tail:
            return steps
        self.frame.has_yield = True
        return self.code.yielded(steps)

    def ensure_yield(self) -> None:
        """Make the function under construction a generator if it is to make steps: Python makes
        one only of a function with a `yield` in it."""
        if self.frame.mode is Mode.STEPS and not self.frame.has_yield:
            self.emit(self.code.evaluate(self.code.yielded(self.code.literal(None))))
