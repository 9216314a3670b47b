"""Readings of an NVIDIA GPU during a run: memory, utilization, power, temperature, by NVML (``nvidia-ml-py``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_MILLI = 1000.0


class CardReader:
    """Readings of the first card; empty where there is no card, driver or library."""

    def __init__(self) -> None:
        self._nvml: Any = None
        self._card: Any = None
        try:
            import pynvml as nvml
        except ImportError:
            return
        try:
            nvml.nvmlInit()
            self._card = nvml.nvmlDeviceGetHandleByIndex(0)
        except nvml.NVMLError:
            return  # the library without a driver, or a driver without a card
        self._nvml = nvml

    @property
    def has_card(self) -> bool:
        return self._nvml is not None

    def read(self) -> dict[str, float]:
        """``gpu_memory_used_bytes``, ``gpu_utilization`` (0–1), ``gpu_power_w``, ``gpu_temperature_c``.

        What a card does not report is left out: some have no power sensor.
        """
        nvml, card = self._nvml, self._card
        if nvml is None:
            return {}
        readings: dict[str, Callable[[], float]] = {
            "gpu_memory_used_bytes": lambda: float(nvml.nvmlDeviceGetMemoryInfo(card).used),
            "gpu_utilization": lambda: nvml.nvmlDeviceGetUtilizationRates(card).gpu / 100.0,
            "gpu_power_w": lambda: nvml.nvmlDeviceGetPowerUsage(card) / _MILLI,
            "gpu_temperature_c": lambda: float(nvml.nvmlDeviceGetTemperature(card, nvml.NVML_TEMPERATURE_GPU)),
        }
        found: dict[str, float] = {}
        for name, read in readings.items():
            try:
                found[name] = read()
            except nvml.NVMLError:
                continue
        return found
