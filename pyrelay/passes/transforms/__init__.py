"""Expansion of transforms: from a module with transforms to one without."""

from .expansion import ExpandTransforms as ExpandTransforms
from .expansion import expand_transforms as expand_transforms
