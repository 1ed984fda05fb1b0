"""Peaks of a device and rates of a cell, as a report holds them. Rates are bytes or operations per second, shares ratios."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class DatasheetPeaks:
    """What a datasheet promises: bytes per second of memory, operations per second in the report's precision (None where it states
    none), and where they stand."""

    memory_bytes_per_s: float
    flops_per_s: float | None
    source: str


@dataclass(frozen=True, kw_only=True, slots=True)
class MeasuredPeaks:
    """The fastest reads, writes and copies that `device probe` measured of this device. `card_sha256` is that of the card's document
    as JSON with sorted keys and no white space. A copy moves every byte twice."""

    card_sha256: str
    driver: str | None
    read_bytes_per_s: float | None
    write_bytes_per_s: float | None
    copy_bytes_per_s: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class PeaksRecord:
    """The peaks that shares are shares of. `datasheet` is None without a card of conf/device, `measured` on a device that was never
    probed with this driver."""

    datasheet: DatasheetPeaks | None
    measured: MeasuredPeaks | None


@dataclass(frozen=True, kw_only=True, slots=True)
class RatesRecord:
    """Cost over the median stream time, and shares of peak: `compute_share` and `memory_share` of the datasheet's rates,
    `read_share` of the measured read peak. None where the peak is unknown; of memory also where L2 may have served a part."""

    bytes_per_s: float
    flops_per_s: float
    compute_share: float | None
    memory_share: float | None
    read_share: float | None
