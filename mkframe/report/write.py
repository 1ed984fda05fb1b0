"""Puts the files of a run in place: samples first, then the report that names them, each whole or not at all."""

from dataclasses import dataclass
from pathlib import Path

from mkframe import canonical
from mkframe.errors import RunError
from mkframe.model.device_card import MeasuredCard
from mkframe.model.report import ComparisonReport
from mkframe.report.build import NO_SANITIZER, build_report
from mkframe.report.samples import pack
from mkframe.run.ledger import Ledger
from mkframe.validate import check_schema

NAME = "report.json"


@dataclass(frozen=True, kw_only=True, slots=True)
class Written:
    """A report in its run folder."""

    path: Path
    report: ComparisonReport


def write_report(folder: Path, ledger: Ledger, measured: MeasuredCard | None, sanitizers: str = NO_SANITIZER) -> Written | None:
    """Writes samples and report into `folder`; None where no cell is left to report. `measured` is the device's measured card,
    `sanitizers` what the report says of sanitizers.

    Raises RunError where our own report breaks its schema, UnreadableError where the folder cannot be written.
    """
    samples, data = pack(ledger)
    report = build_report(ledger, samples, measured, sanitizers)
    if report is None:
        return None
    canonical.write_atomically(folder / samples.file, data)  # first: whatever is wrong with the report, the samples are kept
    document = report.document()
    result = check_schema(document)
    first = result.first_error
    if first is not None:
        raise RunError(f"the report breaks its own schema at {first.pointer}: {first.message}; every sample is in {folder / samples.file}")
    path = folder / NAME
    canonical.write_atomically(path, canonical.dumps(document).encode())
    for older in set(folder.glob("samples-*.npz")) - {folder / samples.file}:
        older.unlink(missing_ok=True)  # of the report that this one replaces
    return Written(path=path, report=report)
