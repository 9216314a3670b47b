"""KIVI in four bits."""

from __future__ import annotations

from niah.kv.families.kivi import kivi_preset

PLUGIN = kivi_preset(4)
