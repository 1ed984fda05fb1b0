"""The prose of a report, generated from what really ran: one small named function per sentence.

Reports are written with it, and `validate` holds them to it.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from mkframe.model.outcome import Outcome


@dataclass(frozen=True, kw_only=True, slots=True)
class CellFacts:
    """What sentences tell of a cell. `read_share` is a share of the measured read peak; `rated`: whether the cell has rates at all."""

    set: str
    case: int
    engine: str
    baseline: bool
    outcome: Outcome
    checks: tuple[str, ...]
    late_samples: int
    rated: bool
    read_share: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class RunFacts:
    """What sentences tell of a run. `recorded_on` is its day, YYYY-MM-DD; `source_dirty` is None where unknown."""

    recorded_on: str
    workload: str
    seeds: Mapping[str, int]
    device_kind: str
    source_dirty: bool | None
    protocol: str
    rounds: int
    samples_per_round: int
    processes: int
    warmups: int
    hold: bool
    cache_state: str
    energy_measured: bool
    incomplete: bool
    cells: tuple[CellFacts, ...]


Tell = Callable[[RunFacts], str | None]

_SAMPLE = {
    "per_call": "one call",
    "replay": "a number of graph replays back to back, divided by that number",
    "unrolled": "the slope between two graphs of chained calls, per call",
    "cold": (
        "the slope between two graphs of chained calls over more buffers than L2 holds, or one call after L2 was evicted, "
        "as the configuration says"
    ),
}
PROTOCOLS = tuple(_SAMPLE)
"""The protocols that have words."""


def limitations(run: RunFacts) -> tuple[str, ...]:
    """What the numbers do not show, one sentence per function that applies."""
    return tuple(sentence for tell in LIMITATIONS if (sentence := tell(run)) is not None)


def wordings(text: str, recorded_on: str) -> tuple[str, ...]:
    """A generated text as it is written today, and as a report of that day may have it from an earlier version."""
    if recorded_on > _LAST_DAY_OF_OTHER_WORDS:
        return (text,)
    earlier = text
    for today, before in _EARLIER:
        earlier = earlier.replace(today, before)
    return (text,) if earlier == text else (text, earlier)


def data(run: RunFacts) -> str:
    seeds = ", ".join(f"{name} {seed}" for name, seed in run.seeds.items())
    return (
        f"Random inputs and weights of workload {run.workload} (seeds: {seeds}); "
        "nothing is claimed of trained models or whole applications."
    )


def protocol(run: RunFacts) -> str:
    return (
        f"Timing protocol {run.protocol}: {run.rounds} rounds of {run.samples_per_round} samples, {run.warmups} warm-ups before each, "
        f"engines rotated by one position per round; one sample is {_SAMPLE[run.protocol]}."
    )


def clock(run: RunFacts) -> str:
    if run.device_kind == "cpu":
        return "CPU run: the stream time is a clock pair right around the call, the host time a pair outside of it; no GPU took part."
    if run.hold:
        return (
            "Inputs and outputs stay on the device. Everything timed was enqueued behind a delay kernel: the stream time between two "
            "CUDA events does not hold the host's pace, while the host time holds what was left of the delay."
        )
    return "Inputs and outputs stay on the device; the stream time between two CUDA events may include idle gaps of the dispatch."


def late(run: RunFacts) -> str | None:
    count = sum(cell.late_samples for cell in run.cells)
    if not count:
        return None
    return f"{count} held samples were reached by the GPU before the host had enqueued them; they are kept, and counted per cell."


def processes(run: RunFacts) -> str:
    if run.processes == 1:
        return "All rounds share one process: differences below 5 % are not decided."
    return f"Rounds are spread over {run.processes} processes; intervals are Student's t over the processes' medians."


def cache(run: RunFacts) -> str:
    if run.cache_state == "cold":
        return "L2 is cold for every call; the instruction cache, kernel parameters and the TLB stay warm."
    if run.protocol == "unrolled":
        return (
            "Calls rotate over distinct inputs and outputs and share their weights: caches are warm, and no rate here is a "
            "memory bandwidth."
        )
    return "Every call reads the same buffers: caches are warm, and no rate here is a memory bandwidth."


def above_peak(run: RunFacts) -> str | None:
    """Rates above what reading memory reached on this device, where caches were cold by rotation."""
    shares = {f"{cell.engine} on {cell.set}[{cell.case}]": cell.read_share for cell in run.cells if cell.rated}
    above = {name: share for name, share in shares.items() if share is not None and share > 1}
    if not above:
        return None
    worst = max(above, key=lambda name: above[name])
    return (
        f"Faster than the read peak measured on this device: {len(above)} of {len(shares)} cells with rates, most of all {worst}, by a "
        f"factor of {above[worst]:.3f}; probe the device again, or look for bytes that never came from memory."
    )


def assessment(run: RunFacts) -> str | None:
    if "assessment" not in run.seeds:
        return None
    return "Assessment shapes and their seed are apart from development; they are a fixed set, no proof for other shapes."


def schedules(run: RunFacts) -> str | None:
    names = sorted({cell.engine for cell in run.cells if cell.outcome is Outcome.PASSED and not cell.baseline})
    if run.device_kind != "cpu" or not names:
        return None
    return f"On this CPU {', '.join(names)} ran as CPU implementations; their times say nothing of GPU kernels of the same name."


def control(run: RunFacts) -> str | None:
    if not any(cell.engine.removesuffix("-graph") == "persistent-global" for cell in run.cells):
        return None
    return "persistent-global keeps the ownership and tiles of persistent, but may differ from it in resources and memory behaviour."


def failures(run: RunFacts) -> str | None:
    ended = Counter(cell.outcome for cell in run.cells if cell.outcome not in (Outcome.PASSED, Outcome.INCOMPLETE))
    if not ended:
        return None
    return "Cells without numbers: " + ", ".join(f"{count} {outcome}" for outcome, count in sorted(ended.items())) + "."


def incomplete(run: RunFacts) -> str | None:
    if not run.incomplete:
        return None
    missing = sum(cell.outcome is Outcome.INCOMPLETE for cell in run.cells)
    return f"INCOMPLETE: the run ended early, {missing} cells lack some of their blocks and have no numbers."


def dirty(run: RunFacts) -> str | None:
    return "The checkout held uncommitted changes: source_commit alone does not name the code." if run.source_dirty else None


def energy(run: RunFacts) -> str | None:
    return None if run.energy_measured else "Energy was not measured."


LIMITATIONS: tuple[Tell, ...] = (
    incomplete,
    data,
    protocol,
    clock,
    late,
    processes,
    cache,
    above_peak,
    assessment,
    schedules,
    control,
    failures,
    energy,
    dirty,
)


def replay_checks(run: RunFacts) -> str:
    """What was checked before and after the timings, from the names of the checks that ran."""
    passed = [cell for cell in run.cells if cell.outcome is Outcome.PASSED]
    tried = [cell for cell in run.cells if cell.outcome is not Outcome.UNSUPPORTED]
    done = set().union(*(cell.checks for cell in passed)) if passed else set()
    parts = [text for check, text in _CHECKS if check in done]
    return f"{len(passed)} of {len(tried)} cells passed. " + " ".join(parts)


_CHECKS = (
    ("poison nan", "Each output and scratch buffer was poisoned (NaN, then a finite pattern) before each validated call."),
    ("input negated", "The input was changed in place, by negation and by a fresh draw, and the same binding or capture followed it."),
    ("shifted buffers", "A second binding or capture on buffers at other addresses gave the right result."),
    ("inputs intact", "Inputs and weights were unchanged afterwards."),
    ("producer", "Each engine was right behind a kernel that wrote its input late, in one captured graph."),
    ("after timing", "The output of the last timed call was checked."),
    ("joined", "After the timings the output was right at the moment at which a call had ended, on its stream."),
    ("fresh input", "No call was faster on the input and output of the timed loop than on new ones (10 %, three repeats)."),
)
_EARLIER = (
    ("intervals are Student's t over the processes' medians.", "intervals resample processes, then rounds, then samples."),
    (
        "No call was faster on the input and output of the timed loop than on new ones (10 %, three repeats).",
        "No call was faster on the input of the timed loop than on inputs drawn anew (10 %, three repeats).",
    ),
)
"""(words of today, what stood there before), since schema 1.2."""
_LAST_DAY_OF_OTHER_WORDS = "2026-11-30"
"""A report of a later day is in the words of today."""
