"""Functions of models with some of their arguments fixed."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, Final, final

from ...diagnostics.catalogue.specialise import NotFixed
from ...diagnostics.diagnostic import CheckError, Report
from ...ir.expr import Rule
from ...ir.transforms import Options
from ...translate.source.definition import Definition, DerivedFunction, bottom, signature_of
from ..compile.inspected import Inspected
from ..compile.program import Program
from .fixing import Fixing
from .runner import Runner


@final
class SpecialisedOfModels(Inspected):
    """A relay function of models without the parameters that are fixed.

    Its models are arguments, bound by `model.bind(f)`, or what `relay.grad(model, f, args)`
    differentiates in: it is used as the function that it is of."""

    def __init__(
        self,
        function: Definition | DerivedFunction,
        statics: Mapping[str, Any],
        values: Mapping[str, Any],
        *,
        fast_math: bool,
    ) -> None:
        """Specialise the program for models as they are annotated. Raises CheckError, RunError."""
        self.__name__: str = function.name
        self._function: Final = function
        self._fixing, translation = Fixing.of(function, statics, values, fast_math=fast_math)
        self.runner: Final = Runner(function, self._fixing, translation)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Compile for these arguments if need be, and run. Raises CheckError and RunError."""
        return self.runner.latest(args, kwargs)

    def interpret(self, *args: Any, **kwargs: Any) -> Any:
        """Run in the reference evaluator instead of compiled code."""
        return self.runner.interpret(args, kwargs)

    def check(self) -> Report:
        """Check the function and everything it reaches. Raises CheckError."""
        return self.runner.check()

    def transformed(
        self, rule: Rule, options: Options, wrt: tuple[str, ...] | None = None
    ) -> SpecialisedOfModels:
        """Refuse a transform that is not taken in the parameters of models. Raises CheckError."""
        head, name = bottom(self._function).source.head, self.__name__
        why = f"takes a model: fix the arguments of what `relay.{rule.value}` makes of it instead"
        raise CheckError(NotFixed(head, name, "", why))

    @property
    def __signature__(self) -> inspect.Signature:
        whole = signature_of(self._function)
        kept = [p for n, p in whole.parameters.items() if not self._fixing.has(n)]
        return whole.replace(parameters=kept)

    @property
    def program(self) -> Program:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The program for models as they are annotated."""
        return self.runner.program

    @property
    def source_text(self) -> str:
        """The text of the function and everything it reaches."""
        return str(self.program.translated)

    def __repr__(self) -> str:
        return f"<relay function {self.__name__}>"

    def __str__(self) -> str:
        return self.show("typed")
