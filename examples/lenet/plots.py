"""The two pictures that the examples draw: what was predicted, and how the loss fell."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")  # draws into files, needs no display

import matplotlib.pyplot as plt
from torch import Tensor


def predictions(images: Tensor, labels: Tensor, guesses: Tensor, file: Path) -> None:
    """Draw 40 digits with what was predicted, the wrong ones first and in red."""
    order = (labels == guesses).int().argsort(stable=True)[:40]
    figure, axes = plt.subplots(5, 8, figsize=(8, 5.6), layout="constrained")
    for axis, row in zip(axes.flat, order.tolist(), strict=True):
        right = bool(labels[row] == guesses[row])
        axis.imshow(images[row, 0].cpu(), cmap="gray_r")
        axis.set_title(f"{int(guesses[row])}", color="black" if right else "red", fontsize=10)
        axis.axis("off")
    figure.savefig(file, dpi=120)
    plt.close(figure)


def loss_curve(losses: list[float], file: Path, window: int = 25) -> None:
    """Draw the loss of every step, and its running mean."""
    figure, axis = plt.subplots(figsize=(7, 4), layout="constrained")
    axis.plot(losses, color="lightsteelblue", linewidth=0.8, label="step")
    means = [sum(losses[i - window : i]) / window for i in range(window, len(losses) + 1)]
    axis.plot(range(window - 1, len(losses)), means, color="navy", label=f"mean of {window}")
    axis.set(xlabel="training step", ylabel="cross entropy", yscale="log")
    axis.legend()
    figure.savefig(file, dpi=120)
    plt.close(figure)
