"""The operators, one family a file; `table.py` lists them all."""

from . import values as values  # values under construction can be computed with from here on
