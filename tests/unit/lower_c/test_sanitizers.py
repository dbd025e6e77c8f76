"""Generated C under the address and undefined-behaviour sanitizers of the compiler, for each
instruction set that this processor executes.

Python itself is not built with them, so each program runs in a process of its own that has the
runtime of the address sanitizer loaded before everything else.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pyrelay.cpu import cpu
from pyrelay.lower_c.building import CannotBuild, find_compiler
from pyrelay.lower_c.math import host_target

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

FLAGS = "-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer -g"

RUN = """
import sys

from pyrelay.cpu import Cpu
from pyrelay.lower_c.building import texts
from pyrelay.lower_c.math import targets

targets.cpu = lambda: Cpu({machine!r}, "", frozenset({features!r}))
texts.FLAGS = (*(f for f in texts.FLAGS if f != "-O3"), "-O1", *{flags!r}.split())

import pytest

sys.exit(pytest.main(["-q", "-x", "-p", "no:cacheprovider", *sys.argv[1:]]))
"""

NARROWER = {"avx2": {"avx2", "fma"}, "portable": set[str]()}
"""The features of processors whose programs this one may execute."""

FEATURES = {n: f for n, f in NARROWER.items() if f < cpu().features} | {
    host_target().name: cpu().features
}

ROOT = Path(__file__).parents[3]
TESTS = (
    "test_pointwise.py",
    "test_rows.py",
    "test_contraction.py",
    "test_regions.py",
    "test_operators.py",
    "functions/test_floats.py",
    "functions/test_loops.py",
    "functions/test_tensors.py",
    "functions/test_memory.py",
)


def runtime() -> str | None:
    """Return the paths of the address sanitizer's library, and of that of C++, whose exceptions it
    intercepts; None where the compiler has none."""
    try:
        command = find_compiler().command
    except CannotBuild:
        return None
    found: list[str] = []
    for name in ("libasan.so", "libstdc++.so"):
        asked = [*command, f"-print-file-name={name}"]
        done = subprocess.run(asked, capture_output=True, text=True, check=False)
        found.append(done.stdout.strip())
    return " ".join(found) if all(Path(path).is_absolute() for path in found) else None


@pytest.mark.parametrize("target", FEATURES)
@pytest.mark.parametrize("name", TESTS)
def test_the_c_of_tests_is_clean(name: str, target: str) -> None:
    libraries = runtime()
    if libraries is None:
        pytest.skip("the compiler has no address sanitizer")
    environment = {
        **os.environ,
        "LD_PRELOAD": libraries,
        "ASAN_OPTIONS": "detect_leaks=0:halt_on_error=1:detect_odr_violation=0",
        "PYRELAY_CACHE": "off",
        "PYTHONPATH": str(ROOT),
    }
    path = ROOT / "tests" / "unit" / "lower_c" / name
    run = RUN.format(flags=FLAGS, machine=cpu().machine, features=FEATURES[target])
    command = [sys.executable, "-c", run, "-m", "not slow", str(path)]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
