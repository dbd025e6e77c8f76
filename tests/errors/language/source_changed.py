"""The file was edited after it was imported."""

import textwrap
from pathlib import Path

PROGRAM = """
from pyrelay import Float, relay

@relay
def scaled(x: Float) -> Float:
    return x * 2.0
"""


def main(folder: Path) -> None:
    """Edit a program between reading and running it."""
    file = folder / "program.py"
    program = compile(textwrap.dedent(PROGRAM), str(file), "exec")
    file.write_text(textwrap.dedent(PROGRAM.replace("2.0", "3.0")))
    exec(program, {})
