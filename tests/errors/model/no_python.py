"""A function of a text whose parameter no annotation of Python says is printed as Python."""

from pathlib import Path

from pyrelay import relay

TEXT = """#[pyrelay = "1"]
def @inner(%x: prelude.Option[prelude.Option[float32]]) -> float32 {
  match (%x) { _ => { 0.0 } }
}
"""


def main(folder: Path) -> None:
    """Print it."""
    file = folder / "inner.relay"
    file.write_text(TEXT)
    relay.parse(file)["inner"].show("python")
