"""Looks at the code that Triton makes of kernels, in a process that does not interpret them.

The code is PTX, in which an access of a thread to global memory is one instruction: `ld.global`,
then how many numbers at once (`v4`) of how many bits (`b32`).
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Generator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from typing import Any, Final

from pyrelay.lower_triton.kernel import Kernel
from pyrelay.lower_triton.launching.build import ahead_of_time, triton_module
from pyrelay.lower_triton.launching.versions import processors_of

HOPPER: Final = ("cuda", 90, 32)


@contextmanager
def compiling() -> Generator[ProcessPoolExecutor]:
    """Return a process in which Triton compiles, though it interprets here."""
    with ProcessPoolExecutor(1, get_context("spawn"), _compile) as pool:
        yield pool


def _compile() -> None:
    for name in ("TRITON_INTERPRET", "PYRELAY_LOWERING"):
        os.environ.pop(name, None)


def _compiled(kernel: Kernel) -> Any:
    return ahead_of_time(kernel, kernel.configs[0], HOPPER, is_aligned=True)


def most_processors() -> int:
    """Return how many processors of the target may share a program."""
    from triton.backends.compiler import GPUTarget

    return processors_of(triton_module(), GPUTarget(*HOPPER))


def resources(kernel: Kernel) -> dict[str, int]:
    """Return what a thread of a kernel's first configuration takes: `REG`isters, and bytes of
    `LOCAL` memory and of the `STACK`, where values go for which there are no registers."""
    from triton import knobs

    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(_compiled(kernel).asm["cubin"])
        file.flush()
        command = [knobs.nvidia.cuobjdump.path, "--dump-resource-usage", file.name]
        found = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return {name: int(count) for name, count in re.findall(r"\b(REG|LOCAL|STACK):(\d+)", found)}


def ptx(kernel: Kernel) -> str:
    """Return the code of a kernel's first configuration, for aligned tensors."""
    return _compiled(kernel).asm["ptx"]


def accesses(kernel: Kernel) -> list[tuple[str, int]]:
    """Return the accesses to global memory in the code of a kernel's first configuration, for
    aligned tensors: `ld` or `st`, and bits."""
    found = re.findall(
        r"\b(ld|st)\.global(?:\.(?!v\d)[a-z]\w*)*?(?:\.v(\d))?\.[bfsu](\d+)", ptx(kernel)
    )
    return [(kind, int(count or 1) * int(bits)) for kind, count, bits in found]
