"""The prose of a report, generated from what really ran: one small named rule per sentence."""

from collections import Counter
from collections.abc import Callable

from mkframe.model.outcome import Outcome
from mkframe.model.report import FrameworkBlock

Rule = Callable[[FrameworkBlock], str | None]


_SAMPLE = {
    "per_call": "one call",
    "replay": "a number of graph replays back to back, divided by that number",
    "unrolled": "the slope between two graphs of chained calls, per call",
    "cold": (
        "the slope between two graphs of chained calls over more buffers than L2 holds, or one call after L2 was evicted, "
        "as the configuration says"
    ),
}


def limitations(block: FrameworkBlock) -> tuple[str, ...]:
    """What the numbers do not show, one sentence per rule that applies."""
    return tuple(sentence for rule in LIMITATIONS if (sentence := rule(block)) is not None)


def data(block: FrameworkBlock) -> str:
    seeds = ", ".join(f"{name} {seed}" for name, seed in block.seeds.items())
    return (
        f"Random inputs and weights of workload {block.workload} (seeds: {seeds}); "
        "nothing is claimed of trained models or whole applications."
    )


def protocol(block: FrameworkBlock) -> str:
    t = block.timing
    return (
        f"Timing protocol {t.protocol}: {t.rounds} rounds of {t.samples_per_round} samples, {t.warmups} warm-ups before each, "
        f"engines rotated by one position per round; one sample is {_SAMPLE[t.protocol]}."
    )


def clock(block: FrameworkBlock) -> str:
    if block.device.kind == "cpu":
        return "CPU run: the stream time is a clock pair right around the call, the host time a pair outside of it; no GPU took part."
    if block.timing.hold:
        return (
            "Inputs and outputs stay on the device. Everything timed was enqueued behind a delay kernel: the stream time between two "
            "CUDA events does not hold the host's pace, while the host time holds what was left of the delay."
        )
    return "Inputs and outputs stay on the device; the stream time between two CUDA events may include idle gaps of the dispatch."


def late(block: FrameworkBlock) -> str | None:
    count = sum(cell.late_samples or 0 for cell in block.cells)
    if not count:
        return None
    return f"{count} held samples were reached by the GPU before the host had enqueued them; they are kept, and counted per cell."


def processes(block: FrameworkBlock) -> str:
    if block.timing.processes == 1:
        return "All rounds share one process: differences below 5 % are not decided."
    return f"Rounds are spread over {block.timing.processes} processes; intervals are Student's t over the processes' medians."


def cache(block: FrameworkBlock) -> str:
    if block.timing.cache_state == "cold":
        return "L2 is cold for every call; the instruction cache, kernel parameters and the TLB stay warm."
    if block.timing.protocol == "unrolled":
        return (
            "Calls rotate over distinct inputs and outputs and share their weights: caches are warm, and no rate here is a "
            "memory bandwidth."
        )
    return "Every call reads the same buffers: caches are warm, and no rate here is a memory bandwidth."


def above_peak(block: FrameworkBlock) -> str | None:
    """Rates above what reading memory reached on this device, where caches were cold by rotation."""
    shares = {f"{cell.engine} on {cell.set}[{cell.case}]": cell.rates.read_share for cell in block.cells if cell.rates is not None}
    above = {name: share for name, share in shares.items() if share is not None and share > 1}
    if not above:
        return None
    worst = max(above, key=lambda name: above[name])
    return (
        f"Faster than the read peak measured on this device: {len(above)} of {len(shares)} cells with rates, most of all {worst}, by a "
        f"factor of {above[worst]:.3f}; probe the device again, or look for bytes that never came from memory."
    )


def assessment(block: FrameworkBlock) -> str | None:
    if "assessment" not in block.seeds:
        return None
    return "Assessment shapes and their seed are apart from development; they are a fixed set, no proof for other shapes."


def schedules(block: FrameworkBlock) -> str | None:
    names = sorted({cell.engine for cell in block.cells if cell.outcome is Outcome.PASSED and not cell.baseline})
    if block.device.kind != "cpu" or not names:
        return None
    return f"On this CPU {', '.join(names)} ran as CPU implementations; their times say nothing of GPU kernels of the same name."


def control(block: FrameworkBlock) -> str | None:
    if not any(cell.engine.removesuffix("-graph") == "persistent-global" for cell in block.cells):
        return None
    return "persistent-global keeps the ownership and tiles of persistent, but may differ from it in resources and memory behaviour."


def failures(block: FrameworkBlock) -> str | None:
    ended = Counter(cell.outcome for cell in block.cells if cell.outcome not in (Outcome.PASSED, Outcome.INCOMPLETE))
    if not ended:
        return None
    return "Cells without numbers: " + ", ".join(f"{count} {outcome}" for outcome, count in sorted(ended.items())) + "."


def incomplete(block: FrameworkBlock) -> str | None:
    if not block.incomplete:
        return None
    missing = sum(cell.outcome is Outcome.INCOMPLETE for cell in block.cells)
    return f"INCOMPLETE: the run ended early, {missing} cells lack some of their blocks and have no numbers."


def dirty(block: FrameworkBlock) -> str | None:
    return "The checkout held uncommitted changes: source_commit alone does not name the code." if block.environment.source_dirty else None


def energy(block: FrameworkBlock) -> str | None:
    return "Energy was not measured." if block.energy.status == "not_measured" else None


LIMITATIONS: tuple[Rule, ...] = (
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


def replay_checks(block: FrameworkBlock) -> str:
    """What was checked before and after the timings, from the names of the checks that ran."""
    passed = [cell for cell in block.cells if cell.outcome is Outcome.PASSED]
    tried = [cell for cell in block.cells if cell.outcome is not Outcome.UNSUPPORTED]
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
