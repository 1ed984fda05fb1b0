"""validate: device cards. Paper GPUs and this machine's CPU give cards without findings; what is changed in one is found at its place."""

import copy
import json
import math
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from probe_fakes import HOPPER, FakeGpu

from mkframe.cli.validate_command import main
from mkframe.errors import UnreadableError
from mkframe.model.device_card import MeasuredCard, MemoryRate, Operation
from mkframe.plan.devices import cpu
from mkframe.probe import cards, fit
from mkframe.probe.cpu import probe_cpu
from mkframe.probe.memory_cases import memory_models
from mkframe.probe.session import probe_gpu
from mkframe.validate import Finding, check_document, validate
from mkframe.validate.card_rates import fitted

Document = dict[str, Any]


def probed(rounds: int, **facts: Any) -> Document:
    gpu = FakeGpu(facts=replace(HOPPER, **facts))
    document: Document = probe_gpu(gpu, rounds=rounds, now=gpu.now).document()
    return document


CARD = probed(2)
CPU = probe_cpu(cpu(), rounds=3, sizes=(2**16, 2**18, 2**20)).document()


def index_of(name: str, **wanted: Any) -> int:
    """Which entry of a list of CARD has these values; a time where none are asked for."""
    for index, entry in enumerate(CARD[name]):
        if all(entry[key] == value for key, value in wanted.items()):
            return index
    raise AssertionError(wanted)


PLAIN = index_of("launches", body="empty", reason=None, cooperative=False, cluster=1, programmatic=False)
REFUSED = next(index for index, floor in enumerate(CARD["launches"]) if floor["time"] is None)
COPY = index_of("memory", operation="copy")
SAME = index_of("l2", pattern="same")
CLUSTERS = index_of("barriers", scope="cluster")


def changed(card: Document, **values: Any) -> Document:
    """`card` with the values at JSON Pointers replaced; in keywords `__` stands for `/`."""
    document = copy.deepcopy(card)
    for path, value in values.items():
        *parents, last = [int(token) if token.isdecimal() else token for token in path.split("__")]
        node: Any = document
        for token in parents:
            node = node[token]
        node[last] = value
    return document


def found(document: Document) -> list[Finding]:
    return list(check_document(document).findings)


@pytest.mark.parametrize(
    "document",
    [
        CARD,
        CPU,
        probed(1),
        probed(7),
        probed(2, multiprocessors=2),
        probed(2, compute_capability="8.0", shared_bytes_per_block=163 * 1024),
        probed(2, l2_bytes=2**14),
    ],
    ids=["gpu", "cpu", "one round", "seven rounds", "few multiprocessors", "no clusters", "small L2"],
)
def test_what_a_probe_writes_is_valid(document: Document, tmp_path: Path) -> None:
    (tmp_path / "card.json").write_text(json.dumps(document))
    result = validate(tmp_path / "card.json")
    assert (result.format, result.findings, result.exit_code) == ("device-card", (), 0)


CLOCK_READINGS = CARD["clock"]["round_measured"]["readings"]
FAULTS: dict[str, tuple[Document, str]] = {
    "median above the largest": ({"events__floors__0__time__median_us": 1e6}, "/events/floors/0/time/median_us"),
    "median below the smallest": ({"clock__light_measured__median_mhz": 1.0}, "/clock/light_measured/median_mhz"),
    "median of two is their mean": ({f"launches__{PLAIN}__time__max_us": 100.0}, f"/launches/{PLAIN}/time/median_us"),
    "other number of rounds": ({f"barriers__{CLUSTERS}__bare__rounds": 3}, f"/barriers/{CLUSTERS}/bare/rounds"),
    "no such day": ({"measured_at_utc": "2026-02-31T00:00:00Z"}, "/measured_at_utc"),
    "took less than its spin-up": ({"took_s": 0.1}, "/took_s"),
    "no events": ({"events": None}, "/events"),
    "no launches": ({"launches": None}, "/launches"),
    "no barriers": ({"barriers": None}, "/barriers"),
    "no L2": ({"l2": None}, "/l2"),
    "no clock": ({"clock": None}, "/clock"),
    "no UUID": ({"device__uuid": None}, "/device/uuid"),
    "no NVRTC": ({"software__nvrtc": None}, "/software/nvrtc"),
    "cores of a CPU": ({"device__cores": 4}, "/device/cores"),
    "floors of a CPU": ({"host": CPU["host"] | {"empty_call": CARD["events"]["floors"][0]["time"]}}, "/host"),
    "odd compute capability": ({"device__compute_capability": "nine"}, "/device/compute_capability"),
    "chains of one length": ({"protocol__short_chain": 120}, "/protocol/long_chain"),
    "a clock reading is lost": ({"clock__round_measured__readings": CLOCK_READINGS - 1}, "/clock/round_measured/readings"),
    "NVML read more often": ({"clock__round_nvml__readings": CLOCK_READINGS + 6}, "/clock/round_nvml/readings"),
    "no step of an event clock": ({"events__step_us": 0.05}, "/events/step_us"),
    "one event floor twice": ({"events__floors__1": CARD["events"]["floors"][0]}, "/events/floors/1"),
    "one launch twice": ({"launches__1": CARD["launches"][0]}, "/launches/1"),
    "a time and a reason": ({f"launches__{PLAIN}__reason": "it does not fit"}, f"/launches/{PLAIN}"),
    "a time, but no block fits": ({f"launches__{PLAIN}__resident_blocks": 0}, f"/launches/{PLAIN}/resident_blocks"),
    "blocks fit, but no time": ({f"launches__{REFUSED}__resident_blocks": 10**6}, f"/launches/{REFUSED}/resident_blocks"),
    "more shared memory than there is": ({f"launches__{PLAIN}__shared_bytes": 2**30}, f"/launches/{PLAIN}/shared_bytes"),
    "grid not in clusters": ({f"launches__{PLAIN}__cluster": 3}, f"/launches/{PLAIN}/grid"),
    "a launch without time": (
        {f"launches__{PLAIN}__time": {"rounds": 2, "median_us": 0, "min_us": -1.0, "max_us": 1.0}},
        f"/launches/{PLAIN}/time/median_us",
    ),
    "a block barrier over clusters": ({"barriers__0__cluster": 2}, "/barriers/0/cluster"),
    "a cluster barrier of one": ({f"barriers__{CLUSTERS}__cluster": 1}, f"/barriers/{CLUSTERS}/cluster"),
    "a barrier without time": (
        {f"barriers__{CLUSTERS}__step": {"rounds": 2, "median_us": -1.0, "min_us": -1.0, "max_us": -1.0}},
        f"/barriers/{CLUSTERS}/step/median_us",
    ),
    "a copy moves twice its footprint": ({f"memory__{COPY}__bytes": CARD["memory"][COPY]["bytes"] + 1}, f"/memory/{COPY}/moved_bytes"),
    "sets that fit into L2": ({"memory__0__sets": 1}, "/memory/0/sets"),
    "one case twice": ({"memory__1": CARD["memory"][0]}, "/memory/1"),
    "another rate than bytes over time": (
        {"memory__0__rate": {"rounds": 2} | dict.fromkeys(("median_bytes_per_s", "min_bytes_per_s", "max_bytes_per_s"), 5e12)},
        "/memory/0/rate/max_bytes_per_s",
    ),
    "a rate without a time": (
        {f"l2__{SAME}__time": {"rounds": 2, "median_us": 0.0, "min_us": 0.0, "max_us": 0.0}},
        f"/l2/{SAME}/time/min_us",
    ),
    "all read the same": ({f"l2__{SAME}__moved_bytes": CARD["l2"][SAME]["bytes"]}, f"/l2/{SAME}/moved_bytes"),
    "more than L2 holds": ({"device__l2_bytes": CARD["l2"][SAME]["bytes"] - 1}, f"/l2/{SAME}/bytes"),
    "latency of another line": ({"memory_models__0__latency_us": 1.9}, "/memory_models/0/latency_us"),
    "rate of another line": ({"memory_models__0__bytes_per_s": 4.7e12}, "/memory_models/0/bytes_per_s"),
    "residual too good": ({"memory_models__0__worst_residual": 0.01}, "/memory_models/0/worst_residual"),
    "a line through nothing": ({"memory_models__0__method": "by hand"}, "/memory_models/0"),
    "a line is missing": ({"memory_models": CARD["memory_models"][1:]}, "/memory_models"),
    "one line twice": ({"memory_models__1": CARD["memory_models"][0]}, "/memory_models/1"),
    "nothing was checked": ({"checks": []}, "/checks"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found_at_its_place(name: str) -> None:
    values, pointer = FAULTS[name]
    result = check_document(changed(CARD, **values))
    assert result.exit_code == 1
    assert pointer in [finding.pointer for finding in result.findings], result.findings
    assert all(finding.rule != "schema" for finding in result.findings), "a fault that the schema sees is none of these"


def test_a_method_whose_larger_passes_take_less_time_has_no_line() -> None:
    method = CARD["memory_models"][0]["method"]
    places = [index for index, entry in enumerate(CARD["memory"]) if entry["method"] == method]
    faster = {f"memory__{index}__time__{name}_us": 9.0 - index for index in places for name in ("min", "median", "max")}
    assert "/memory_models/0" in [finding.pointer for finding in found(changed(CARD, **faster))]


def test_writes_that_were_left_out_are_missed() -> None:
    kept = [entry for entry in CARD["memory"] if entry["operation"] != "write"]
    assert "no write was measured" in [finding.message for finding in found(changed(CARD, memory=kept))]


def test_clusters_and_programmatic_edges_are_not_for_older_devices() -> None:
    places = {finding.pointer for finding in found(changed(CARD, device__compute_capability="8.6"))}
    for name in ("launches", "barriers"):
        for index, entry in enumerate(CARD[name]):
            for key in ("cluster", "programmatic"):
                uses = entry.get(key, False) > (1 if key == "cluster" else 0)
                assert (f"/{name}/{index}/{key}" in places) == uses


def test_a_cpu_has_neither_launches_nor_a_uuid() -> None:
    document = changed(CPU, launches=[], device__uuid="GPU-1", protocol__replays=3, host=None, device__caches=None)
    places = {finding.pointer for finding in found(document)}
    assert places == {"/launches", "/device/uuid", "/protocol/replays", "/host", "/device/caches"}


@pytest.mark.parametrize("format", ["device-card/2", "device-card/", "device-card/1 "])
def test_another_version_is_recognised_and_refused(format: str) -> None:
    result = check_document(changed(CARD, format=format))
    assert (result.format, [finding.pointer for finding in result.findings]) == ("device-card", ["/format"])
    assert 'must be "device-card/1"' in result.findings[0].message


@pytest.mark.parametrize("format", [..., "devicecard/1", "card", 1, None])
def test_without_its_name_it_is_no_card(format: Any) -> None:
    document = {key: value for key, value in (CARD | {"format": format}).items() if value is not ...}
    result = check_document(document)
    assert (result.format, result.exit_code) == (None, 2)
    assert all(word in result.findings[0].message for word in ("comparison report", "energy report", "device card"))


def test_the_probe_refuses_what_validate_refuses(tmp_path: Path) -> None:
    path = tmp_path / "card.json"
    path.write_text(json.dumps(changed(CARD, memory_models__0__latency_us=1.9)))
    with pytest.raises(UnreadableError, match=r"no valid device card: /memory_models/0/latency_us: latency_us is 1.9"):
        cards.read_card(path)
    path.write_text(json.dumps({"samples_per_round": 1}))
    with pytest.raises(UnreadableError, match="this is a comparison report"):
        cards.read_card(path)


def numbers(node: Any, path: str = "") -> Iterator[tuple[str, float]]:
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in items:
        yield from numbers(value, f"{path}__{key}" if path else str(key))
    if isinstance(node, int | float) and not isinstance(node, bool):
        yield path, node


NUMBERS = dict(numbers(CARD))
FIGURES = sorted(
    path
    for path in NUMBERS
    if path.rpartition("__")[2].startswith(("median_", "min_", "max_", "rounds")) and not path.startswith(("protocol", "clock"))
)
DERIVED = sorted(
    path for path in NUMBERS if path.endswith("__moved_bytes") or (path.startswith("memory_models") and "residual" not in path)
)


@given(path=st.sampled_from(FIGURES + DERIVED), factor=st.floats(0.5, 0.999) | st.floats(1.001, 2.0))
def test_no_figure_of_a_card_can_be_changed_alone(path: str, factor: float) -> None:
    """In this card both rounds agree, and every line is exact: nothing has room. A clock, read more than twice, would have."""
    value = NUMBERS[path] * factor
    value = math.floor(value) + (factor > 1) if isinstance(NUMBERS[path], int) else value
    assert found(changed(CARD, **{path: value}))


@given(path=st.sampled_from(sorted(NUMBERS)), value=st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.none())
@example(path="memory__0__time__max_us", value=0)
@example(path="memory__0__time__median_us", value=5e-324)
@example(path="l2__0__time__median_us", value=0.0)
def test_any_number_anywhere_gives_findings_and_no_exception(path: str, value: Any) -> None:
    result = check_document(changed(CARD, **{path: value}))
    assert result.format == "device-card"
    assert all("\n" not in finding.message for finding in result.findings)


@cache
def card_of(rounds: int) -> Document:
    return probed(rounds)


@st.composite
def recorded(draw: st.DrawFn) -> list[list[float]]:
    """Times of three sizes, in us, one a round."""
    rounds = draw(st.integers(1, 8))
    return [draw(st.lists(st.floats(0.1, 1e4), min_size=rounds, max_size=rounds)) for _ in range(3)]


@given(rounds_us=recorded())
def test_whatever_the_rounds_were_the_card_of_them_is_valid(rounds_us: list[list[float]]) -> None:
    rates = [
        MemoryRate(
            operation=operation,
            method="m",
            bytes=size,
            moved_bytes=size * (2 if operation is Operation.COPY else 1),
            sets=9,
            time=fit.times(values),
            rate=fit.rates(size * (2 if operation is Operation.COPY else 1), values),
        )
        for operation in Operation
        for size, values in zip((2**20, 3 * 2**20, 2**24), rounds_us, strict=True)
    ]
    card = MeasuredCard.of(card_of(len(rounds_us[0])))
    assert found(replace(card, memory=tuple(rates), memory_models=memory_models(rates)).document()) == []


@given(
    sizes=st.lists(st.integers(1, 40), min_size=2, max_size=6, unique=True),
    latency_us=st.floats(-5.0, 50.0),
    rate=st.floats(1e9, 1e13),
    noise=st.lists(st.floats(0.9, 1.1), min_size=6, max_size=6),
)
def test_the_line_is_the_one_that_numpy_fits(sizes: list[int], latency_us: float, rate: float, noise: list[float]) -> None:
    moved = [float(size * 2**24) for size in sizes]
    times = [max(0.1, latency_us + size / rate * 1e6) * factor for size, factor in zip(moved, noise, strict=False)]
    line = fitted(list(zip(moved, times, strict=True)))
    assert line is not None
    slope, offset = np.polyfit(np.array(moved) / max(moved), times, 1, w=1 / np.array(times))
    near = 1e-6 * max(times)
    assert (line.latency_us, line.growth_us) == (pytest.approx(offset, abs=near), pytest.approx(slope, abs=near))
    residuals = [abs(offset + slope * size / max(moved) - time) / time for size, time in zip(moved, times, strict=True)]
    assert line.worst_residual == pytest.approx(max(residuals), rel=1e-6, abs=1e-6)
    assert line.bytes_per_s * line.growth_us == pytest.approx(max(moved) * 1e6)


@pytest.mark.parametrize("points", [[], [(1.0, 1.0)], [(1.0, 1.0), (1.0, 2.0)], [(1.0, 0.0), (2.0, 1.0)]])
def test_no_line_where_there_is_none(points: list[tuple[float, float]]) -> None:
    assert fitted(points) is None


def test_the_command_calls_a_card_a_card(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "card.json"
    path.write_text(json.dumps(CARD))
    assert main([str(path)]) == 0
    path.write_text(json.dumps(CARD | {"took_s": 0}))
    assert main([str(path)]) == 1
    out, _ = capsys.readouterr()
    assert out == f"{path}: ok (device card)\n{path}: $.took_s: E moments: took_s is 0, and the spin-up alone takes 1.5\n"


@pytest.mark.parametrize("command", ["compare", "table"])
def test_other_commands_say_that_a_card_is_no_report(command: str, tmp_path: Path, run_cli: Any) -> None:
    path = tmp_path / "card.json"
    path.write_text(json.dumps(CARD))
    result = run_cli(command, path, *([path] if command == "compare" else []))
    assert (result.returncode, result.stderr.count("\n")) == (2, 1)
    assert "no valid comparison report: it is a device card" in result.stderr
