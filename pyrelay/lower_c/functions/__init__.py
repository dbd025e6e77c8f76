"""Functions over numbers and tensors, run whole by C."""

from .c_types import NotInC as NotInC
from .call import FunctionCall as FunctionCall
from .offered import function_findings as function_findings
from .offered import function_text as function_text
