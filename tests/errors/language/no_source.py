"""A function made by `exec` has no source to read."""

import textwrap

from pyrelay import Float, relay


PROGRAM = """
@relay
def double(x: Float) -> Float:
    return x * 2.0
"""


def main() -> None:
    """Make a function of text."""
    names = {"relay": relay, "Float": Float}
    exec(textwrap.dedent(PROGRAM), names)
    names["double"](1.0)
