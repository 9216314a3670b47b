"""8-bit floats with four exponent bits: values up to 448."""

from __future__ import annotations

from niah.kv.families.fp8 import fp8_preset

PLUGIN = fp8_preset("fp8_e4m3", "4 exponent bits, 3 mantissa bits")
