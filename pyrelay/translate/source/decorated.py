"""The definition under `@relay` and `@relay_model`: a plain function, with no other decorator."""

from __future__ import annotations

from types import FunctionType
from typing import Any

from ...diagnostics.catalogue.language import WronglyDecorated
from ...diagnostics.diagnostic import CheckError
from .source import load_source


def decorated(given: tuple[Any, ...], options: dict[str, Any], decorator: str) -> FunctionType:
    """Return the function that a decorator was called with. Raises CheckError for anything else."""
    if len(given) == 1 and not options:
        return expect_function(given[0], decorator)
    if options:
        what = f"got the option `{next(iter(options))}`"
        if "strict" in options:
            raise CheckError(
                WronglyDecorated(
                    decorator, what, "ask for it where it is checked: `f.check(strict=True)`"
                )
            )
    elif given:
        what = f"got {len(given)} arguments"
    else:
        what = "is called without a function"
    raise CheckError(
        WronglyDecorated(
            decorator, what, f"write `@{decorator}` alone above `def`, without parentheses"
        )
    )


def expect_function(value: Any, decorator: str) -> FunctionType:
    """Return a plain function that stands under a decorator. Raises CheckError for anything
    else."""
    name = getattr(value, "__name__", "f")
    match value:
        case FunctionType() if not hasattr(value, "__wrapped__"):
            return value
        case type():
            what, instead = f"got the class `{name}`", _instead_of_class(value)
        case staticmethod() | classmethod():
            what, instead = (
                "got a method",
                f"write a function at the top of the module, under `@{decorator}`",
            )
        case _ if hasattr(value, "__relay__") or hasattr(value, "__wrapped__"):
            load_source(value)  # says what it is instead
            raise AssertionError(f"no function: {value!r}")
        case _ if callable(value):
            what = f"got a {type(value).__name__}, whose source cannot be read"
            instead = f"write a function: `def` with annotated parameters, under `@{decorator}`"
        case _:
            what = f"got a {type(value).__name__}"
            instead = f"it decorates a function: write `@{decorator}` above `def`"
    raise CheckError(WronglyDecorated(decorator, what, instead))


def _instead_of_class(value: type) -> str:
    if any(base.__module__.startswith("torch.nn") for base in value.__mro__):
        return (
            "write the network as a function under `@relay_model`: operators that are called "
            "without weights, such as `relay.linear(x, out_features=10)`, get parameters there"
        )
    return "decorate the functions that use it; a frozen dataclass needs no decorator"
