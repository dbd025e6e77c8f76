"""Operators on many rows at once."""

from .rows import Mask as Mask
from .rows import is_any as is_any
from .rows import rows_type as rows_type
from .rules import Block as Block
from .rules import all_rows as all_rows
from .rules import batched as batched
from .rules import is_heavy as is_heavy
from .rules import is_total as is_total
