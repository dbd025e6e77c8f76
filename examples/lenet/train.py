"""Train LeNet on handwritten digits, score it, export it, and draw what it learned."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import digits
import plots
import torch
from lenet import lenet, loss
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from pyrelay import relay


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mnist", type=Path, help="directory with MNIST's IDX files")
    parser.add_argument("--device", type=device, default="cpu", help="cpu, cuda, cuda:1, mps")
    parser.add_argument("--epochs", type=int, help="default 20; 1 for MNIST")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent, help="for the pictures")
    return parser.parse_args()


def device(name: str) -> str:
    """Return the name of a device that is there. Raises ArgumentTypeError for one that is not."""
    try:
        torch.empty(0, device=name)
    except (AssertionError, RuntimeError) as error:
        reason = str(error).splitlines()[0]
        raise argparse.ArgumentTypeError(f"torch cannot use {name!r} here: {reason}") from None
    return name


def accuracy(predict: Callable[..., torch.Tensor], data: digits.Digits) -> float:
    """Return the share of test digits that are read right."""
    guesses = torch.cat([predict(x).argmax(1) for x in data.test_images.split(500)])
    return (guesses == data.test_labels).float().mean().item()


def main() -> None:
    """Run the example."""
    args = arguments()
    data = digits.load(args.mnist).to(args.device)
    epochs = args.epochs or (1 if args.mnist else 20)
    print(
        f"{data.name}: {len(data.train_labels)} to train on, {len(data.test_labels)} to test with"
    )

    model = relay.create_model(lenet, seed=args.seed).to(args.device)
    losses: list[float] = []
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    started = time.perf_counter()
    with Progress(TextColumn("{task.description}"), *columns) as progress:
        steps = epochs * -(-len(data.train_labels) // args.batch)
        task = progress.add_task("training", total=steps)
        for epoch in range(epochs):
            for x, y in data.batches(args.batch, seed=epoch):
                value, grads = relay.value_and_grad(model, loss, (x, y))
                relay.update_model_params(model, grads, lr=args.lr)
                losses.append(float(value))
                about = f"epoch {epoch + 1}/{epochs}  loss {losses[-1]:.4f}"
                progress.update(task, advance=1, description=about)
    print(f"trained in {time.perf_counter() - started:.1f} s")

    model.eval()
    relay.export_model(model).save(args.out / "lenet.safetensors")
    # The file needs no source, and loading it runs no code.
    predict = relay.load_model(args.out / "lenet.safetensors", device=args.device)
    print(f"test accuracy          {accuracy(model, data):.2%}")
    print(f"of the saved model     {accuracy(predict, data):.2%}")

    guesses = predict(data.test_images[:500]).argmax(1)
    plots.predictions(data.test_images, data.test_labels[:500], guesses, args.out / "digits.png")
    plots.loss_curve(losses, args.out / "loss.png")
    print(f"drew {args.out / 'digits.png'} and {args.out / 'loss.png'}")


if __name__ == "__main__":
    main()
