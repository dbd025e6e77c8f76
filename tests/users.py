"""Programs in a process of their own, as users run them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path


def as_a_user(command: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run Python in a folder with the default options, which are not those of the tests."""
    set_by_tests = ("PYRELAY_LOWERING", "PYRELAY_VERIFY")
    environment = {k: v for k, v in os.environ.items() if k not in set_by_tests}
    return subprocess.run(
        [sys.executable, *command],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env=environment,
    )
