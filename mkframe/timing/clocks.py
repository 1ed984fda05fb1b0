"""Clocks, temperature, power and throttling around a round: from NVML, or from the kernel on a CPU."""

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from mkframe.model.device import ClockReading

_CPU_CLOCK = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq")


def others(pids: Iterable[int]) -> int | None:
    """How many of the processes on a GPU are not this one; None where this one is not among them, as in another PID namespace."""
    found = set(pids)
    return len(found) - 1 if os.getpid() in found else None


class CpuClocks:
    """The clock of the first core, where the kernel tells it (virtual machines often do not)."""

    def read(self) -> ClockReading:
        try:
            return ClockReading(sm_clock_mhz=int(_CPU_CLOCK.read_text()) / 1e3)
        except (OSError, ValueError):
            return ClockReading()


class NvmlClocks:
    """NVML's readings of one GPU. What the driver does not tell is None; nothing is ever set."""

    def __init__(self, uuid: str) -> None:
        import pynvml

        self._nvml = pynvml
        pynvml.nvmlInit()
        self._handle = pynvml.nvmlDeviceGetHandleByUUID(uuid)

    def read(self) -> ClockReading:
        nvml, handle = self._nvml, self._handle
        return ClockReading(
            sm_clock_mhz=self._or_none(lambda: float(nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM))),
            memory_clock_mhz=self._or_none(lambda: float(nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_MEM))),
            temperature_c=self._or_none(lambda: float(nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU))),
            power_w=self._or_none(lambda: nvml.nvmlDeviceGetPowerUsage(handle) / 1e3),
            throttle_reasons=self._or_none(lambda: int(nvml.nvmlDeviceGetCurrentClocksEventReasons(handle))),
            other_processes=self._or_none(lambda: others(process.pid for process in nvml.nvmlDeviceGetComputeRunningProcesses(handle))),
        )

    def _or_none(self, read: Callable[[], Any]) -> Any:
        try:
            return read()
        except self._nvml.NVMLError:
            return None
