"""Compile the kernels that the tests ran, for each target: `python -m tests.kernels.ahead_of_time
FOLDER [N]`, where FOLDER is what `KERNELS` named for the tests. No device is needed.

With N only one of N kernels is compiled, each time the same ones. Each is compiled in its first
configuration, the one that the cost model expects to be best, and must fit the target; for one
target also with all sizes 1, which Triton compiles in as a constant. One that
does not, or cannot be compiled, is reported at once, with the path of its text; the status is then
1. Prints how many there were.
"""

from __future__ import annotations

import pickle
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final

from pyrelay.kernels.calling import Size, Stride
from pyrelay.lower_triton.kernel import Kernel
from pyrelay.lower_triton.launching.build import ahead_of_time, source_file, triton_module
from pyrelay.lower_triton.launching.versions import multiplies_doubles, processors_of

TARGETS: Final = (("cuda", 80, 32), ("cuda", 90, 32), ("hip", "gfx942", 64))

SHARED: Final = {80: 163 << 10, 90: 227 << 10, "gfx942": 64 << 10}
"""The bytes that the programs on one processor of a target share, which one of them may have."""


def collected(folder: Path) -> list[Kernel]:
    """Return the distinct kernels in a folder, ordered by their text."""
    found: dict[str, Kernel] = {}
    for path in sorted(folder.glob("*.kernels")):
        for kernel in pickle.loads(path.read_bytes()):
            found.setdefault(kernel.text, kernel)
    return [found[text] for text in sorted(found)]


def compile_for_all(kernel: Kernel) -> str | None:
    """Compile a kernel for every target; return what went wrong, and where."""
    from triton.backends.compiler import GPUTarget

    config = kernel.configs[0]
    for target in TARGETS:
        if _is_for_others(kernel, GPUTarget(*target)):
            continue
        try:
            shared = ahead_of_time(kernel, config, target).metadata.shared
            if target == TARGETS[0] and _has_sizes(kernel):
                ahead_of_time(kernel, config, target, is_one=True)
        except Exception as error:
            lines = str(error).splitlines() or [""]
            what = f"{type(error).__name__}: {lines[-1]}"
        else:
            if shared <= SHARED[target[1]]:
                continue
            what = f"{shared} bytes of shared memory are more than there are"
        path = source_file(kernel.text, kernel.name)
        return f"{path}: {kernel.name} for {target[1]}: {what}\n{kernel.text}\n"
    return None


def _is_for_others(kernel: Kernel, target: Any) -> bool:
    """Return whether devices of a target are given other kernels in the place of one."""
    triton = triton_module()
    multiplies = "tl.dot(" in kernel.text and "out_dtype=tl.float64" in kernel.text
    if multiplies and not multiplies_doubles(triton, target):
        return True
    return kernel.configs[0].num_ctas > processors_of(triton, target)


def _has_sizes(kernel: Kernel) -> bool:
    return any(isinstance(a, Size | Stride) for a in kernel.arguments)


def main(arguments: Sequence[str]) -> int:
    """Compile the kernels in a folder. Gives the exit status."""
    ran = collected(Path(arguments[0]))
    kernels = ran[:: int(arguments[1]) if len(arguments) > 1 else 1]
    started, failed = time.perf_counter(), 0
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        for done in as_completed([pool.submit(compile_for_all, k) for k in kernels]):
            problem = done.result()
            if problem is not None:
                failed += 1
                sys.stderr.write(problem)
                sys.stderr.flush()
    targets = ", ".join(f"sm_{t[1]}" if t[0] == "cuda" else str(t[1]) for t in TARGETS)
    spent = time.perf_counter() - started
    sys.stdout.write(
        f"{len(ran)} distinct kernels interpreted, {len(kernels) - failed} compiled for "
        f"{targets} in {spent:.0f} s\n"
    )
    return 1 if failed or not kernels else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
