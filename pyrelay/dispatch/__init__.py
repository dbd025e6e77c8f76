"""Implementations of operators from outside: `pyrelay.dispatch`.

A call of an operator has keys (its device, the dtypes of its operands, the modes around it), and an
open table says which implementation runs for them. docs/dispatch.md explains it. Nothing here needs
torch; `runtime.dispatch.dispatching` runs the calls.
"""

from __future__ import annotations

from .call import OperatorCall as OperatorCall
from .call import redispatch as redispatch
from .keys import BOOL as BOOL
from .keys import CPU as CPU
from .keys import CUDA as CUDA
from .keys import FLOAT as FLOAT
from .keys import HALF as HALF
from .keys import INT as INT
from .keys import META as META
from .keys import MPS as MPS
from .keys import XPU as XPU
from .keys import Key as Key
from .keys import device as device
from .keys import mode as mode
from .registration import fallback as fallback
from .registration import implementations as implementations
from .registration import register as register
from .registration import table as table
from .registration import unregister as unregister
from .registry import Registration as Registration
from .registry import Table as Table
from .state import exclude as exclude
from .state import include as include
