"""Values of programs that compiled code and the reference evaluator agree on."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

import torch

from pyrelay.prelude import List


def plain(value: Any) -> Any:
    """Return a value as Python's own numbers, lists and tuples, inside of instances as well."""
    match value:
        case torch.Tensor():
            return value.tolist()
        case tuple():
            return tuple(map(plain, value))
        case List() | list():
            return [plain(v) for v in value]
        case _ if is_dataclass(value) and not isinstance(value, type):
            return type(value)(*(plain(getattr(value, f.name)) for f in fields(value)))
        case _:
            return value


def agree(function: Any, *args: Any) -> Any:
    """Return the value of a function, which both executors must give."""
    found = plain(function(*args))
    assert plain(function.interpret(*args)) == found
    return found
