"""Reverse-mode differentiation: from a module with transforms to one without."""

from .transforms import ExpandTransforms as ExpandTransforms
from .transforms import expand_transforms as expand_transforms
