"""Loss scaling for float16, whose gradients are zero below 6e-8.

The loss is multiplied by a large number before it is differentiated, and the gradients are divided
by it. Where they are not finite the step is left out, and the scale is reduced; after a number of
good steps it grows again. See Micikevicius et al., "Mixed precision training", 2018; the interface
is that of `jmp`, Haiku's library for JAX. bfloat16 has the range of float32 and needs none of it.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..annotations import Bool, Float, Int
from ..decorators import relay


@dataclass(frozen=True)
class LossScale:
    """The number that a loss is multiplied by, and how it changes from step to step."""

    scale: Float = 65536.0
    growth: Float = 2.0
    """The factor of the scale after `interval` good steps."""
    backoff: Float = 0.5
    """The factor of the scale after a step with gradients that are not finite."""
    interval: Int = 2000
    good: Int = 0
    """The good steps since the scale has changed."""

    def scaled(self, loss: Float) -> Float:
        """Return a loss to differentiate."""
        return loss * self.scale

    def inverse(self) -> Float:
        """Return the factor of scaled losses and their gradients."""
        return 1.0 / self.scale

    def adjusted(self, finite: Bool) -> LossScale:
        """Return the scale for the next step; `finite` says whether the gradients of this one
        were."""
        if not finite:
            scale = relay.maximum(self.scale * self.backoff, 1.0)
            return LossScale(scale, self.growth, self.backoff, self.interval, 0)
        if self.good + 1 < self.interval:
            good = self.good + 1
            return LossScale(self.scale, self.growth, self.backoff, self.interval, good)
        scale = self.scale * self.growth
        return LossScale(scale, self.growth, self.backoff, self.interval, 0)


def fixed_loss_scale(scale: float) -> LossScale:
    """Return a scale that stays what it is."""
    return LossScale(scale, growth=1.0, backoff=1.0)
