"""Constants that element types have with different digits: the words in capitals in definitions."""

from __future__ import annotations

from typing import Final

CONSTANTS: Final = {
    "f32": {
        "LN2_HIGH": "0.693359375",  # few digits, so that its products with exponents are exact
        "LN2_LOW": "-2.1219444005469057e-4",
        "MAGIC": "0x1.8p23",
        "MAGIC_BITS": "0x4b400000",
        "BIAS": "127",
        "MANTISSA": "23",
        "FRACTION": "0x007fffff",
        "ONE_BITS": "0x3f800000",
        "ROOT_HALF_BITS": "0x3f3504f3",
        "SMALLEST": "0x1p-126",
        "SHIFT": "24",
        "GROWTH": "0x1p+24",
        "EXP_LOW": "-105.0",
        "EXP_HIGH": "90.0",
        "EXPM1_LOW": "-26.0",
        "PI_HALF": "1.57079637050628662109375",
        "PI_HALF_LOW": "(-4.37113900018624283e-8)",
    },
    "f64": {
        "LN2_HIGH": "0x1.62e42fee00000p-1",
        "LN2_LOW": "1.90821492927058770002e-10",
        "MAGIC": "0x1.8p52",
        "MAGIC_BITS": "0x4338000000000000",
        "BIAS": "1023",
        "MANTISSA": "52",
        "FRACTION": "0x000fffffffffffff",
        "ONE_BITS": "0x3ff0000000000000",
        "ROOT_HALF_BITS": "0x3fe6a09e667f3bcd",
        "SMALLEST": "0x1p-1022",
        "SHIFT": "54",
        "GROWTH": "0x1p+54",
        "EXP_LOW": "-750.0",
        "EXP_HIGH": "712.0",
        "EXPM1_LOW": "-60.0",
        "PI_HALF": "0x1.921fb54442d18p+0",
        "PI_HALF_LOW": "(6.123233995736766e-17)",
    },
}
"""The meanings of capitalised words in definitions."""
