"""Draws the results of `benchmarks.performance` for the documentation.

Each case is a row, with a mark for each candidate: how many times faster than torch eager it is.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any, Final

HERE = Path(__file__).resolve().parent
MARKS: Final = {
    "pyrelay": ("o", "#1b6ca8"),
    "torch.compile": ("s", "#d1842c"),
    "jax": ("^", "#6b8f3c"),
    "nn.LSTM": ("D", "#8a5aa8"),
    "by hand": ("|", "#444444"),
}
"""The shape and the colour of each candidate's mark."""


def ratios(results: dict[str, Any]) -> dict[str, dict[str, float]]:
    """Return, for each candidate, the cases that it has with its ratio."""
    found: dict[str, dict[str, float]] = {name: {} for name in MARKS}
    for case, candidates in results["cases"].items():
        for name, measured in candidates.items():
            if name in found:
                found[name][case] = measured["ratio"]
    found["by hand"].update(results["by hand"])
    return found


def plot(results: dict[str, Any], path: Path) -> None:
    """Draw the ratios on a logarithmic axis, the first case at the top."""
    import matplotlib.pyplot as plt

    cases = list(results["cases"])
    rows = {case: row for row, case in enumerate(cases)}
    figure, panel = plt.subplots(figsize=(9, 0.22 * len(cases) + 1.2))
    for name, found in ratios(results).items():
        mark, colour = MARKS[name]
        places = [rows[case] for case in found]
        panel.plot([*found.values()], places, mark, color=colour, markersize=5, label=name)
    panel.axvline(1.0, color="#999999", linewidth=1)
    panel.set_xscale("log")
    panel.set_yticks(range(len(cases)), cases, fontsize=7)
    panel.set_ylim(len(cases) - 0.5, -0.5)
    panel.set_xlabel(f"times faster than torch eager, {results['threads']} threads")
    panel.grid(axis="y", linewidth=0.3)
    panel.legend(loc="lower left", fontsize=8)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    """Read the results and draw them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("--results", type=Path, default=HERE / "results" / "performance.json")
    arguments = parser.parse_args()
    plot(json.loads(arguments.results.read_text(encoding="utf-8")), arguments.path)


if __name__ == "__main__":
    main()
