"""Programs in a process of their own, as users run them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path


def as_a_user(command: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run Python in a folder by the default lowering, which is not that of the tests."""
    environment = {k: v for k, v in os.environ.items() if k != "PYRELAY_LOWERING"}
    return subprocess.run(
        [sys.executable, *command],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env=environment,
    )
