"""Programs of operators, whose kernel functions some lowering runs and torch all else."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias, final

import torch

from pyrelay.ir.expr import Call, Expr, Function, GlobalVar
from pyrelay.ir.module import Module
from pyrelay.ir.op import Op
from pyrelay.kernels.calling import NoKernel
from pyrelay.kernels.reading import straight_line
from pyrelay.lower_torch.apply import apply_op
from pyrelay.runtime.compile.evaluator import evaluate
from tests.ops.straight import atoms
from tests.ops.test_kernels import EVERY

CPU: Final = torch.device("cpu")
OPS: Final = EVERY

Run: TypeAlias = Callable[[Function, Sequence[Any]], Any]
"""Runs a kernel function on operands. Raises NoKernel where it has none."""


@final
class Kernels:
    """Runs a straight-line program, calls of its kernel functions as kernels."""

    def __init__(self, module: Module, sizes: Mapping[str, int], run: Run) -> None:
        self._module: Final = module
        self._sizes: Final = sizes
        self._run: Final = run
        self.refused: Final[list[str]] = []
        """Why there are no kernels for functions that were called."""

    def __call__(self, args: Sequence[Any]) -> Any:
        """Return the value of the program."""
        main = self._module.functions["main"]
        values: dict[Expr, Any] = dict(zip(main.params, args, strict=True))
        bindings, end = straight_line(main.body)
        for binding in bindings:
            values[binding.var] = self._step(binding.value, atoms(values))
        return self._step(end, atoms(values))

    def _step(self, expr: Expr, atom: Callable[[Expr], Any]) -> Any:
        match expr:
            case Call(callee=Op() as op, args=operands):
                given = [atom(a) for a in operands]
                return apply_op(op, expr, given, lambda dim: dim.evaluate(self._sizes), CPU)
            case Call(callee=GlobalVar(name), args=operands):
                return self._kernel(name, [atom(a) for a in operands])
            case other:
                return atom(other)

    def _kernel(self, name: str, given: Sequence[Any]) -> Any:
        try:
            return self._run(self._module.functions[name], given)
        except NoKernel as error:
            self.refused.append(str(error))
            return evaluate(self._module, name, given)
