"""Convolutions of images as C functions, with the gradients for their operands."""

from __future__ import annotations

from typing import Final, final

from ...dataclass import dataclass
from ..math import Element, Target
from .frames import Frame, Pair, Planes, Sheets, planes_of
from .spread import Spread, spread_text
from .sweep import Sweep, Weights, sweep_text
from .weight_gradient import WeightGradient, bias_gradient_text, weight_gradient_text

_WASTE: Final = 1.3
"""A sweep for the gradient of an image goes over so many times the places of the result at most."""


@final
@dataclass(frozen=True, slots=True)
class Convolution:
    """A convolution of images of known size: `sources` and `results` are channels of one group."""

    element: Element
    groups: int
    sources: int
    results: int
    image: Pair
    kernel: Pair
    stride: Pair
    padding: Pair
    dilation: Pair

    @property
    def output(self) -> Pair:
        """The height and width of a result."""
        y, x = (self._count(axis) for axis in (0, 1))
        return y, x

    def _count(self, axis: int) -> int:
        room = self.image[axis] + 2 * self.padding[axis] - self._reach(axis) - 1
        return room // self.stride[axis] + 1

    def _reach(self, axis: int) -> int:
        """Return how far apart the first and the last element are that a kernel meets."""
        return (self.kernel[axis] - 1) * self.dilation[axis]

    @property
    def frame(self) -> Frame:
        """The image with its padding."""
        height, width = (self.image[i] + 2 * self.padding[i] for i in (0, 1))
        return Frame(self.image, self.padding, (height, width), self.stride, self.dilation)

    def _planes(self, target: Target, *, aligned: bool) -> Planes:
        """Return how the image lies while it is summed."""
        sheets = Sheets(
            *(self.image, self.padding, self.output, self.kernel, self.stride, self.dilation),
            *(target.register_bytes // self.element.bytes, aligned),
        )
        return planes_of(self.frame, sheets, self.results, self.element, target)

    def forward(self, name: str, target: Target, *, has_bias: bool) -> str:
        """Return the function `name(run, image, weight[, bias], result, count)`."""
        height, width = self.kernel
        area, size = height * width, self.sources * height * width
        weights = Weights(self.results * size, size, area, width, 1, 0)
        sweep = Sweep(
            *(self.element, self.groups, self.sources, self.results),
            *(self._planes(target, aligned=True), self.output, self.kernel, weights, has_bias),
        )
        return sweep_text(name, sweep, target)

    def input_gradient(self, name: str, target: Target) -> str:
        """Return the function `name(run, gradient, weight, result, count)`, by the method that
        multiplies less."""
        y, x = self.output
        is_little = self.image[0] * self.image[1] <= _WASTE * y * x
        is_inside = all(self.padding[i] <= self._reach(i) for i in (0, 1))
        if self.stride == (1, 1) and is_little and is_inside:
            return sweep_text(name, self._turned(target), target)
        of = Spread(
            *(self.element, self.groups, self.sources, self.results, self.frame, self.output),
            *(self.kernel, self.stride, self.dilation),
        )
        return spread_text(name, of, target)

    def _turned(self, target: Target) -> Sweep:
        """The gradient for the image as a convolution with the kernel turned round, of the gradient
        with zeros around it."""
        height, width = self.kernel
        area, size = height * width, self.sources * height * width
        weights = Weights(self.results * size, area, size, -width, -1, area - 1)
        low = (self._reach(0) - self.padding[0], self._reach(1) - self.padding[1])
        room = (self.image[0] + self._reach(0), self.image[1] + self._reach(1))
        once = (1, 1)
        frame = Frame(self.output, low, room, once, self.dilation)
        lanes = target.register_bytes // self.element.bytes
        sheets = Sheets(self.output, low, self.image, self.kernel, once, self.dilation, lanes, True)
        planes = planes_of(frame, sheets, self.sources, self.element, target)
        return Sweep(
            *(self.element, self.groups, self.results, self.sources),
            *(planes, self.image, self.kernel, weights, False),
        )

    def weight_gradient(self, name: str, target: Target) -> str:
        """Return the function `name(run, gradient, image, result, count)`."""
        of = WeightGradient(
            *(self.element, self.groups, self.sources, self.results),
            *(self._planes(target, aligned=False), self.output, self.kernel),
        )
        return weight_gradient_text(name, of, target)

    def bias_gradient(self, name: str, target: Target) -> str:
        """Return the function `name(run, gradient, result, count)`."""
        area = self.output[0] * self.output[1]
        return bias_gradient_text(name, self.element, self.groups * self.results, area, target)
