"""Kernel functions of a program as what the compiled host calls in their place."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, final

from ..lower_triton.kernel import NoKernel
from ..lower_triton.launch import KernelCall
from ..lower_triton.lower import lower

if TYPE_CHECKING:
    import torch

    from ..ir.expr import Function

_LOGGER: Final = logging.getLogger("pyrelay.kernels")


@final
class KernelOrTorch:
    """A kernel function: its kernels, or, where no text is made for it, its code in torch."""

    def __init__(
        self, name: str, function: Function, device: torch.device, in_torch: Callable[..., Any]
    ) -> None:
        self._name: Final = name
        self._in_torch: Final = in_torch
        self._kernels: Final = KernelCall(function, lower(function), device)
        self.refused: str | None = None
        """Why there are no kernels, once that is known."""

    def __call__(self, *operands: Any) -> Any:
        """Give the results of the function."""
        if self.refused is not None:
            return self._in_torch(*operands)
        try:
            return self._kernels(*operands)
        except NoKernel as error:
            self.refused = str(error)
            _LOGGER.info("%s runs as calls of torch: %s", self._name, error)
            return self._in_torch(*operands)
