"""The file was edited after it was imported."""

import linecache
import runpy
import textwrap
from pathlib import Path

PROGRAM = """
from pyrelay import Float, relay

@relay
def scaled(x: Float) -> Float:
    return x * 2.0
"""


def main(folder: Path) -> None:
    """Import a program, edit it, and use it."""
    file = folder / "program.py"
    file.write_text(textwrap.dedent(PROGRAM))
    program = runpy.run_path(str(file))
    file.write_text(textwrap.dedent(PROGRAM.replace("2.0", "3.0")))
    linecache.checkcache()
    program["scaled"](1.0)
