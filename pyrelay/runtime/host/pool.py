"""The globals of a generated program: constants, bodies of operators, and what may go wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, final

import torch

from ...autotuning.methods import Site
from ...diagnostics.catalogue.run import NoClauseMatched
from ...diagnostics.diagnostic import RunError
from ...diagnostics.source import Span
from ...ir.expr import Call, Constant, Constructor
from ...ir.op import Library, Op
from ...ir.types import DType, float32
from ...lower_torch.constants import kernel, tensor_constant, torch_dtype
from ...lower_torch.integers import exactly, fitted, integer_power, truncated
from ...lower_torch.scalars import cast_integer, sign_of, tensor_of
from ...lower_torch.terms import Number
from ..dispatch.dispatching import DispatchedCall
from ..values.values import Cell
from .names import identifier
from .trampoline import DeepFunction, deep_function, run_steps


@final
class Pool:
    """The namespace in which generated functions run. Its names have two underscores, which the
    names of variables never do."""

    def __init__(self, device: torch.device) -> None:
        self.device: Final = device
        self._failures: Final[list[NoClauseMatched]] = []
        self._scalars: Final[dict[tuple[str, str], str]] = {}
        self._tensors: Final[dict[Constant, str]] = {}
        self._bodies: Final[dict[Op, str]] = {}
        self._in_place: Final[dict[Op, str]] = {}
        self._kernels: Final[dict[str, str]] = {}
        self._constructors: Final[dict[tuple[str, str], str]] = {}
        self._data: Final[dict[Any, str]] = {}
        self.namespace: Final[dict[str, Any]] = {
            "torch": torch,
            "device": device,
            "Cell": Cell,
            "DeepFunction": DeepFunction,
            "deep_function": deep_function,
            "run_steps": run_steps,
            "tensor_of": tensor_of,
            "cast_integer": cast_integer,
            "exactly": exactly,
            "fitted": fitted,
            "integer_power": integer_power,
            "truncated": truncated,
            "sign_of": sign_of,
            "failure": self._failure,
        }

    def scalar(self, value: Number, dtype: DType) -> str:
        """Return the name of a 0-d tensor; one for each value and dtype."""
        key = (repr(value), dtype.name)
        if key not in self._scalars:
            suffix = "" if dtype == float32 else f"_{dtype.name}"
            text = repr(value).replace("-", "m").replace("+", "").replace(".", "_")
            tensor = torch.tensor(value, dtype=torch_dtype(dtype), device=self.device)
            self._scalars[key] = self._add(f"c__{text}{suffix}", tensor)
        return self._scalars[key]

    def tensor(self, constant: Constant) -> str:
        """Return the name of a constant tensor."""
        if constant not in self._tensors:
            name = f"c__tensor_{len(self._tensors)}"
            self._tensors[constant] = self._add(name, tensor_constant(constant, self.device))
        return self._tensors[constant]

    def body(self, op: Op) -> str:
        """Return the name of the body of an operator's lowering."""
        if op not in self._bodies:
            self._bodies[op] = self._add(f"op__{identifier(op.name)}", op.lowering.body)
        return self._bodies[op]

    def in_place_body(self, op: Op) -> str:
        """Return the name of the body of an operator that writes into an operand."""
        assert isinstance(op.lowering, Library)
        if op not in self._in_place:
            name = f"op__{identifier(op.name)}_in_place"
            self._in_place[op] = self._add(name, op.lowering.in_place)
        return self._in_place[op]

    def kernel(self, name: str) -> str:
        """Return the name of a function of torch's lowest layer."""
        if name not in self._kernels:
            library, _, rest = name.rpartition("::")
            text = f"{library or 'aten'}__{identifier(rest).strip('_')}"
            self._kernels[name] = self._add(text, kernel(name))
        return self._kernels[name]

    def site(self, name: str, site: Site) -> str:
        """Return the name of a call that can be done in several ways."""
        return self._add(name, site)

    def dispatched(self, call: Call) -> tuple[str, DispatchedCall]:
        """Return the name of a dispatched call, and the call: a function of its operands."""
        assert isinstance(call.callee, Op)
        found = DispatchedCall(call, self.device)
        return self._add(f"dispatch__{identifier(call.callee.name)}", found), found

    def constructor(self, constructor: Constructor, make: Callable[..., Any]) -> str:
        """Return the name of a constructor as a function value."""
        key = (constructor.adt, constructor.name)
        if key not in self._constructors:
            self._constructors[key] = self._add(f"new__{identifier(constructor.name)}", make)
        return self._constructors[key]

    def data(self, name: str, value: Any) -> str:
        """Return the name of a class or function that makes or distinguishes values of data
        types."""
        if value not in self._data:
            self._data[value] = self._add(name if "__" in name else f"data__{name}", value)
        return self._data[value]

    def no_clause(self, span: Span) -> int:
        """Return the number by which generated code raises that no clause matched."""
        self._failures.append(NoClauseMatched(span))
        return len(self._failures) - 1

    def _failure(self, number: int) -> RunError:
        return RunError(self._failures[number])

    def _add(self, name: str, value: Any) -> str:
        unique, count = name, 1
        while unique in self.namespace:
            unique, count = f"{name}_{count}", count + 1
        self.namespace[unique] = value
        return unique
