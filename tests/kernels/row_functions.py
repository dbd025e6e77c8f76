"""Functions of rows, and their gradients, for tensors of a dtype."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from pyrelay import Dim, Int, Tensor, relay

N, M = Dim("N"), Dim("M")


def functions_of(element: Any) -> Mapping[str, Any]:
    """Return the functions, by name; `element` is an annotation such as Float."""
    found = (*_exponentials(element), *_norms(element), *_losses(element))
    return {f.__name__: f for f in found}


def _exponentials(element: Any) -> Sequence[Any]:
    Rows = Tensor[element, (N, M)]  # noqa: N806  a type
    Each = Tensor[element, (N,)]  # noqa: N806

    @relay
    def softmax(x: Rows):
        return relay.softmax(x, dim=-1)

    @relay
    def softmax_backward(x: Rows, w: Rows):
        return relay.grad(lambda x: (relay.softmax(x, dim=-1) * w).sum())(x)

    @relay
    def log_softmax(x: Rows):
        return relay.log_softmax(x, dim=-1)

    @relay
    def log_softmax_backward(x: Rows, w: Rows):
        return relay.grad(lambda x: (relay.log_softmax(x, dim=-1) * w).sum())(x)

    @relay
    def logsumexp(x: Rows):
        return relay.logsumexp(x, dim=-1)

    @relay
    def logsumexp_backward(x: Rows, w: Each):
        return relay.grad(lambda x: (relay.logsumexp(x, dim=-1) * w).sum())(x)

    return (
        *(softmax, softmax_backward, log_softmax, log_softmax_backward),
        *(logsumexp, logsumexp_backward),
    )


def _norms(element: Any) -> Sequence[Any]:
    Rows = Tensor[element, (N, M)]  # noqa: N806  a type
    Scale = Tensor[element, (M,)]  # noqa: N806
    One = Tensor[element, ()]  # noqa: N806

    @relay
    def layer_norm(x: Rows, scale: Scale, bias: Scale):
        return relay.layer_norm(x, (x.shape[1],), scale, bias)

    @relay
    def weighted_layer_norm(x: Rows, w: Rows, scale: Scale, bias: Scale) -> One:
        return (relay.layer_norm(x, (x.shape[1],), scale, bias) * w).sum()

    @relay
    def layer_norm_backward(x: Rows, w: Rows, scale: Scale, bias: Scale):
        return relay.grad(weighted_layer_norm, wrt=("x", "scale", "bias"))(x, w, scale, bias)

    @relay
    def rms_norm(x: Rows, scale: Scale):
        return relay.rms_norm(x, (x.shape[1],), scale)

    @relay
    def weighted_rms_norm(x: Rows, w: Rows, scale: Scale) -> One:
        return (relay.rms_norm(x, (x.shape[1],), scale) * w).sum()

    @relay
    def rms_norm_backward(x: Rows, w: Rows, scale: Scale):
        return relay.grad(weighted_rms_norm, wrt=("x", "scale"))(x, w, scale)

    return layer_norm, layer_norm_backward, rms_norm, rms_norm_backward


def _losses(element: Any) -> Sequence[Any]:
    Rows = Tensor[element, (N, M)]  # noqa: N806  a type

    @relay
    def cross_entropy(x: Rows, y: Tensor[Int, (N,)]):
        return relay.softmax_cross_entropy(x, y)

    @relay
    def cross_entropy_backward(x: Rows, y: Tensor[Int, (N,)]):
        return relay.grad(lambda x: relay.softmax_cross_entropy(x, y))(x)

    return cross_entropy, cross_entropy_backward


NAMES: Final = (
    *("softmax", "log_softmax", "logsumexp", "layer_norm", "rms_norm", "cross_entropy"),
    *("softmax_backward", "log_softmax_backward", "logsumexp_backward", "layer_norm_backward"),
    *("rms_norm_backward", "cross_entropy_backward"),
)
