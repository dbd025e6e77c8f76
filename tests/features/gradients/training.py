"""Training in compiled loops, of any model of numbers that name rows."""

from __future__ import annotations

from typing import Any

from pyrelay import Dim, Float, Int, Model, Optimizer, Tensor, relay

K, N = Dim("K"), Dim("N")


def trained_by(model: Any, loss: Any) -> Any:
    """Return the function that trains a model by batches with an optimiser."""

    @relay
    def trained(
        m: Model[model],  # pyright: ignore[reportInvalidTypeForm]
        optimizer: Optimizer,
        batches: Tensor[Int, (K, N)],
    ) -> Float:
        total = 0.0
        for ids in batches:
            value, grads = relay.value_and_grad(m, loss, (ids,))
            relay.update_model_params(m, grads, optimizer=optimizer)
            total += value
        return total

    return trained


def descended_by(model: Any, loss: Any) -> Any:
    """Return the function that trains a model by batches with gradient descent."""

    @relay
    def descended(
        m: Model[model],  # pyright: ignore[reportInvalidTypeForm]
        batches: Tensor[Int, (K, N)],
    ) -> Float:
        total = 0.0
        for ids in batches:
            value, grads = relay.value_and_grad(m, loss, (ids,))
            relay.update_model_params(m, grads, lr=0.1)
            total += value
        return total

    return descended
