"""What NVML tells of every GPU, as JSON on standard output. Run as a child process, because a broken driver may never answer:

python -m mkframe.doctor.gpu_facts
"""

import json
from collections.abc import Callable
from time import monotonic, sleep
from typing import Any

from mkframe.plan.cuda_devices import CudaUnavailable, nvml

COUNTER_WAIT_S = 0.5
_POLL_S = 0.01


def gather(module: Any = None, wait_s: float = COUNTER_WAIT_S) -> dict[str, Any]:
    """{"error": text} or {"driver", "gpus": [...]}. What a board does not tell is null. `module` stands for pynvml in tests."""
    try:
        with nvml(module) as found:
            handles = [found.nvmlDeviceGetHandleByIndex(index) for index in range(found.nvmlDeviceGetCount())]
            gpus = [_gpu(found, handle) for handle in handles]
            for gpu, updates in zip(gpus, _counters(found, handles, wait_s), strict=True):
                gpu["energy_counter"] = updates
            return {"driver": _text(found.nvmlSystemGetDriverVersion()), "gpus": gpus}
    except CudaUnavailable as reason:
        return {"error": str(reason)}


def _gpu(module: Any, handle: Any) -> dict[str, Any]:
    def told(read: Callable[[], Any]) -> Any:
        try:
            return read()
        except module.NVMLError:
            return None

    return {
        "name": told(lambda: _text(module.nvmlDeviceGetName(handle))),
        "uuid": told(lambda: _text(module.nvmlDeviceGetUUID(handle))),
        "mig": told(lambda: bool(module.nvmlDeviceGetMigMode(handle)[0])),
        "ecc": told(lambda: bool(module.nvmlDeviceGetEccMode(handle)[0])),
        "persistence": told(lambda: bool(module.nvmlDeviceGetPersistenceMode(handle))),
        "sm_mhz": told(lambda: int(module.nvmlDeviceGetClockInfo(handle, module.NVML_CLOCK_SM))),
        "max_sm_mhz": told(lambda: int(module.nvmlDeviceGetMaxClockInfo(handle, module.NVML_CLOCK_SM))),
        "throttle_reasons": told(lambda: int(module.nvmlDeviceGetCurrentClocksEventReasons(handle))),
        "power_limit_w": told(lambda: module.nvmlDeviceGetPowerManagementLimit(handle) / 1e3),
        "default_power_limit_w": told(lambda: module.nvmlDeviceGetPowerManagementDefaultLimit(handle) / 1e3),
        "temperature_c": told(lambda: int(module.nvmlDeviceGetTemperature(handle, module.NVML_TEMPERATURE_GPU))),
        "memory_used_bytes": told(lambda: int(module.nvmlDeviceGetMemoryInfo(handle).used)),
        "processes": told(lambda: [int(one.pid) for one in module.nvmlDeviceGetComputeRunningProcesses(handle)]),
    }


def _counters(module: Any, handles: list[Any], wait_s: float) -> list[str]:
    """ "updating", "still" or "unreadable" for the total-energy counter of each board, watched together."""
    first = [_energy(module, handle) for handle in handles]
    states = ["unreadable" if value is None else "still" for value in first]
    end = monotonic() + wait_s
    while "still" in states and monotonic() < end:
        sleep(_POLL_S)
        for index, handle in enumerate(handles):
            if states[index] == "still" and _energy(module, handle) != first[index]:
                states[index] = "updating"
    return states


def _energy(module: Any, handle: Any) -> int | None:
    try:
        return int(module.nvmlDeviceGetTotalEnergyConsumption(handle))
    except module.NVMLError:
        return None


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


if __name__ == "__main__":
    print(json.dumps(gather()))
