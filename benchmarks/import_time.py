"""How long `import pyrelay` takes: the processor's seconds in fresh processes, the least of ten."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROUNDS = 10
CODE = "import time; t = time.process_time(); import pyrelay; print(time.process_time() - t)"


def seconds() -> float:
    """Return the time of one import in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", CODE],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).resolve().parents[1],
    )
    return float(done.stdout)


if __name__ == "__main__":
    print(f"import pyrelay: {min(seconds() for _ in range(ROUNDS)) * 1e3:.0f} ms")
