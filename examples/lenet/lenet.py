"""LeNet as one program: the model, its loss, and an epoch of training, loop included.

This is the program of the paper that Relay began with, written down so that it runs. Nothing in it
is configured from outside; shapes are checked before anything runs.
"""

from pyrelay import Dim, Float, Int, Model, Tensor, relay, relay_model

B, N = Dim("B"), Dim("N")


@relay_model
def lenet(x: Tensor[Float, (N, 1, 28, 28)]) -> Tensor[Float, (N, 10)]:
    """Return the scores of the ten digits for images of 28x28."""
    conv1 = relay.conv2d(x, out_channels=20, kernel_size=5)
    pool1 = relay.max_pool2d(relay.tanh(conv1), kernel_size=2)
    conv2 = relay.conv2d(pool1, out_channels=50, kernel_size=5)
    pool2 = relay.max_pool2d(relay.tanh(conv2), kernel_size=2)
    fc1 = relay.linear(relay.flatten(pool2, start_dim=1), out_features=500)
    return relay.linear(relay.tanh(fc1), out_features=10)


@relay
def loss(x: Tensor[Float, (N, 1, 28, 28)], y: Tensor[Int, (N,)]) -> Float:
    """Return the mean cross entropy of a batch."""
    return relay.softmax_cross_entropy(lenet(x), y)


@relay
def train(
    model: Model[lenet], images: Tensor[Float, (B, N, 1, 28, 28)], labels: Tensor[Int, (B, N)]
) -> Float:
    """Train on batches, one step each, and give the mean loss."""
    total = 0.0
    for x, y in zip(images, labels):
        value, grads = relay.value_and_grad(model, loss, (x, y))
        relay.update_model_params(model, grads, lr=0.05)
        total += value
    return total / len(images)
