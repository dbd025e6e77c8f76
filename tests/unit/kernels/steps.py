"""The programs whose kernels are counted: training steps of networks in the public language."""

from __future__ import annotations

from pyrelay import Dim, Float, Int, Model, Tensor, relay, relay_model
from pyrelay.models.mlp import mlp
from pyrelay.models.recurrent import lstm_cell
from pyrelay.models.transformer import transformer_block
from pyrelay.models.tree_lstm import Tree, binary_tree_lstm

B, T, N = Dim("B"), Dim("T"), Dim("N")


@relay_model
def lenet(x: Tensor[Float, (N, 1, 28, 28)]) -> Tensor[Float, (N, 10)]:
    conv1 = relay.conv2d(x, out_channels=20, kernel_size=5)
    pool1 = relay.max_pool2d(relay.tanh(conv1), kernel_size=2)
    conv2 = relay.conv2d(pool1, out_channels=50, kernel_size=5)
    pool2 = relay.max_pool2d(relay.tanh(conv2), kernel_size=2)
    fc1 = relay.linear(relay.flatten(pool2, start_dim=1), out_features=500)
    return relay.linear(relay.tanh(fc1), out_features=10)


@relay
def lenet_loss(x: Tensor[Float, (N, 1, 28, 28)], y: Tensor[Int, (N,)]) -> Float:
    return relay.softmax_cross_entropy(lenet(x), y)


@relay
def lenet_step(
    model: Model[lenet], x: Tensor[Float, (N, 1, 28, 28)], y: Tensor[Int, (N,)]
) -> Float:
    value, grads = relay.value_and_grad(model, lenet_loss, (x, y))
    relay.update_model_params(model, grads, lr=0.05)
    return value


@relay
def mlp_loss(x: Tensor[Float, (N, 784)], y: Tensor[Int, (N,)]) -> Float:
    return relay.softmax_cross_entropy(mlp(x), y)


@relay
def mlp_step(model: Model[mlp], x: Tensor[Float, (N, 784)], y: Tensor[Int, (N,)]) -> Float:
    value, grads = relay.value_and_grad(model, mlp_loss, (x, y))
    relay.update_model_params(model, grads, lr=0.05)
    return value


@relay
def lstm_step(
    hidden: Tensor[Float, (N, 128)], memory: Tensor[Float, (N, 128)], x: Tensor[Float, (N, 64)]
) -> tuple[Tensor[Float, (N, 128)], Tensor[Float, (N, 128)]]:
    state, _ = lstm_cell((hidden, memory), x)
    return state


@relay
def block_loss(x: Tensor[Float, (B, T, 512)]) -> Float:
    y = transformer_block(x)
    return (y * y).mean()


@relay
def block_grad(model: Model[transformer_block], x: Tensor[Float, (B, T, 512)]) -> Float:
    value, grads = relay.value_and_grad(model, block_loss, (x,))
    relay.update_model_params(model, grads, lr=0.05)
    return value


@relay
def tree_state(tree: Tree) -> tuple[Tensor[Float, (128,)], Tensor[Float, (128,)]]:
    return binary_tree_lstm(tree, words=1000, size=128)
