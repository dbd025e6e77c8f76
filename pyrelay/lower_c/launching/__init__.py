"""Regions in C as callables."""

from .region import RegionCall as RegionCall
