"""Functions of `Scalars` for which torch has a kernel: written once for values and for text."""

from __future__ import annotations

from typing import Any, Protocol

from ..ir.declaration.scalars import Scalars


class TorchFunctions(Scalars, Protocol):
    """Arithmetic over torch: what is called there instead of the bodies that `Scalars` has."""

    def tensor(self, a: Any, /) -> Any:
        """Return a value as one that is surely a tensor."""
        ...

    def functional(self, name: str, /, *args: Any, **named: Any) -> Any:
        """Return a call of `torch.nn.functional` on tensors and literals."""
        ...

    def aten(self, name: str, /, *args: Any, **named: Any) -> Any:
        """Return a call of a function of `torch.ops.aten` on tensors and literals."""
        ...

    def asinh(self, a: Any, /) -> Any:
        return self.function("asinh", a)

    def acosh(self, a: Any, /) -> Any:
        return self.function("acosh", a)

    def atanh(self, a: Any, /) -> Any:
        return self.function("atanh", a)

    def leaky_relu(self, a: Any, slope: float, /) -> Any:
        return self.functional("leaky_relu", self.tensor(a), slope)

    def elu(self, a: Any, alpha: float, /) -> Any:
        return self.functional("elu", self.tensor(a), alpha)

    def gelu(self, a: Any, approximate: str, /) -> Any:
        return self.functional("gelu", self.tensor(a), approximate=approximate)

    def silu(self, a: Any, /) -> Any:
        return self.functional("silu", self.tensor(a))

    def softplus(self, a: Any, beta: float, threshold: float, /) -> Any:
        return self.functional("softplus", self.tensor(a), beta, threshold)

    def tanh_grad(self, g: Any, y: Any, /) -> Any:
        return self.aten("tanh_backward", self.tensor(g), self.tensor(y))

    def sigmoid_grad(self, g: Any, y: Any, /) -> Any:
        return self.aten("sigmoid_backward", self.tensor(g), self.tensor(y))

    def relu_grad(self, g: Any, y: Any, /) -> Any:
        return self.aten("threshold_backward", self.tensor(g), self.tensor(y), 0)

    def leaky_relu_grad(self, g: Any, a: Any, slope: float, /) -> Any:
        return self.aten("leaky_relu_backward", self.tensor(g), self.tensor(a), slope, False)

    def elu_grad(self, g: Any, a: Any, alpha: float, /) -> Any:
        return self.aten("elu_backward", self.tensor(g), alpha, 1, 1, False, self.tensor(a))

    def gelu_grad(self, g: Any, a: Any, approximate: str, /) -> Any:
        values = self.tensor(g), self.tensor(a)
        return self.aten("gelu_backward", *values, approximate=approximate)

    def silu_grad(self, g: Any, a: Any, /) -> Any:
        return self.aten("silu_backward", self.tensor(g), self.tensor(a))

    def softplus_grad(self, g: Any, a: Any, beta: float, threshold: float, /) -> Any:
        return self.aten("softplus_backward", self.tensor(g), self.tensor(a), beta, threshold)
