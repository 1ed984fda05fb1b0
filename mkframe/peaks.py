"""What a time claims of a device, and what the device can do at most. The one place for both: runs decide by it, `validate` rebuilds it.

A rate is a cost (the least bytes and operations of a call) over the median stream time. It is impossible where it is above what the
datasheet promises. Bytes count only as far as they must have crossed the memory bus; what may have stayed in L2 may be fast:

cold by rotation    every byte: calls follow each other over more sets than L2 holds, so that each line is read and written back
anything else       all but one L2: warm inputs are still there, and after an eviction what the call writes may stay there
"""

import math
from dataclasses import dataclass

from mkframe.model.device import DeviceCard
from mkframe.model.peaks import DatasheetPeaks, MeasuredPeaks, PeaksRecord, RatesRecord
from mkframe.model.precision import Precision

_HALVES = ("float16", "bfloat16")
_PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))
_DECIMALS = (2, 3, 4, 6, 9)


@dataclass(frozen=True, kw_only=True, slots=True)
class Claim:
    """What one timed cell says: `bytes` and `flops` of a call in `p50_ms` milliseconds of median stream time.

    `rotated`: the caches were cold by rotation. `l2_bytes` is the size of L2, None where it is unknown.
    """

    bytes: int
    flops: int
    p50_ms: float
    rotated: bool
    l2_bytes: int | None

    @property
    def seconds(self) -> float:
        return self.p50_ms / 1e3

    @property
    def memory_bytes(self) -> int | None:
        """The bytes that must have crossed the memory bus; None where nobody knows what L2 may have held."""
        if self.rotated:
            return self.bytes
        return None if self.l2_bytes is None else max(self.bytes - self.l2_bytes, 0)


def is_rotated(cache_state: str, method: str | None) -> bool:
    """Whether a cache state and the `timing.method` of the configuration mean cold by rotation."""
    return cache_state == "cold" and method == "rotate"


def flops_of(precision: Precision, card: DeviceCard) -> float | None:
    """The datasheet's rate for the products of a contract, operations per second; None where the card states none.

    Cards state tensor-core rates with float32 accumulation, and for float32 operands the rate without tensor cores.
    """
    if precision.accumulate != "float32":
        return None
    operands = {precision.input, precision.weight, precision.hidden}
    if precision.products == "tf32":
        return card.tf32_flops if operands == {"float32"} else None
    if operands <= set(_HALVES):
        return card.fp16_flops
    return card.fp32_flops if operands <= {"float32", *_HALVES} else None


def datasheet_peaks(precision: Precision, card: DeviceCard) -> DatasheetPeaks:
    """What a report states of a datasheet: what its cells are held against."""
    return DatasheetPeaks(memory_bytes_per_s=card.memory_bytes_per_s, flops_per_s=flops_of(precision, card), source=card.source)


def impossible(claim: Claim, peaks: DatasheetPeaks, device: str, precision: str) -> str | None:
    """Why a claim cannot be true, with rate and peak: one clause; None where the datasheet allows it. `device` and `precision` are
    ids, for the text."""
    if peaks.flops_per_s is not None and _above(claim.flops, claim.seconds, peaks.flops_per_s):
        told = _beside(claim.flops, claim.seconds, peaks.flops_per_s, "FLOP/s")
        return f"computes {told[0]}, and the datasheet of {device} promises {told[1]} in {precision}: the time is too short for the work"
    moved = claim.memory_bytes
    if moved is None or not _above(moved, claim.seconds, peaks.memory_bytes_per_s):
        return None
    told = _beside(moved, claim.seconds, peaks.memory_bytes_per_s, "B/s")
    if claim.rotated:
        return (
            f"moves {told[0]}, and the datasheet of {device} promises {told[1]}: the time is too short for the work, or the caches were "
            "not cold"
        )
    return f"moves {told[0]} beyond what L2 can hold, and the datasheet of {device} promises {told[1]}: the time is too short for the work"


def above_measured(claim: Claim, peaks: MeasuredPeaks) -> str | None:
    """A cold rate above the read peak that the device's card measured, as a clause; None where it is not, or where one is unknown."""
    if not claim.rotated or peaks.read_bytes_per_s is None or not _above(claim.bytes, claim.seconds, peaks.read_bytes_per_s):
        return None
    told = _beside(claim.bytes, claim.seconds, peaks.read_bytes_per_s, "B/s")
    return f"moves {told[0]} with cold caches, and the read peak measured on this device is {told[1]}"


def rates(claim: Claim, peaks: PeaksRecord | None) -> RatesRecord | None:
    """Rates and shares of peak; None where the median is zero and has no rate.

    Shares of memory rates exist only with caches cold by rotation: elsewhere L2 serves a part that nobody knows.
    """
    if claim.seconds <= 0:
        return None
    moved, computed = claim.bytes / claim.seconds, claim.flops / claim.seconds
    if not (math.isfinite(moved) and math.isfinite(computed)):
        return None
    datasheet = None if peaks is None else peaks.datasheet
    measured = None if peaks is None else peaks.measured
    cold = moved if claim.rotated else None
    return RatesRecord(
        bytes_per_s=moved,
        flops_per_s=computed,
        compute_share=_share(computed, None if datasheet is None else datasheet.flops_per_s),
        memory_share=_share(cold, None if datasheet is None else datasheet.memory_bytes_per_s),
        read_share=_share(cold, None if measured is None else measured.read_bytes_per_s),
    )


def _above(amount: int, seconds: float, peak_per_s: float) -> bool:
    """amount / seconds > peak, without a division: no time at all is too short for whatever there was to do."""
    return amount > peak_per_s * seconds


def _share(rate: float | None, peak: float | None) -> float | None:
    return None if rate is None or peak is None or not math.isfinite(rate / peak) else rate / peak


def _beside(amount: int, seconds: float, peak_per_s: float, unit: str) -> tuple[str, str]:
    """A rate above a peak, and the peak, in one unit and with so many decimals that they differ."""
    scale, prefix = next((item for item in _PREFIXES if peak_per_s >= item[0]), _PREFIXES[-1])
    peak = peak_per_s / scale
    if seconds <= 0:
        return f"{amount} {unit.removesuffix('/s')} in no time", f"{peak:.2f} {prefix}{unit}"
    rate = amount / seconds / scale
    texts = next((pair for n in _DECIMALS if (pair := (f"{rate:.{n}f}", f"{peak:.{n}f}"))[0] != pair[1]), (repr(rate), repr(peak)))
    return f"{texts[0]} {prefix}{unit}", f"{texts[1]} {prefix}{unit}"
