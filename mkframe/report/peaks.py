"""The peaks of a device as a report states them, so that its shares can be computed again from the report alone."""

from mkframe import canonical
from mkframe.model.device import DeviceCard
from mkframe.model.device_card import MeasuredCard, Operation
from mkframe.model.peaks import MeasuredPeaks, PeaksRecord
from mkframe.model.precision import Precision
from mkframe.peaks import datasheet_peaks
from mkframe.probe.cards import peak_rate


def peaks_of(datasheet: DeviceCard | None, precision: Precision, measured: MeasuredCard | None) -> PeaksRecord | None:
    """What is known of the device: its datasheet in this precision, and its measured card; None where there is neither."""
    if datasheet is None and measured is None:
        return None
    return PeaksRecord(
        datasheet=None if datasheet is None else datasheet_peaks(precision, datasheet),
        measured=None if measured is None else measured_peaks(measured),
    )


def measured_peaks(card: MeasuredCard) -> MeasuredPeaks:
    """The fastest case of each operation, as a median over its rounds."""
    return MeasuredPeaks(
        card_sha256=canonical.digest(card.document()),
        driver=card.device.driver,
        read_bytes_per_s=_peak(card, Operation.READ),
        write_bytes_per_s=_peak(card, Operation.WRITE),
        copy_bytes_per_s=_peak(card, Operation.COPY),
    )


def _peak(card: MeasuredCard, operation: Operation) -> float | None:
    found = peak_rate(card, operation)
    return None if found is None else found.rate.median_bytes_per_s
