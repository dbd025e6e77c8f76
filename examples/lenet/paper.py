"""LeNet as the paper shows it: creating, training and exporting the model inside `@relay`.

One call compiles and runs the whole program: both loops, the gradient and the updates.
"""

from __future__ import annotations

import digits
from lenet import B, N, lenet, loss

from pyrelay import Float, Int, Model, Tensor, relay


@relay
def train_lenet(
    images: Tensor[Float, (B, N, 1, 28, 28)], labels: Tensor[Int, (B, N)], epochs: int
) -> Model[lenet]:
    """Return LeNet trained on batches of digits, as a plain callable."""
    model = relay.create_model(lenet)
    for _ in range(epochs):
        for x, y in zip(images, labels):
            grads = relay.grad(model, loss, (x, y))
            relay.update_model_params(model, grads, lr=0.05)
    return relay.export_model(model)


def main() -> None:
    """Train, and read the test digits."""
    data = digits.load()
    predict = train_lenet(*data.stacked(16, seed=0), 20)
    guesses = relay.argmax(predict(data.test_images), dim=1)
    right = (guesses == data.test_labels).float().mean().item()
    print(f"test accuracy {right:.2%}; the first digit is read as {int(guesses[0])}")


if __name__ == "__main__":
    main()
