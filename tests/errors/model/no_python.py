"""A function of a text whose parameter no annotation of Python says is printed as Python."""

from pathlib import Path

from pyrelay import relay

TEXT = """#[pyrelay = "1"]
type Never { }
def @absurd(%x: Never) -> float32 {
  match (%x) { }
}
"""


def main(folder: Path) -> None:
    """Print it."""
    file = folder / "absurd.relay"
    file.write_text(TEXT)
    relay.parse(file)["absurd"].show("python")
