"""Functions over numbers and tensors, run whole by C."""

from .c_text import function_findings as function_findings
from .c_text import function_text as function_text
from .c_types import NotInC as NotInC
from .call import FunctionCall as FunctionCall
