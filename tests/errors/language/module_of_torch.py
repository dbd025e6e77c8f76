"""A class of torch's is decorated as a model."""

import torch

from pyrelay import relay_model


def main() -> None:
    """Decorate."""

    @relay_model
    class Net(torch.nn.Module):
        def forward(self, x):
            return x
