"""From closures to first-order programs: every function global, every value data."""

from .closures import EverNewTypes as EverNewTypes
from .closures import NotFirstOrder as NotFirstOrder
from .first_order import FirstOrder as FirstOrder
from .first_order import first_order as first_order
