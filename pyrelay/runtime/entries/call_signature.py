"""How an exported model is called, without the Python function that it comes from."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, cast, final

from ...dataclass import dataclass
from ...diagnostics.catalogue.call import WrongCall
from ...diagnostics.diagnostic import RunError
from ...diagnostics.source import Span
from ...translate.program.signature import Signature
from ...translate.source.scope import MISSING
from ...translate.types.number_places import Numbers


def plain(value: Any) -> Any:
    """Return a value as JSON has it, a tuple as a list; MISSING for what JSON has not."""
    if value is None or type(value) in (bool, int, float, str):
        return value
    if type(value) is tuple:
        fields = [plain(v) for v in value]
        return MISSING if any(f is MISSING for f in fields) else fields
    return MISSING


def read_plain(value: Any) -> Any:
    """Return the value that `plain` gave as JSON: lists are tuples."""
    return tuple(map(read_plain, cast("list[Any]", value))) if isinstance(value, list) else value


@final
@dataclass(frozen=True)
class Argument:
    """An argument: its name, its default (MISSING where there is none), how it is passed."""

    name: str
    default: Any = MISSING
    keyword_only: bool = False


@final
@dataclass(frozen=True)
class Interface:
    """The name of a model, its arguments, and the names of its parameters and of its state.

    `result` says where in the result numbers go back as Python's own. `hyper` are the static
    arguments that the model was created with, as text: the program knows their values.
    """

    name: str
    arguments: tuple[Argument, ...]
    result: Numbers
    hyper: Mapping[str, str]
    params: tuple[str, ...]
    state: tuple[str, ...]

    @staticmethod
    def of(
        name: str,
        signature: Signature,
        hyper: Mapping[str, Any],
        params: Sequence[str],
        state: Sequence[str],
    ) -> Interface:
        """Return the interface of a model definition."""
        arguments = [Argument(p.name, p.default, p.keyword_only) for p in signature.values]
        shown = {n: repr(v) for n, v in hyper.items()}
        return Interface(
            name, tuple(arguments), signature.numbers, shown, tuple(params), tuple(state)
        )

    @cached_property
    def signature(self) -> inspect.Signature:
        """The arguments as Python's own signature."""
        by_position = inspect.Parameter.POSITIONAL_OR_KEYWORD
        by_name = inspect.Parameter.KEYWORD_ONLY
        return inspect.Signature(
            [
                inspect.Parameter(
                    a.name,
                    by_name if a.keyword_only else by_position,
                    default=inspect.Parameter.empty if a.default is MISSING else a.default,
                )
                for a in self.arguments
            ]
        )

    @cached_property
    def _by_position(self) -> int:
        """How many values a call by position alone has, -1 where there is no such call."""
        is_plain = not any(a.keyword_only for a in self.arguments)
        return len(self.arguments) if is_plain else -1

    def ordered(self, args: tuple[Any, ...], kwargs: dict[str, Any], head: Span) -> Sequence[Any]:
        """Return the arguments of a call in order, defaults put in. Raises RunError."""
        if not kwargs and len(args) == self._by_position:
            return args
        try:
            bound = self.signature.bind(*args, **kwargs)
        except TypeError as error:
            raise RunError(WrongCall(self.name, head, str(error))) from None
        bound.apply_defaults()
        return tuple(bound.arguments.values())
