"""Regions in C as callables."""

from .region import RegionCall as RegionCall
from .routes import notes_of as notes_of
