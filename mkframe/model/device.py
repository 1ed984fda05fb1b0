"""What a run needs to know of the device it uses."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Device:
    """One resolved device. Fields that a CPU does not have are None.

    `kind` is "cpu" or "cuda". `index` and `uuid` are the driver's (NVML order). `compute_capability` is "9.0" and
    the like. `memory_bytes` is the board's memory, or the machine's on a CPU. `threads` is what torch may use on a CPU.
    `card` is the datasheet that the configuration names, or the one that ships for a device of this name.
    """

    kind: str
    name: str
    memory_bytes: int
    index: int | None = None
    uuid: str | None = None
    compute_capability: str | None = None
    driver: str | None = None
    threads: int | None = None
    card: "DeviceCard | None" = None

    @property
    def architecture(self) -> str | None:
        """`sm_90` and the like; None on a CPU."""
        return None if self.compute_capability is None else "sm_" + self.compute_capability.replace(".", "")


@dataclass(frozen=True, kw_only=True, slots=True)
class DeviceCard:
    """What a datasheet promises of a device: bytes and floating-point operations per second, dense, and where they stand."""

    id: str
    name: str
    compute_capability: str
    multiprocessors: int
    memory_bytes_per_s: float
    fp16_flops: float
    tf32_flops: float
    fp32_flops: float
    source: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ClockReading:
    """Clocks and limits at one moment. On a CPU only `sm_clock_mhz` (its core clock) may be known.

    `other_processes`: how many processes beside the worker compute on the GPU; None where the driver does not tell them apart.
    """

    sm_clock_mhz: float | None = None
    memory_clock_mhz: float | None = None
    temperature_c: float | None = None
    power_w: float | None = None
    throttle_reasons: int | None = None
    other_processes: int | None = None
