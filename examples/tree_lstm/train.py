"""Train a TreeLSTM to tell true conditions from false ones, beside a model without structure."""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import plots
import torch
from classifier import bag_loss, bag_of_leaves, classifier, loss
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from trees import WORDS, Condition, conditions, words_of

from pyrelay import relay


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--train", type=int, default=1500, help="conditions to train on")
    parser.add_argument("--test", type=int, default=400, help="conditions to test with")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent, help="for the picture")
    return parser.parse_args()


def counts(condition: Condition) -> torch.Tensor:
    """Return how often each word occurs."""
    found = torch.bincount(torch.tensor(words_of(condition.tree)), minlength=len(WORDS))
    return found.float()


def accuracy(scores: Callable[[Condition], torch.Tensor], conditions: Sequence[Condition]) -> float:
    """Return the share of conditions that are classified correctly."""
    right = sum(int(scores(c).argmax()) == c.holds for c in conditions)
    return right / len(conditions)


def main() -> None:
    """Run the example."""
    args = arguments()
    data = conditions(args.train + args.test, args.seed)
    training, testing = data[: args.train], data[args.train :]
    print(f"for example: {training[0].text} is {bool(training[0].holds)}")

    model = relay.create_model(classifier, seed=args.seed)
    bag = relay.create_model(bag_of_leaves, seed=args.seed)
    adam, bag_adam = relay.optim.adam(lr=args.lr), relay.optim.adam(lr=args.lr)
    losses: list[float] = []
    order = random.Random(args.seed)
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    started = time.perf_counter()
    with Progress(TextColumn("{task.description}"), *columns) as progress:
        task = progress.add_task("training", total=args.epochs * len(training))
        for epoch in range(args.epochs):
            for condition in order.sample(training, len(training)):
                value, grads = relay.value_and_grad(model, loss, (condition.tree, condition.holds))
                relay.update_model_params(model, grads, optimizer=adam)
                _, grads = relay.value_and_grad(bag, bag_loss, (counts(condition), condition.holds))
                relay.update_model_params(bag, grads, optimizer=bag_adam)
                losses.append(float(value))
                recent = sum(losses[-200:]) / len(losses[-200:])
                about = f"epoch {epoch + 1}/{args.epochs}  loss {recent:.3f}"
                progress.update(task, advance=1, description=about)
    print(f"trained in {time.perf_counter() - started:.1f} s")

    model.eval()
    bag.eval()
    with_structure = accuracy(lambda c: model(c.tree), testing)
    without = accuracy(lambda c: bag(counts(c)), testing)
    print(f"accuracy of the TreeLSTM        {with_structure:.1%}")
    print(f"accuracy of a bag of its leaves {without:.1%}")

    plots.losses(losses, with_structure, without, args.out / "training.png")
    print(f"drew {args.out / 'training.png'}")


if __name__ == "__main__":
    main()
