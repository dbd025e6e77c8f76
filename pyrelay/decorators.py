"""`@relay`, `@relay_model` and the `relay` namespace: what a user's program starts from.

`relay` is both the decorator and the namespace of operators and of functions over functions. The
objects here are thin shells that load neither torch nor triton; the first call brings in the
runtime.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final, Generic, ParamSpec, TypeVar, cast, final

from .ir.intrinsics import Intrinsic
from .ir.op import Op
from .ir.ops.table import ALL
from .translate.definition import Definition, DerivedFunction, Kind

if TYPE_CHECKING:
    from .ir.module import Module
    from .runtime.dispatch import CacheInfo, Dispatcher

P = ParamSpec("P")
R = TypeVar("R")


class RelayFunction(Generic[P, R]):
    """A function of the language: call it, check it, look inside.

    `str(f)` is its typed program, `f.type` its type, `f.show(stage)` the program at a stage.
    """

    def __init__(self, definition: Definition | DerivedFunction) -> None:
        self.__relay__: Final = definition
        self.__name__: str = definition.name
        self.__doc__ = _documentation(definition)
        self._made: Dispatcher | None = None

    @property
    def _dispatcher(self) -> Dispatcher:
        if self._made is None:
            from .runtime.dispatch import Dispatcher  # the runtime brings in torch

            self._made = Dispatcher(self.__relay__)
        return self._made

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Compile for these arguments if need be, and run. Raises CheckError and RunError."""
        made = self._made or self._dispatcher
        return made(args, kwargs)

    def __repr__(self) -> str:
        return f"<relay function {self.__name__}>"

    def __str__(self) -> str:
        return self.show("typed")

    def check(self) -> None:
        """Check the function and everything it reaches. Raises CheckError."""
        self._dispatcher.check()

    @property
    def type(self) -> str:
        """The inferred type, its sizes and the equations between them included."""
        return self._dispatcher.type

    @property
    def module(self) -> Module:
        """The typed IR of the function and everything it reaches."""
        return self._dispatcher.module

    def show(self, stage: str = "typed") -> str:
        """Give the program at a stage: source, translated, typed, anf, grad, simplified or host."""
        return self._dispatcher.show(stage)

    def diff(self, before: str, after: str) -> str:
        """Give what changed between two stages, as a unified diff."""
        return self._dispatcher.diff(before, after)

    def interpret(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run in the reference evaluator instead of compiled code."""
        return self._dispatcher.interpret(args, kwargs)

    def cache_info(self) -> CacheInfo:
        """Tell what is compiled and how often it was used."""
        return self._dispatcher.cache_info()


@final
class RelayModel(RelayFunction[P, R]):
    """The definition of a model; `relay.create_model` makes instances with parameters."""

    def __repr__(self) -> str:
        return f"<relay model {self.__name__}>"


@final
class Operator:
    """An operator of the namespace: a name in `@relay` code, and a function on tensors."""

    def __init__(self, op: Op) -> None:
        self.__relay__: Final = op
        self.__name__: str = op.name
        self.__doc__ = op.doc

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Apply the operator to tensors, outside of a compiled program. Raises CheckError."""
        from .runtime.eager import apply

        return apply(self.__relay__, args, kwargs)

    def __repr__(self) -> str:
        return f"<operator {self.__name__}>"


@final
class Function:
    """A function of the namespace that is no operator: an intrinsic of the language and, called
    from a script, the function of `api` of the same name."""

    def __init__(self, intrinsic: Intrinsic) -> None:
        self.__relay__: Final = intrinsic
        self.__name__: str = intrinsic.value

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function as a script does."""
        from . import api  # brings in the runtime

        return getattr(api, self.__relay__.value)(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<relay.{self.__name__}>"


@final
class Group:
    """A part of the namespace, such as `relay.random` or `relay.optim`."""

    def __init__(self, name: str, members: dict[str, Any]) -> None:
        self._name: Final = name
        self.__dict__.update(members)

    def __repr__(self) -> str:
        return f"<relay.{self._name}>"

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Callable[..., Any]: ...


@final
class Namespace:
    """The decorator and namespace `relay`."""

    def __init__(self, members: dict[str, Any]) -> None:
        self.__dict__.update(members)

    def __call__(self, function: Callable[P, R]) -> RelayFunction[P, R]:
        """Make a function of the language of an annotated Python function.

        Parses it and refuses Python that is not the language; names and types are looked at when
        it is first called or checked. Raises CheckError.
        """
        return RelayFunction(_define(function, Kind.FUNCTION))

    def __repr__(self) -> str:
        return "<pyrelay.relay>"

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Callable[..., Any]: ...


def relay_model(function: Callable[P, R]) -> RelayModel[P, R]:
    """Make the definition of a model of an annotated Python function.

    Operators and models that it calls without their weights get parameters, one set a call site.
    Raises CheckError for Python that is not the language.
    """
    return RelayModel(_define(function, Kind.MODEL))


def _define(function: Callable[..., Any], kind: Kind) -> Definition:
    definition = Definition(cast("FunctionType", function), kind)
    definition.source  # noqa: B018  reads and checks the source now, while it is unchanged
    return definition


def _documentation(definition: Definition | DerivedFunction) -> str | None:
    base = definition if isinstance(definition, Definition) else definition.definition
    return base.function.__doc__


def _members() -> dict[str, Any]:
    found: dict[str, Any] = {op.name: Operator(op) for op in ALL}
    found |= {i.value: Function(i) for i in Intrinsic}
    return found


relay: Final = Namespace(_members())
