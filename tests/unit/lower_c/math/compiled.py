"""C functions of the preamble as functions of tensors."""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import torch

from pyrelay.ir.types import DTYPES
from pyrelay.lower_c.math import Mode, Target, element_of, host_target, preamble

GUARD = 64


@cache
def built(text: str, target: Target, mode: Mode = "fast") -> ctypes.CDLL:
    """Return the shared object of a text behind its preamble."""
    folder = Path(tempfile.mkdtemp())
    source, found = folder / "text.c", folder / "text.so"
    source.write_text(preamble(text, target, mode) + text)
    flags = ("-O2", "-fPIC", "-shared", "-ffp-contract=off", "-fwrapv", "-Wno-psabi", "-Werror")
    command = ["cc", "-Wall", *flags, *target.flags, "-o", str(found), str(source), "-lm"]
    subprocess.run(command, check=True, capture_output=True)
    return ctypes.CDLL(str(found))


def elementwise(
    expression: str,
    operands: Sequence[torch.dtype],
    result: torch.dtype,
    lanes: int,
    target: Target | None = None,
    mode: Mode = "fast",
) -> Callable[..., torch.Tensor]:
    """Return a function of whole tensors; in `expression` the operands are `a`, `b` and `c`, and
    `L` stands for the number of lanes in names."""
    names = [element_of(DTYPES[str(d).removeprefix("torch.")]) for d in (*operands, result)]
    out, parameters = names.pop(), "abc"[: len(operands)]
    given = "".join(f"const {e.c} *p{n}, " for e, n in zip(names, parameters, strict=True))

    def body(suffix: str, more: str) -> str:
        loads = "\n".join(
            f"        __auto_type {n} = relay_load{suffix}_{e.name}x{lanes}(p{n} + i{more});"
            for e, n in zip(names, parameters, strict=True)
        )
        value = expression.replace("xL", f"x{lanes}")
        store = f"relay_store{suffix}_{out.name}x{lanes}(o + i, {value}{more});"
        return f"{loads}\n        {store}"

    text = (
        f"void run({given}{out.c} *o, long n) {{\n    long i = 0;\n"
        f"    for (; i + {lanes} <= n; i += {lanes}) {{\n{body('', '')}\n    }}\n"
        f"    if (i < n) {{\n{body('_part', ', n - i')}\n    }}\n}}\n"
    )
    run = built(text, target or host_target(), mode).run

    def apply(*tensors: torch.Tensor) -> torch.Tensor:
        count = tensors[0].numel()
        found = torch.full((count + GUARD,), 77).to(result)
        pointers = [ctypes.c_void_p(t.data_ptr()) for t in (*tensors, found)]
        run(*pointers, ctypes.c_long(count))
        assert (found[count:] == torch.full((GUARD,), 77).to(result)).all()
        return found[:count]

    return apply
