"""Partial evaluation: a program run as far as its known values allow."""

from .partial_eval import PartialEvaluate as PartialEvaluate
from .partial_eval import partially_evaluated as partially_evaluated
