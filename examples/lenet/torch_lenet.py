"""The same LeNet, data and training in plain PyTorch, to compare with."""

from __future__ import annotations

import math
import time
from collections import OrderedDict

import digits
import torch
from torch import nn


def lenet(seed: int) -> nn.Sequential:
    """Return LeNet with weights drawn as pyrelay draws them; names as in `lenet.py`."""
    net = nn.Sequential(
        OrderedDict(
            conv1=nn.Conv2d(1, 20, 5),
            tanh1=nn.Tanh(),
            pool1=nn.MaxPool2d(2),
            conv2=nn.Conv2d(20, 50, 5),
            tanh2=nn.Tanh(),
            pool2=nn.MaxPool2d(2),
            flatten=nn.Flatten(),
            fc1=nn.Linear(800, 500),
            tanh3=nn.Tanh(),
            linear=nn.Linear(500, 10),
        )
    )
    generator = torch.Generator().manual_seed(seed)
    for parameter in net.parameters():
        fan_in = parameter[0].numel()
        with torch.no_grad():
            if parameter.dim() > 1:
                parameter.normal_(0, 1 / math.sqrt(fan_in), generator=generator)
            else:
                parameter.zero_()
    return net


def train(net: nn.Module, data: digits.Digits, epochs: int) -> list[float]:
    """Train on all batches of all epochs, and give the loss of every step."""
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    losses: list[float] = []
    for epoch in range(epochs):
        for x, y in data.batches(16, seed=epoch):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(net(x), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def main() -> None:
    """Train, and score on the test digits."""
    data = digits.load()
    net = lenet(seed=0)
    started = time.perf_counter()
    train(net, data, epochs=20)
    print(f"trained in {time.perf_counter() - started:.1f} s")
    with torch.no_grad():
        right = (net(data.test_images).argmax(1) == data.test_labels).float().mean().item()
    print(f"test accuracy {right:.2%}")


if __name__ == "__main__":
    main()
