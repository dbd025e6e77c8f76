"""The layouts of images that an operator takes."""

from __future__ import annotations

from enum import Enum


class Layouts(Enum):
    """The operands whose elements may lie in another order than that of the shape, and what that
    says of the result."""

    PLAIN = "plain"
    """None: the operator reads dims by their numbers, or an order of all elements."""
    ALIKE = "alike"
    """All that are no numbers, in one layout, which is that of the result."""
    IMAGES = "images"
    """The first, or all in it if it is a tuple. The images in the result have its layout."""
    ANY = "any"
    """All, in any layouts; that of the result does not depend on them."""
    OF_SHAPE = "of its shape"
    """Stands in a declaration for what the shape behaviour implies: operands alike where the
    operator is pointwise, and plain ones elsewhere."""
