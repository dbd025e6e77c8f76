"""The functions of torch's lowest layer, `aten`, which has what torch's own derivatives call.

`torch.ops.aten.tanh_backward(...)` looks three names up and goes through two Python calls, each
time; a generated program holds the function inside, which saves a fifth of a small call.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import torch


@cache
def kernel(name: str) -> Callable[..., Any]:
    """Return the function of a name as torch writes it: `library::name.overload`; without a library
    `aten`'s, without an overload the form with operands as arguments."""
    library, _, rest = name.rpartition("::")
    function, _, overload = rest.partition(".")
    packet = getattr(getattr(torch.ops, library or "aten"), function)
    return getattr(packet, overload or "default")._op  # noqa: SLF001  all that the public object does is to call it
