"""From closures to first-order programs: every function global, every value data."""

from .closures import EverNewTypes as EverNewTypes
from .closures import NotFirstOrder as NotFirstOrder
from .program import FirstOrder as FirstOrder
from .program import first_order as first_order
