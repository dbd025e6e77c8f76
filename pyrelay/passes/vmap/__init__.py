"""Functions mapped over a batch: one call of each operator for all elements."""

from .deriver import Vectorizer as Vectorizer
