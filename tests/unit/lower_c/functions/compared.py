"""Functions run by C and by host code, which must agree in values and in errors."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import torch

from pyrelay import RunError, options
from pyrelay.lower_c.functions import code


@contextmanager
def counted() -> Iterator[list[str]]:
    """Return the names of the functions that C runs to their end meanwhile: the function that calls
    one leaves by the return behind that."""
    ran: list[str] = []

    def watch(frame: FrameType, event: str, _: Any) -> None:
        made = frame.f_code
        if event == "return" and made.co_filename == code.FILE and "result" in frame.f_locals:
            ran.append(made.co_name)

    sys.setprofile(watch)
    try:
        yield ran
    finally:
        sys.setprofile(None)


def outcome(function: Callable[..., Any], *args: Any) -> Any:
    """Return a result with the types in it, or the text of the error."""
    try:
        return shown(function(*args))
    except RunError as error:
        return str(error)


def shown(value: Any) -> Any:
    """Return a value as one that is equal to those of the same types and bits alone."""
    if isinstance(value, torch.Tensor):
        return str(value.dtype), tuple(value.shape), [repr(v) for v in value.flatten().tolist()]
    if isinstance(value, tuple):
        return tuple(map(shown, value))
    return type(value).__name__, repr(value)


def integer(value: int) -> Any:
    """Return what `agree` gives for an integer."""
    return shown(torch.tensor(value))


def agree(function: Callable[..., Any], *args: Any) -> Any:
    """Return what a function gives by host code, having checked that C gives the same."""
    with options(lowering="torch"):
        expected = outcome(function, *args)
    with options(lowering="c"), counted() as ran:
        found = outcome(function, *args)
    assert found == expected
    assert isinstance(expected, str) or ran, "C did not run"
    return expected
