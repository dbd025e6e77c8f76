"""Commits: changes to tensors and objects that an interrupt finds all made, or none.

Python raises KeyboardInterrupt between two of its own instructions, never inside a function that is
written in C. So what belongs together (the parameters of a model, the moments and the step count of
its optimiser) is changed by a list of such functions, which another one calls in turn.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from operator import call
from typing import Any, Final, TypeAlias

import torch

Change: TypeAlias = Callable[[], Any]
"""A call of a function written in C, with its arguments."""

_set_data: Final = torch.Tensor.data.__set__  # pyright: ignore[reportAttributeAccessIssue]


def commit(changes: Iterable[Change]) -> None:
    """Make all changes; no line of Python runs between them."""
    deque(map(call, list(changes)), maxlen=0)


def setting(owner: object, name: str, value: object) -> Change:
    """Return the change that sets an attribute of an object that has slots."""
    return partial(setattr, owner, name, value)


def storing(parameter: torch.Tensor, value: torch.Tensor) -> Change:
    """Return the change that makes a parameter have the storage of a tensor."""
    return partial(_set_data, parameter, value)
