"""C functions of the preamble as functions of tensors."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache

import torch

from pyrelay.ir.types import DTYPES
from pyrelay.lower_c.building import Library, build
from pyrelay.lower_c.math import Mode, Target, element_of, host_target, preamble

GUARD = 64


@cache
def built(text: str, target: Target, mode: Mode = "fast") -> Library:
    """Return the library of a text behind its preamble."""
    return build(preamble(text, target, mode) + text)


def elementwise(
    expression: str,
    operands: Sequence[torch.dtype],
    result: torch.dtype,
    lanes: int,
    target: Target | None = None,
    mode: Mode = "fast",
    loaded: int | None = None,
) -> Callable[..., torch.Tensor]:
    """Return a function of whole tensors; in `expression` the operands are `a`, `b` and `c`, and
    `L` stands for the number of lanes in names. Those behind the first `loaded` are not loaded:
    `pb` is the address of the second."""
    names = [element_of(DTYPES[str(d).removeprefix("torch.")]) for d in (*operands, result)]
    out, parameters = names.pop(), "abc"[: len(operands)]
    given = "".join(f"const {e.c} *p{n}, " for e, n in zip(names, parameters, strict=True))

    def body(suffix: str, more: str) -> str:
        loads = "\n".join(
            f"        __auto_type {n} = relay_load{suffix}_{e.name}x{lanes}(p{n} + i{more});"
            for e, n in list(zip(names, parameters, strict=True))[:loaded]
        )
        value = expression.replace("xL", f"x{lanes}")
        store = f"relay_store{suffix}_{out.name}x{lanes}(o + i, {value}{more});"
        return f"{loads}\n        {store}"

    text = (
        f"void run({given}{out.c} *o, long n) {{\n    long i = 0;\n"
        f"    for (; i + {lanes} <= n; i += {lanes}) {{\n{body('', '')}\n    }}\n"
        f"    if (i < n) {{\n{body('_part', ', n - i')}\n    }}\n}}\n"
    )
    kinds = [ctypes.c_void_p] * (len(names) + 1) + [ctypes.c_long]
    run = built(text, target or host_target(), mode).function("run", kinds)

    def apply(*tensors: torch.Tensor) -> torch.Tensor:
        count = tensors[0].numel()
        found = torch.full((count + GUARD,), 77).to(result)
        run(*(t.data_ptr() for t in (*tensors, found)), count)
        assert (found[count:] == torch.full((GUARD,), 77).to(result)).all()
        return found[:count]

    return apply
