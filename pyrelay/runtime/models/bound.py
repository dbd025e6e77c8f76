"""Functions together with the models whose parameters they use.

`model.bind(loss)` supplies a model, `with_params(loss)` makes the parameters an argument.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from types import FunctionType
from typing import Any, Final, Protocol, final

from ...dataclass import dataclass
from ...diagnostics.catalogue.model import NotAModel
from ...diagnostics.diagnostic import Report, RunError
from ...diagnostics.source import Span
from ...ir.expr import Batching, Differentiation, Function, Rule
from ...ir.transforms import Options
from ...translate.source.definition import Definition
from ..values.text import describe
from .model_layout import Blueprint
from .records import Params, TensorRecord


@final
@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """A transform of a function in the parameters of models. With `mapped`, the transform is
    mapped, the innermost first; that by the rule VMAP is the function itself."""

    rule: Rule
    options: Differentiation
    mapped: tuple[Batching, ...] = ()


request: Final = lru_cache(maxsize=1024)(Request)
"""Returns the request for a transform: one object, by which calls are found fast."""


class Running(Protocol):
    """The runner of a relay function, as models use it."""

    @property
    def definition(self) -> Definition:
        """The function, or the one that it is a transform of."""
        ...

    def of_part(self, definition: Definition) -> Running:
        """Return the runner of a model inside the model, the same each time."""
        ...

    def call(
        self, models: tuple[Any, ...], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        """Run the function with implicit models. Raises CheckError and RunError."""
        ...

    def of_models(
        self,
        wanted: Request,
        models: tuple[Any, ...],
        args: Any,
        implicit: Mapping[str, Any],
        tangents: Sequence[Any] = (),
    ) -> Any:
        """Return a transform of the function in the parameters of models, at arguments; `implicit`
        are values by name, `tangents` those of the parameters, in forward mode."""
        ...

    def plan_of_model(
        self, hyper: Mapping[str, Any], sizes: Mapping[str, int]
    ) -> tuple[Blueprint, Function]:
        """Return the blueprint of a model, and its typed function. Raises CheckError."""
        ...

    def check_with(self, models: Sequence[Any]) -> Report:
        """Check the function with its implicit models. Raises CheckError and RunError."""
        ...


@final
class BoundFunction:
    """A relay function with models as its implicit instances."""

    def __init__(self, models: tuple[object, ...], function: Any) -> None:
        self._models: Final = models
        self._runner: Final = runner_of(function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the function with the bound models. Raises CheckError and RunError."""
        return self._runner.call(self._models, args, kwargs)

    def check(self) -> Report:
        """Check the function with the bound models. Raises CheckError."""
        return self._runner.check_with(self._models)


@final
class PureFunction:
    """A relay function of a `Params` record and its own arguments, or its derivative in the
    parameters, mapped over batches; no model is changed."""

    def __init__(
        self,
        function: Any,
        derivative: tuple[Rule, Differentiation] | None = None,
        mapped: tuple[Batching, ...] = (),
    ) -> None:
        self._function: Final = function
        self._runner: Final = runner_of(function)
        self._derivative: Final = derivative
        self._mapped: Final = mapped
        """How it is mapped, the innermost first."""

    def __call__(self, params: Params, *args: Any, **kwargs: Any) -> Any:
        """Run the function with these parameters. Raises CheckError and RunError."""
        source = (_params(params),)
        if self._derivative is None and not self._mapped:
            return self._runner.call(source, args, kwargs)
        rule, options = self._derivative or (Rule.VMAP, Differentiation())
        return self._runner.of_models(request(rule, options, self._mapped), source, args, kwargs)

    def transformed(self, rule: Rule, options: Options) -> Any:
        """Return a transform in the parameters: a function of the same arguments."""
        if isinstance(options, Batching):
            return PureFunction(self._function, self._derivative, (*self._mapped, options))
        if self._derivative is not None or self._mapped:
            runner_of(self, f"relay.{rule.value}")
        if not rule.takes_tangents:
            return PureFunction(self._function, (rule, options))

        def moved(primals: Sequence[Any], tangents: Sequence[Any], **implicit: Any) -> Any:
            source, (direction,) = (_params(primals[0]),), tangents
            along, args = (_params_like(direction),), tuple(primals[1:])
            return self._runner.of_models(request(rule, options), source, args, implicit, along)

        return moved


def _params(value: Any) -> Params:
    if isinstance(value, Params):
        return value
    raise RunError(
        NotAModel(
            "the first argument is the parameters of a model",
            describe(value),
            "pass model.params, or what relay.sgd gives",
        )
    )


def _params_like(value: Any) -> Any:
    """Return a direction of parameters as the nested tuple of the program. Raises RunError."""
    if isinstance(value, TensorRecord):
        return value.tree
    raise RunError(
        NotAModel(
            "the direction is a record like the parameters of a model",
            describe(value),
            "pass what relay.grad gives, or model.params",
        )
    )


def runner_of(function: Any, taker: str = "this") -> Running:
    """Return the runner of a relay function; `taker` names what takes it. Raises RunError for
    anything that is no relay function."""
    found = getattr(function, "runner", None)
    if found is None:
        is_function = isinstance(function, FunctionType)
        is_plain = is_function and function.__name__ != "<lambda>"
        other = "a lambda" if is_function else describe(function)
        way = "write it as a function under @relay: `@relay`, `def f(x: Float): ...`"
        if not is_function and taker != "this":
            way = f"pass the function itself, and its arguments to what comes back: {taker}(f)(x)"
        raise RunError(
            NotAModel(
                f"{taker} takes a function decorated with @relay",
                f"the function `{function.__name__}`" if is_plain else other,
                f"decorate `{function.__name__}` with @relay" if is_plain else way,
            )
        )
    return found


def place_of(function: object) -> Span | None:
    """Return the place where a relay function is defined; None for anything else."""
    found = getattr(function, "__relay__", None)
    return found.source.head if isinstance(found, Definition) else None
