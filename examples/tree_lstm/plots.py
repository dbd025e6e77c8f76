"""The plot of the example: the loss over time, and the accuracy at the end."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")  # draws into files, needs no display

import matplotlib.pyplot as plt


def losses(
    losses: list[float], with_structure: float, without: float, file: Path, window: int = 100
) -> None:
    """Draw the running mean of the loss, and the accuracies beside it."""
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(9, 4), width_ratios=(3, 1), layout="constrained"
    )
    window = min(window, len(losses))
    means = [sum(losses[i - window : i]) / window for i in range(window, len(losses) + 1)]
    left.plot(range(window, len(losses) + 1), means, color="navy")
    left.set(xlabel="trees seen", ylabel=f"cross entropy, mean of {window}")
    bars = right.bar(("TreeLSTM", "bag of\nleaves"), (with_structure, without), color="steelblue")
    right.bar_label(bars, labels=[f"{with_structure:.1%}", f"{without:.1%}"])
    right.axhline(0.5, color="grey", linewidth=0.8, linestyle="--")
    right.set(ylim=(0, 1.08), ylabel="test accuracy")
    figure.savefig(file, dpi=120)
    plt.close(figure)
