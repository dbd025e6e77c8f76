"""The objects that decorated functions become: thin shells, which load torch at their first use.

They know only their definition; `runner` compiles and runs it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Generic, ParamSpec, Self, TypeVar, final, overload

from ...garbage import uncollected
from ...translate.source.definition import (
    Definition,
    DerivedFunction,
    UserRules,
    bottom,
    named,
    signature_of,
)

if TYPE_CHECKING:
    from ...diagnostics.diagnostic import Report
    from ...ir.expr import Options, Rule
    from ...ir.module import Module
    from ...prelude import ListResult
    from .compiled import CacheInfo
    from .runner import Runner
    from .specialised import Known

    class NoType:
        """The result of no function: of all results only Any is taken for it."""


P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S")
T = TypeVar("T")


_INTERNAL: Final = frozenset({"ruled", "runner", "specialised", "transformed"})
"""The attributes that other parts of pyrelay use, and `dir(f)` does not list."""


class Routine:
    """An object that `help` shows as a function: with its signature and its own documentation.

    What has `__get__` and no `__set__` is a routine to `inspect`; in a class body it stays itself.
    """

    if not TYPE_CHECKING:

        def __get__(self, instance, owner=None):
            return self


class RelayFunction(Routine, Generic[P, R]):
    """A function of the language: call it, check it, look inside.

    `str(f)` is its typed program, `f.type` its type, `f.show(stage)` the program at a stage.
    """

    def __init__(self, definition: Definition | DerivedFunction) -> None:
        function = bottom(definition).function
        self.__relay__: Final = definition
        self.__name__: str = definition.name
        self.__qualname__: str = definition.name
        self.__module__ = function.__module__
        self.__doc__ = function.__doc__
        self.__signature__: Final = signature_of(definition)
        if isinstance(definition, Definition):
            self.__qualname__ = function.__qualname__
            self.__wrapped__: Final = function  # where `inspect.getsource` finds the text
            self.__annotations__ = function.__annotations__
        self._made: Runner | None = None
        self._transforms: Final[dict[object, RelayFunction[..., Any]]] = {}
        self.specialised: Final[Known] = {}
        """Its specialised forms, by the arguments that are fixed."""

    @property
    def runner(self) -> Runner:
        """The runner, which compiles and runs the function."""
        if self._made is None:
            with uncollected():
                from .runner import Runner  # the runtime brings in torch

            self._made = Runner(self.__relay__)
        return self._made

    if TYPE_CHECKING:

        @overload  # a result of Any stays Any
        def __call__(self: RelayFunction[P, NoType], *args: P.args, **kwargs: P.kwargs) -> Any: ...
        @overload
        def __call__(
            self: RelayFunction[P, list[T]], *args: P.args, **kwargs: P.kwargs
        ) -> ListResult[T]: ...
        @overload
        def __call__(
            self: RelayFunction[P, list[T] | None], *args: P.args, **kwargs: P.kwargs
        ) -> ListResult[T] | None: ...
        @overload  # pairs: what is Any there stays Any, which would do for a list as well
        def __call__(
            self: RelayFunction[P, tuple[NoType, NoType]], *args: P.args, **kwargs: P.kwargs
        ) -> tuple[Any, Any]: ...
        @overload
        def __call__(
            self: RelayFunction[P, tuple[NoType, list[T]]], *args: P.args, **kwargs: P.kwargs
        ) -> tuple[Any, ListResult[T]]: ...
        @overload
        def __call__(
            self: RelayFunction[P, tuple[list[T], NoType]], *args: P.args, **kwargs: P.kwargs
        ) -> tuple[ListResult[T], Any]: ...
        @overload
        def __call__(
            self: RelayFunction[P, tuple[list[T], list[S]]], *args: P.args, **kwargs: P.kwargs
        ) -> tuple[ListResult[T], ListResult[S]]: ...
        @overload
        def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R: ...

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Any:
        """Compile for these arguments if need be, and run. Raises CheckError and RunError."""
        return (self._made or self.runner).latest(args, kwargs)

    def transformed(
        self, rule: Rule, options: Options, wrt: tuple[str, ...] | None = None
    ) -> RelayFunction[..., Any]:
        """Return a transform of the function, such as its gradient in the parameters `wrt`: the
        same object each time, so a script that mentions it again uses what it has compiled."""
        key = (rule, options, repr(wrt))  # an entry of `wrt` may be of any type
        made = self._transforms.get(key)
        if made is None:
            derived = DerivedFunction(rule, self.__relay__, options, wrt)
            made = self._transforms.setdefault(key, RelayFunction[..., Any](derived))
        return made

    def ruled(self, definition: Definition, rules: UserRules) -> RelayFunction[P, R]:
        """Return the function, whose definition this is, under a rule of the user's: the same
        object each time."""
        made = self._transforms.get(rules)
        if made is None:
            made = self._transforms.setdefault(rules, type(self)(definition.ruled(rules)))
        return made

    def __getitem__(self, types: object) -> Self:
        """Write type arguments, in compiled code: `f[2, 3](x)`. Raises TypeError in a script, where
        they are inferred from the arguments of a call."""
        raise TypeError("type arguments are written in compiled code; a script's calls infer them")

    def __reduce__(self) -> Any:
        """Pickle by name, as functions are; a transform as what it is of."""
        own = self.__relay__
        return (named, own.place) if isinstance(own, Definition) else (type(self), (own,))

    def __dir__(self) -> list[str]:
        return sorted(n for n in super().__dir__() if n not in _INTERNAL and n[:1] != "_")

    def __repr__(self) -> str:
        return f"<relay function {self.__name__}>"

    def __str__(self) -> str:
        return self.show("typed")

    def check(self, *, strict: bool = False) -> Report:
        """Check the function and everything it reaches; return the warnings. Raises CheckError.

        With `strict` an equation of sizes is refused that its types do not imply, and that each
        call would check.
        """
        return self.runner.check(strict=strict)

    @property
    def type(self) -> str:
        """The inferred type, its sizes and the equations between them included."""
        return self.runner.type

    @property
    def module(self) -> Module:
        """The typed IR of the function and everything it reaches."""
        return self.runner.module

    def show(self, stage: str = "typed") -> str:
        """Return the program at a stage: source, translated, typed, anf, grad, simplified, regions,
        c, triton or host; as `python`, the typed program in decorated functions that compile to it
        again. Raises CheckError for a program that the language has no Python for."""
        return self.runner.show(stage)

    def explain(self) -> str:
        """Return the kernels and regions of the function, the bytes and operations of each, and why
        values are stored between them."""
        return self.runner.explain()

    def diff(self, before: str, after: str) -> str:
        """Return the difference of two stages, as a unified diff."""
        return self.runner.diff(before, after)

    def interpret(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run in the reference evaluator instead of compiled code."""
        return self.runner.interpret(args, kwargs)

    def cache_info(self) -> CacheInfo:
        """Return the compiled entries with their numbers of uses."""
        return self.runner.cache_info()


@final
class RelayModel(RelayFunction[P, R]):
    """The definition of a model; `relay.create_model` makes instances with parameters."""

    def __repr__(self) -> str:
        return f"<relay model {self.__name__}>"

    if not TYPE_CHECKING:

        def __getattr__(self, name):
            if name.startswith("_"):
                raise AttributeError(name)
            what = f"`{self.__name__}` is the definition of a model, and has no {name}"
            way = f"make an instance: model = relay.create_model({self.__name__})"
            raise AttributeError(f"{what}; {way}", name=name, obj=None)
