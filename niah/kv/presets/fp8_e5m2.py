"""8-bit floats with five exponent bits: values up to 57,344, one mantissa bit less."""

from __future__ import annotations

from niah.kv.families.fp8 import fp8_preset

PLUGIN = fp8_preset("fp8_e5m2", "5 exponent bits, 2 mantissa bits")
