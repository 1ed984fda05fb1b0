"""What a report of ours must hold beyond what every comparison report must: what its `mkframe` block says twice, agrees.

Checks take any JSON object; without a block they say nothing. Verdicts: verdict_rules.py. Samples: rebuilt_rules.py.
"""

import re
from collections.abc import Iterator
from typing import Any

from mkframe.canonical import is_digest
from mkframe.model.outcome import Outcome
from mkframe.validate.block_parts import FORMS, Key, all_known, block_cells, block_of
from mkframe.validate.comparison_parts import Path, Shape, above, amount, cases, items, table, whole
from mkframe.validate.comparison_rules import output_faults
from mkframe.validate.finding import Finding, Severity, error, shown, warning
from mkframe.validate.formats import COMPARISON
from mkframe.validate.rule import Rule, Subject

_E, _W = Severity.ERROR, Severity.WARNING
_CHANGED_INPUT = {"input negated", "input fresh"}
"""The checks that make replay_changed_input true."""
_HASH = re.compile(r"[0-9a-f]{64}")
_IN_AN_ID = re.compile(r"[\w-]")
_NAME = re.compile(r"samples-[0-9a-f]{64}\.npz")
_HARNESS = "mkframe/__init__.py"
_PROTOCOLS = ("per_call", "replay", "unrolled", "cold")
_CACHE_STATES = ("warm", "cold")
_SAME = (
    (("timing",), ("timing", "protocol")),
    (("rounds",), ("timing", "rounds")),
    (("samples_per_round",), ("timing", "samples_per_round")),
    (("device",), ("device", "name")),
    (("packages", "mkframe"), ("version",)),
)
"""(place in the report, place in the block) of one and the same value."""


def stated_twice(subject: Subject) -> Iterator[Finding]:
    """Protocol, rounds, samples, device and version stand in the report and in its block; the precision begins with its contract."""
    document, block = subject.document, block_of(subject.document)
    for outer, inner in _SAME:
        one, other = _at(document, outer), _at(block, inner)
        if _plain(one) and _plain(other) and isinstance(one, str) is isinstance(other, str) and one != other:
            yield error("stated-twice", f"{outer[-1]} is {shown(one)}, and mkframe.{'.'.join(inner)} is {shown(other)}", outer)
    precision, contract = document.get("precision"), table(block, "precision").get("id")
    if isinstance(precision, str) and precision and isinstance(contract, str) and not _begins_with(precision, contract.upper()):
        why = f"precision does not begin with {shown(contract.upper())}, the contract of the block"
        yield error("stated-twice", why, ("precision",))
    packages, sources = document.get("packages"), document.get("source_sha256")
    for name in ("mkframe", "torch") if block else ():
        if isinstance(packages, dict) and name not in packages:
            yield error("stated-twice", f"{name} is missing, and every run of ours uses it", ("packages",))
    if block and isinstance(sources, dict) and sources and _HARNESS not in sources:
        yield error("stated-twice", f"{_HARNESS} is missing, and every run of ours hashes its framework", ("source_sha256",))
    timing = table(block, "timing")
    protocol, state = timing.get("protocol"), timing.get("cache_state")
    for name, value, known in (("protocol", protocol, _PROTOCOLS), ("cache_state", state, _CACHE_STATES)):
        if isinstance(value, str) and value not in known:
            why = f"{name} is {shown(value)}, and there are {', '.join(known)}"
            yield error("stated-twice", why, ("mkframe", "timing", name))
    if isinstance(protocol, str) and isinstance(state, str) and (protocol == "cold") != (state == "cold"):
        why = f"cache_state is {shown(state)} with the protocol {shown(protocol)}"
        yield error("stated-twice", why, ("mkframe", "timing", "cache_state"))


def _begins_with(text: str, id: str) -> bool:
    """Whether a text begins with an id, and not with a longer one: FP16_ACC32 is no FP16."""
    return text.startswith(id) and _IN_AN_ID.match(text, len(id)) is None


def no_energy(subject: Subject) -> Iterator[Finding]:
    """A comparison measures no energy: where the protocol is none every figure is null, and where it is another none is."""
    energy = table(subject.document, "mkframe", "energy")
    protocol, status = energy.get("protocol"), energy.get("status")
    if not isinstance(protocol, str) or not isinstance(status, str):
        return
    place = ("mkframe", "energy")
    if (protocol == "none") is not (status == "not_measured"):
        yield error("energy", f"status is {shown(status)}, and the protocol is {shown(protocol)}", (*place, "status"))
    for name in ("verdict", "net_mj", "u_mj", "sham_mj", "reference", "rounds"):
        if status == "not_measured" and energy.get(name) is not None:
            yield error("energy", f"{name} is {shown(energy[name])}, and energy was not measured", (*place, name))
    if status != "not_measured" and energy.get("verdict") is None:
        yield error("energy", f"status is {shown(status)}, and there is no verdict", (*place, "verdict"))
    elif status != "not_measured" and energy.get("net_mj") is None and str(energy["verdict"]).lower() in ("resolved", "not_resolved"):
        yield error("energy", f"the verdict is {shown(energy['verdict'])}, and net_mj is null", (*place, "net_mj"))


def _at(node: dict[str, Any], path: tuple[str, ...]) -> Any:
    return table(node, *path[:-1]).get(path[-1])


def _plain(value: Any) -> bool:
    """Whether a value is one that the schema lets stand twice: text or a count."""
    return bool(value) if isinstance(value, str) else (whole(value) or 0) >= 1


def _is_hash(value: Any) -> bool:
    return isinstance(value, str) and _HASH.fullmatch(value) is not None


def config_hash(subject: Subject) -> Iterator[Finding]:
    """config_sha256 is the hash of the configuration in the block, whichever way its whole numbers are written."""
    config, stated = block_of(subject.document).get("config"), block_of(subject.document).get("config_sha256")
    if isinstance(config, dict) and _is_hash(stated) and not is_digest(str(stated), config):
        yield error("config-hash", "config_sha256 is not the hash of config: one of them was changed", ("mkframe", "config_sha256"))


def samples_name(subject: Subject) -> Iterator[Finding]:
    """The name of the samples file holds its hash."""
    file, stated = (table(subject.document, "mkframe", "samples").get(name) for name in ("file", "sha256"))
    if isinstance(file, str) and _NAME.fullmatch(file) and _is_hash(stated) and file != f"samples-{stated}.npz":
        yield error("samples-name", f"the file {shown(file)} is not named after sha256", ("mkframe", "samples", "file"))


def round_process(subject: Subject) -> Iterator[Finding]:
    """Every round has one process; rounds are dealt to processes in consecutive runs of about one length."""
    timing = table(subject.document, "mkframe", "timing")
    given = items(timing, "round_process")
    dealt = [process for value in given if (process := whole(value)) is not None]
    rounds, processes = whole(timing.get("rounds")), whole(timing.get("processes"))
    if (rounds or 0) < 1 or (processes or 0) < 1 or not given or len(dealt) != len(given) or min(dealt) < 0:
        return
    assert rounds is not None, "checked above"
    assert processes is not None, "checked above"
    place = ("mkframe", "timing", "round_process")
    if len(dealt) != rounds:
        yield error("round-process", f"it names processes of {len(dealt)} rounds, and there are {shown(rounds)}", place)
    elif dealt != [index * processes // rounds for index in range(rounds)]:
        why = f"rounds are dealt in consecutive runs of equal length to processes 0 to {shown(processes - 1)}, and these are not"
        yield error("round-process", why, place)
    else:
        yield from _round_records(subject.document, dealt)


def _round_records(document: dict[str, Any], dealt: list[int]) -> Iterator[Finding]:
    for index, record in enumerate(items(document, "mkframe", "rounds")):
        number, process = (whole(table(record).get(name)) for name in ("round", "process"))
        place = ("mkframe", "rounds", index)
        if number is not None and number >= len(dealt):
            yield error("round-process", f"round is {shown(number)}, and there are {len(dealt)} rounds, from 0", (*place, "round"))
        elif number is not None and process is not None and number >= 0 and 0 <= process != dealt[number]:
            why = f"process is {shown(process)}, and round {number} is one of process {dealt[number]}"
            yield error("round-process", why, (*place, "process"))


def incomplete(subject: Subject) -> Iterator[Finding]:
    """A cell without all of its blocks makes the report incomplete. A run may end early when nothing is left to do: a warning."""
    stated = block_of(subject.document).get("incomplete")
    if not isinstance(stated, bool):
        return
    missing = [cell for cell in block_cells(subject) if cell.record.get("outcome") == Outcome.INCOMPLETE]
    if missing and not stated:
        yield error("incomplete", f"incomplete is false, and {missing[0].text} is incomplete", ("mkframe", "incomplete"))
    elif stated and not missing:
        yield warning("incomplete", "incomplete is true, and no cell is incomplete", ("mkframe", "incomplete"))


def cells(subject: Subject) -> Iterator[Finding]:
    """A cell stands once; a case has one shape, a shape one case; every shape set has a seed."""
    first: dict[Key, Path] = {}
    shapes: dict[tuple[str, int], Shape] = {}
    places: dict[tuple[str, Shape], int] = {}
    seeds = block_of(subject.document).get("seeds")
    without: set[str] = set()
    for cell in block_cells(subject):
        name, index, _ = cell.key
        before = first.setdefault(cell.key, cell.path)
        if before != cell.path:
            yield error("cells", f"the same cell as item {before[-1]}: {cell.text}", cell.path)
        elif cell.shape:
            if shapes.setdefault((name, index), cell.shape) != cell.shape:
                yield error("cells", f"another shape than other cells of {shown(name)}, case {index}", (*cell.path, "shape"))
            elif (place := places.setdefault((name, cell.shape), index)) != index:
                yield error("cells", f"the shape of {shown(name)}, case {place}, under another number", (*cell.path, "case"))
        if isinstance(seeds, dict) and name not in seeds and name not in without:
            without.add(name)
            yield error("cells", f"the shape set {shown(name)} has no seed", ("mkframe", "seeds"))


def cell_results(subject: Subject) -> Iterator[Finding]:
    """Every cell has its entry under its shape set, an unsupported one has none, and both say the same of it."""
    if not isinstance(block_of(subject.document).get("cells"), list):
        return
    if not all_known(subject):
        return
    listed: dict[tuple[str, Shape | None], set[str]] = {}
    for cell in block_cells(subject):
        listed.setdefault((cell.key[0], cell.shape), set()).add(cell.key[2])
        if cell.entry is None:
            if cell.supported:
                why = f"{cell.text} was {shown(cell.record.get('outcome'))}, and has no entry under its shape set"
                yield error("cell-results", why, cell.path)
        elif not cell.supported:
            yield error("cell-results", f"mkframe.cells calls it unsupported: {cell.text} has no results", cell.entry.path)
        elif isinstance(stated := cell.entry.result.get("passed"), bool) and stated is not cell.passed:
            why = f"passed is {shown(stated)}, and mkframe.cells says {shown(cell.record.get('outcome'))}"
            yield error("cell-results", why, (*cell.entry.path, "passed"))
    for case in cases(subject):
        known = listed.get((case.set, case.shape), set())
        for engine in case.engines:
            if engine not in known:
                why = "no entry of mkframe.cells is about this engine on this shape"
                yield error("cell-results", why, (*case.path, "engines", engine))


def cell_outcome(subject: Subject) -> Iterator[Finding]:
    """What a cell says of itself fits its outcome, its form and the protocol."""
    hold = table(subject.document, "mkframe", "timing").get("hold")
    for cell in block_cells(subject):
        record = cell.record
        for name, kind, there in (("reason", str, not cell.passed), ("interval", dict, cell.passed)):
            if isinstance(record.get(name, 0), kind | None) and (record[name] is not None) is not there:
                why = f"{name} is {shown(record[name])} in a cell that {'passed' if cell.passed else 'did not pass'}"
                yield error("cell-outcome", why, (*cell.path, name))
        low, high = (amount(table(record, "interval").get(name)) for name in ("low_ms", "high_ms"))
        if low is not None and high is not None and above(low, high):
            yield error("cell-outcome", f"low_ms is {shown(low)}, above high_ms, which is {shown(high)}", (*cell.path, "interval"))
        if record.get("form") in FORMS and record["form"] != cell.form:
            yield error("cell-outcome", f"form is {shown(record['form'])}, and the id is one of {cell.form} form", (*cell.path, "form"))
        if hold is False and record.get("late_samples") is not None:
            yield error("cell-outcome", "late_samples count held samples, and nothing was held", (*cell.path, "late_samples"))
        if wrong := output_faults(table(record, "check"), True if cell.passed else None):
            yield error("cell-outcome", "; ".join(wrong), (*cell.path, "check"))


def replay_flag(subject: Subject) -> Iterator[Finding]:
    """replay_changed_input is true where the cell passed and went through the checks with other inputs."""
    for cell in block_cells(subject):
        stated, checks = (None if cell.entry is None else cell.entry.result.get("replay_changed_input")), cell.record.get("checks")
        if cell.entry is None or not isinstance(stated, bool) or not isinstance(checks, list):
            continue
        if not all(isinstance(check, str) for check in checks):
            continue
        if stated is not (cell.passed and set(checks) >= _CHANGED_INPUT):
            why = f"replay_changed_input is {shown(stated)}, and the checks and the outcome of the cell say otherwise"
            yield error("replay-flag", why, (*cell.entry.path, "replay_changed_input"))


BLOCK_RULES: tuple[Rule, ...] = tuple(
    Rule(
        id=id, format=COMPARISON, severities=(_E, _W) if id == "incomplete" else (_E,), says=says, check=check, needs_schema=id == "energy"
    )
    for id, check, says in (
        ("stated-twice", stated_twice, "what stands in a report of ours and in its mkframe block is the same"),
        ("energy", no_energy, "a comparison without energy states none of its figures, and one with states them"),
        ("config-hash", config_hash, "config_sha256 is the hash of mkframe.config"),
        ("samples-name", samples_name, "the samples file is named after its hash"),
        ("round-process", round_process, "rounds are dealt to processes in consecutive runs of equal length"),
        ("incomplete", incomplete, "a report with incomplete cells says that it is incomplete"),
        ("cells", cells, "a cell stands once in mkframe.cells, a case has one shape, and its set a seed"),
        ("cell-results", cell_results, "mkframe.cells and the entries under the shape sets are about the same cells and agree"),
        ("cell-outcome", cell_outcome, "reason, interval, form, late samples and check of a cell fit its outcome"),
        ("replay-flag", replay_flag, "replay_changed_input follows from the checks of the cell"),
    )
)
