"""Failures of operators that are diagnostics where the program meets them."""

from __future__ import annotations


class EmptyList(IndexError):  # noqa: N818  becomes a diagnostic where the element is asked for
    """A list is empty where an element is needed."""


class SizesDiffer(ValueError):  # noqa: N818  becomes a diagnostic at the call
    """Two sizes that must be equal are not."""

    def __init__(self, left: int, right: int) -> None:
        super().__init__(left, right)
        self.left = left
        self.right = right
