"""Rates, shares of peak and impossible claims: the rule, the ledger and the report that follow it, the validator that rebuilds it."""

import copy
import json
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from plan_fakes import GPU, FakeMlp, make_registry
from probe_fakes import FakeGpu
from test_plan_build import TIMING, config

from mkframe import canonical
from mkframe.errors import DeviceError, PluginError
from mkframe.model.checks import all_checks, checks_before_timing
from mkframe.model.device import ClockReading, DeviceCard
from mkframe.model.device_card import MeasuredCard, Operation
from mkframe.model.launch import LaunchRecord
from mkframe.model.outcome import Outcome
from mkframe.model.peaks import DatasheetPeaks, MeasuredPeaks, PeaksRecord
from mkframe.model.plan import RunPlan
from mkframe.model.precision import PRECISIONS, Precision
from mkframe.model.report import CheckRecord, CostRecord
from mkframe.peaks import Claim, above_measured, flops_of, impossible, is_rotated, rates
from mkframe.plan import build_plan
from mkframe.plugin import Cost
from mkframe.plugin.answers import check_cost
from mkframe.plugin.contract import ContractBreach
from mkframe.probe.cards import peak_rate
from mkframe.probe.session import probe_gpu
from mkframe.report.build import build_report
from mkframe.report.samples import pack
from mkframe.report.table import table_of
from mkframe.run import messages as m
from mkframe.run.coordinator import check_card
from mkframe.run.journal_codec import Entry, decode, encode
from mkframe.run.ledger import Ledger
from mkframe.settings.nodes import ColdMethod, DeviceConfig, DeviceKind, EngineConfig, Protocol
from mkframe.stamp import Source
from mkframe.validate import Finding, Severity, check_document, validate

CARD = DeviceCard(
    id="paper",
    name="Fake GPU",
    compute_capability="9.0",
    multiprocessors=4,
    memory_bytes_per_s=4.8e12,
    fp16_flops=990e12,
    tf32_flops=495e12,
    fp32_flops=67e12,
    source="a sheet",
)
SHEET = DatasheetPeaks(memory_bytes_per_s=4.8e12, flops_per_s=990e12, source="a sheet")
MEASURED = MeasuredPeaks(card_sha256="0" * 64, driver="1", read_bytes_per_s=4.5e12, write_bytes_per_s=None, copy_bytes_per_s=None)
L2 = 50_000_000
ROTATE = {"protocol": Protocol.COLD, "method": ColdMethod.ROTATE, "k1": 20, "slope_us": 200.0, "sets": 4, "footprint": 5.0}
EVICT = ROTATE | {"method": ColdMethod.EVICT}


def claim(bytes: int = 0, flops: int = 0, p50_ms: float = 1.0, rotated: bool = True, l2_bytes: int | None = L2) -> Claim:
    return Claim(bytes=bytes, flops=flops, p50_ms=p50_ms, rotated=rotated, l2_bytes=l2_bytes)


def refused(one: Claim, sheet: DatasheetPeaks = SHEET) -> bool:
    return impossible(one, sheet, "paper", "fp16") is not None


@pytest.mark.parametrize(("name", "rate"), [("fp16", 990e12), ("bf16", 990e12), ("tf32", 495e12), ("fp32", 67e12)])
def test_every_precision_has_its_rate(name: str, rate: float) -> None:
    assert flops_of(PRECISIONS[name], CARD) == rate


@pytest.mark.parametrize(
    ("changes", "rate"),
    [
        ({"weight": "bfloat16"}, 990e12),
        ({"weight": "float32"}, 67e12),
        ({"accumulate": "float16"}, None),
        ({"input": "float64"}, None),
        ({"input": "int32"}, None),
        ({"products": "tf32"}, None),
    ],
)
def test_a_contract_of_ones_own_has_the_rate_of_its_operands_or_none(changes: Mapping[str, str], rate: float | None) -> None:
    own: Precision = replace(PRECISIONS["fp16"], id="own", **changes)
    assert flops_of(own, CARD) == rate


amounts = st.integers(0, 2**63 - 1)
times = st.floats(1e-6, 1e6)
peaks = st.floats(1.0, 1e18)
MARGIN = Fraction(1, 10**12)  # a rate nearer to the peak than this is a matter of rounding


def exactly(one: Claim, sheet: DatasheetPeaks) -> bool | None:
    """The rule in rational arithmetic, None near the edge."""
    seconds = Fraction(one.p50_ms) / 1000
    moved = one.bytes if one.rotated else None if one.l2_bytes is None else max(one.bytes - one.l2_bytes, 0)
    above = False
    for amount, peak in ((one.flops, sheet.flops_per_s), (moved, sheet.memory_bytes_per_s)):
        if amount is None or peak is None:
            continue
        ratio = Fraction(amount) / (Fraction(peak) * seconds)
        if abs(ratio - 1) < MARGIN:
            return None
        above = above or ratio > 1
    return above


claims = st.builds(
    Claim, bytes=amounts, flops=amounts, p50_ms=times | st.just(1e-300), rotated=st.booleans(), l2_bytes=st.none() | st.integers(0, 2**40)
)
sheets = st.builds(DatasheetPeaks, memory_bytes_per_s=peaks, flops_per_s=st.none() | peaks, source=st.just(""))


@given(claims, sheets)
def test_what_is_above_the_datasheet_is_refused_and_nothing_else(one: Claim, sheet: DatasheetPeaks) -> None:
    expected = exactly(one, sheet)
    assume(expected is not None)
    assert refused(one, sheet) is expected


@given(claims, sheets, st.floats(0.0, 1.0))
def test_more_work_in_less_time_is_never_more_credible(one: Claim, sheet: DatasheetPeaks, share: float) -> None:
    assume(refused(one, sheet))
    assert refused(replace(one, bytes=2 * one.bytes, flops=2 * one.flops), sheet)
    assert refused(replace(one, p50_ms=share * one.p50_ms), sheet)
    assert refused(replace(one, rotated=True), sheet)


@given(claims, st.floats(1.0, 1e12), st.floats(1.0, 1e6))
def test_a_share_of_at_most_one_is_no_reason(one: Claim, least: float, slack: float) -> None:
    seconds = one.p50_ms / 1e3
    assume(max(one.bytes, one.flops) / seconds * slack < 1e300)
    memory, compute = (max(amount / seconds * slack * (1 + 1e-12), least) for amount in (one.bytes, one.flops))
    sheet = DatasheetPeaks(memory_bytes_per_s=memory, flops_per_s=compute, source="")
    assert not refused(one, sheet)
    found = rates(one, PeaksRecord(datasheet=sheet, measured=None))
    assert found is not None
    assert found.compute_share is not None
    assert found.compute_share <= 1
    assert found.memory_share is None or found.memory_share <= 1


SHORT = ": the time is too short for the work"
NOT_COLD = f"{SHORT}, or the caches were not cold"


@pytest.mark.parametrize(
    ("one", "reason"),
    [
        (claim(bytes=5_310_000_000), f"moves 5.31 TB/s, and the datasheet of paper promises 4.80 TB/s{NOT_COLD}"),
        (claim(bytes=4_800_100_000), f"moves 4.8001 TB/s, and the datasheet of paper promises 4.8000 TB/s{NOT_COLD}"),
        (
            claim(bytes=5_310_000_000 + L2, rotated=False),
            f"moves 5.31 TB/s beyond what L2 can hold, and the datasheet of paper promises 4.80 TB/s{SHORT}",
        ),
        (
            claim(flops=1_203_000_000_000),
            f"computes 1203.00 TFLOP/s, and the datasheet of paper promises 990.00 TFLOP/s in fp16{SHORT}",
        ),
        (claim(flops=7, p50_ms=0.0), f"computes 7 FLOP in no time, and the datasheet of paper promises 990.00 TFLOP/s in fp16{SHORT}"),
        (claim(bytes=7, p50_ms=5e-324), f"moves 7 B in no time, and the datasheet of paper promises 4.80 TB/s{NOT_COLD}"),
    ],
)
def test_a_reason_states_rate_and_peak(one: Claim, reason: str) -> None:
    assert impossible(one, SHEET, "paper", "fp16") == reason


def test_a_warm_call_may_be_served_by_l2_and_one_of_unknown_l2_is_left_alone() -> None:
    fast = claim(bytes=L2, p50_ms=1e-6, rotated=False)
    assert not refused(fast)
    assert refused(replace(fast, rotated=True))
    assert refused(replace(fast, bytes=L2 + 10**6))
    assert not refused(replace(fast, bytes=10**15, l2_bytes=None))


@pytest.mark.parametrize(("state", "method"), [("cold", "evict"), ("cold", None), ("warm", None), ("warm", "rotate")])
def test_only_rotation_makes_every_byte_cross_the_bus(state: str, method: str | None) -> None:
    assert is_rotated("cold", "rotate")
    assert not is_rotated(state, method)


def test_a_cold_rate_above_the_measured_read_peak_is_told() -> None:
    told = above_measured(claim(bytes=4_600_000_000), MEASURED)
    assert told == "moves 4.60 TB/s with cold caches, and the read peak measured on this device is 4.50 TB/s"
    assert above_measured(claim(bytes=4_400_000_000), MEASURED) is None
    assert above_measured(claim(bytes=4_600_000_000, rotated=False), MEASURED) is None
    assert above_measured(claim(bytes=4_600_000_000), replace(MEASURED, read_bytes_per_s=None)) is None


def test_rates_and_shares() -> None:
    one = claim(bytes=2_400_000_000, flops=99_000_000_000)
    both = PeaksRecord(datasheet=SHEET, measured=MEASURED)
    found = rates(one, both)
    assert found is not None
    assert (found.bytes_per_s, found.flops_per_s) == pytest.approx((2.4e12, 99e12))
    assert (found.compute_share, found.memory_share, found.read_share) == pytest.approx((0.1, 0.5, 24 / 45))
    warm = rates(replace(one, rotated=False), both)
    assert warm == replace(found, memory_share=None, read_share=None)
    unknown = replace(found, compute_share=None, memory_share=None, read_share=None)
    assert rates(one, None) == rates(one, PeaksRecord(datasheet=None, measured=None)) == unknown
    assert rates(replace(one, p50_ms=0.0), both) is None
    assert rates(replace(one, p50_ms=5e-324), both) is None


def test_a_cost_that_no_report_can_hold_is_refused() -> None:
    assert check_cost(Cost(bytes=2**63 - 1, flops=0)) == Cost(bytes=2**63 - 1, flops=0)
    with pytest.raises(ContractBreach, match=r"gives flops .*; it must be below 2\^63"):
        check_cost(Cost(bytes=0, flops=10**400))


def test_a_workload_that_cannot_say_what_a_call_costs_is_refused_before_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeMlp, "cost", lambda self, case, precision: 5)
    with pytest.raises(PluginError, match=r"workload residual_mlp: cost\(\) must return a Cost"):
        build_plan(config(), make_registry(), GPU)


# From here on: whole runs on paper. Every engine computes 2 GFLOP on 2 GB; what differs is how long it says that it took.

BYTES, FLOPS = 2_000_000_000, 2_000_000_000
LAUNCH = LaunchRecord(
    name="k",
    grid=(1, 1, 1),
    block=(32, 1, 1),
    cluster=(1, 1, 1),
    shared_bytes=0,
    cooperative=False,
    programmatic=False,
    registers=16,
    local_bytes=0,
)
US = {"base-graph": 500.0, "board-graph": 410.0}
CHECK = CheckRecord(max_abs_error=0.0, mean_abs_error=0.0, violations=0, elements=8, rtol=1e-4, atol=1e-4, rounding_rows=0)


def planned(timing: Mapping[str, Any], card: DeviceCard | None = CARD, named: bool = True) -> RunPlan:
    """Two engines on one case; a round of 8 samples in each of two processes."""
    chosen = config(
        engine={name: EngineConfig() for name in US},
        shape={"smoke": {"cases": [{"rows": 2, "channels": 4, "hidden": 8}]}},
        device=DeviceConfig(kind=DeviceKind.CUDA, card=card if named else None),
        timing=replace(TIMING, rounds=2, samples_per_round=8, processes=2, **timing),
    )
    plan = build_plan(chosen, make_registry(), replace(GPU, card=card, driver="999.1"))  # that of the measured card
    return replace(plan, cases=tuple(replace(case, cost=CostRecord(bytes=BYTES, flops=FLOPS)) for case in plan.cases))


def hello(multiprocessors: int = 4) -> m.Hello:
    return m.Hello(
        pid=1,
        name="Fake GPU",
        multiprocessors=multiprocessors,
        l2_bytes=L2,
        cuda="13.0",
        threads=None,
        packages={"torch": "2.11.0"},
        floors={
            (name, clock): np.full(3, us / 1e3)
            for name, us in (("empty-pair", 1.25), ("empty-kernel", 2.7), ("empty-kernel-graph", 2.6), ("empty-kernel-slope", 0.7))
            for clock in ("stream", "host")
        },
        step_ms=None,
    )


def run_on_paper(plan: RunPlan, microseconds: Mapping[str, float], seen: m.Hello | None = None) -> Ledger:
    """A finished run whose events went through the journal, as those of a resumed run do."""
    case, timing = plan.cases[0], plan.timing
    checks = all_checks("cuda", chained=timing.chained)
    facts = {"k1": timing.k1, "k2": timing.k1 + 1000, "sets": max(timing.sets, 2), "edges": "full"} if timing.chained else {}
    events: list[tuple[int, m.Event]] = []
    for process in range(2):
        events.append((process, seen or hello()))
        for engine, us in microseconds.items():
            before = checks_before_timing("cuda")
            ready = m.CellReady(
                engine=engine,
                check=CHECK,
                checks=before,
                bind_s=0.1,
                check_s=0.1,
                capture_s=0.1,
                nodes=("k",),
                kernels=(LAUNCH,),
                facts=facts,
            )
            times = us / 1e3 * (1 + 1e-3 * np.arange(-4, 4))
            block = m.BlockDone(engine=engine, round=process, stream_ms=times, host_ms=times + 0.01, late=0)
            events += [(process, ready), (process, block), (process, m.CellClosed(engine=engine, check=CHECK, checks=checks))]
        clock = ClockReading(sm_clock_mhz=1980.0)
        events.append((process, m.RoundDone(round=process, before=clock, after=clock)))
    ledger = Ledger(plan, Source(commit="1" * 40, dirty=False), {"mkframe/__init__.py": "0" * 64})
    for process, event in events:
        place = {} if isinstance(event, m.Hello) else {"set": case.set, "case": case.index}
        entry = Entry(worker=process, process=process, event=event, **place)
        ledger.apply(decode(json.loads(canonical.line(encode(entry))), "here"))
    return ledger


def outcomes(ledger: Ledger) -> dict[str, Outcome]:
    return {engine: outcome for (_, _, engine), outcome in ledger.outcomes().items()}


def document_of(ledger: Ledger, measured: MeasuredCard | None = None) -> dict[str, Any]:
    report = build_report(ledger, pack(ledger)[0], measured)
    assert report is not None
    return report.document()


def cells_of(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {cell["engine"]: cell for cell in document["mkframe"]["cells"]}


def figures(found: tuple[Finding, ...]) -> list[tuple[str, str, str]]:
    return [(str(finding.severity), finding.rule, finding.pointer) for finding in found]


@pytest.fixture(scope="module")
def measured() -> MeasuredCard:
    gpu = FakeGpu()
    return probe_gpu(gpu, rounds=2, now=gpu.now)


def test_an_engine_that_claims_more_than_the_datasheet_is_rejected_and_an_honest_one_is_not() -> None:
    ledger = run_on_paper(planned(ROTATE), US | {"board-graph": 376.5})
    assert outcomes(ledger) == {"base-graph": Outcome.PASSED, "board-graph": Outcome.REJECTED}
    document = document_of(ledger)
    cell = cells_of(document)["board-graph"]
    assert cell["reason"].startswith("moves 5.31 TB/s, and the datasheet of paper promises 4.80 TB/s")
    assert (cell["outcome"], cell["rates"], cell["interval"]) == ("rejected", None, None)
    assert document["smoke"][0]["engines"]["board-graph"] == {"passed": False, "replay_changed_input": False}
    assert document["mkframe"]["verdicts"] == []
    assert check_document(document).findings == ()


@pytest.mark.parametrize(("timing", "slowest_refused_us"), [(ROTATE, 416.0), (EVICT, 405.0), ({}, 405.0)], ids=["rotate", "evict", "warm"])
def test_where_the_edge_lies(timing: Mapping[str, Any], slowest_refused_us: float) -> None:
    for us, expected in ((slowest_refused_us, Outcome.REJECTED), (slowest_refused_us * 1.01, Outcome.PASSED)):
        assert outcomes(run_on_paper(planned(timing), US | {"board-graph": us}))["board-graph"] is expected


def test_operations_are_held_against_the_rate_of_the_precision() -> None:
    slow = replace(CARD, fp16_flops=4.5e12)
    ledger = run_on_paper(planned({}, slow), US)
    assert outcomes(ledger) == {"base-graph": Outcome.PASSED, "board-graph": Outcome.REJECTED}
    reason = cells_of(document_of(ledger))["board-graph"]["reason"]
    assert reason.startswith("computes 4.88 TFLOP/s, and the datasheet of paper promises 4.50 TFLOP/s in fp16")


def test_a_cell_is_not_rejected_before_it_is_whole() -> None:
    ledger = run_on_paper(planned(ROTATE), US | {"board-graph": 1.0})
    state = ledger.cells["smoke", 0, "board-graph"]
    del state.blocks[1]
    assert ledger.outcome(state) is Outcome.INCOMPLETE


def test_without_a_datasheet_nothing_is_rejected_and_no_share_is_made_up() -> None:
    document = document_of(run_on_paper(planned(ROTATE, card=None), US | {"board-graph": 1.0}))
    cell = cells_of(document)["board-graph"]
    assert document["mkframe"]["device"]["peaks"] is None
    assert cell["outcome"] == "passed"
    assert cell["rates"]["bytes_per_s"] == pytest.approx(2e15, rel=1e-3)
    assert [cell["rates"][name] for name in ("compute_share", "memory_share", "read_share")] == [None, None, None]
    assert check_document(document).findings == ()


def test_a_card_found_by_name_of_a_device_with_other_multiprocessors_is_not_used() -> None:
    plan = planned(ROTATE, named=False)
    check_card(plan, hello(multiprocessors=5))
    with pytest.raises(DeviceError, match=r"card paper has 4 multiprocessors, this Fake GPU has 5; use device=cuda"):
        check_card(planned(ROTATE), hello(multiprocessors=5))
    check_card(planned(ROTATE), hello())
    document = document_of(run_on_paper(plan, US | {"board-graph": 1.0}, hello(multiprocessors=5)))
    assert (document["mkframe"]["device"]["card"], document["mkframe"]["device"]["peaks"]) == (None, None)
    assert cells_of(document)["board-graph"]["outcome"] == "passed"


def test_shares_can_be_computed_again_from_the_report_alone(measured: MeasuredCard) -> None:
    document = document_of(run_on_paper(planned(ROTATE), US | {"board-graph": 450.0}), measured)
    peaks = document["mkframe"]["device"]["peaks"]
    assert peaks["datasheet"] == {"memory_bytes_per_s": 4.8e12, "flops_per_s": 990e12, "source": "a sheet"}
    assert peaks["measured"]["card_sha256"] == canonical.digest(measured.document())
    assert peaks["measured"]["driver"] == measured.device.driver
    fastest: dict[str, float] = {}
    for rate in measured.document()["memory"]:
        fastest[rate["operation"]] = max(fastest.get(rate["operation"], 0.0), rate["rate"]["median_bytes_per_s"])
    assert {name: peaks["measured"][f"{name}_bytes_per_s"] for name in ("read", "write", "copy")} == fastest
    for engine, cell in cells_of(document).items():
        seconds = document["smoke"][0]["engines"][engine]["stream_summary"]["p50_ms"] / 1e3
        assert cell["rates"] == pytest.approx(
            {
                "bytes_per_s": cell["cost"]["bytes"] / seconds,
                "flops_per_s": cell["cost"]["flops"] / seconds,
                "compute_share": cell["cost"]["flops"] / seconds / 990e12,
                "memory_share": cell["cost"]["bytes"] / seconds / 4.8e12,
                "read_share": cell["cost"]["bytes"] / seconds / fastest["read"],
            },
            rel=1e-12,
        )


@pytest.mark.parametrize("timing", [EVICT, {}], ids=["evict", "warm"])
def test_a_warm_rate_is_no_share_of_memory(timing: Mapping[str, Any], measured: MeasuredCard) -> None:
    document = document_of(run_on_paper(planned(timing), US), measured)
    for cell in cells_of(document).values():
        assert cell["rates"]["compute_share"] > 0
        assert (cell["rates"]["memory_share"], cell["rates"]["read_share"]) == (None, None)
    assert all(cell["share"] == "" for cell in _table(document).values())


def test_a_rate_above_the_measured_peak_is_a_warning_and_a_sentence(measured: MeasuredCard) -> None:
    read = peak_rate(measured, Operation.READ)
    assert read is not None
    least_us = BYTES / read.rate.median_bytes_per_s * 1e6
    honest = {"base-graph": 1.2 * least_us, "board-graph": 1.01 * least_us}
    ledger = run_on_paper(planned(ROTATE), honest | {"board-graph": 0.98 * least_us})
    document = document_of(ledger, measured)
    assert outcomes(ledger)["board-graph"] is Outcome.PASSED
    result = check_document(document)
    assert result.ok
    assert figures(result.findings) == [("W", "above-measured-peak", "/mkframe/cells/1")]
    (sentence,) = [text for text in document["limitations"] if "read peak measured" in text]
    assert sentence.startswith(
        "Faster than the read peak measured on this device: 1 of 2 cells with rates, most of all board-graph on smoke[0]"
    )
    slower = document_of(run_on_paper(planned(ROTATE), honest), measured)
    assert check_document(slower).findings == ()
    assert not [text for text in slower["limitations"] if "read peak measured" in text]


def test_a_report_whose_figures_are_impossible_is_wrong(tmp_path: Path) -> None:
    ledger = run_on_paper(planned(ROTATE, card=None), US | {"board-graph": 376.5})
    forged = document_of(ledger)
    forged["mkframe"]["device"] |= {"card": "paper", "peaks": {"datasheet": _sheet(), "measured": None}}
    for engine, cell in cells_of(forged).items():
        cell["rates"] |= {
            "compute_share": cell["rates"]["flops_per_s"] / 990e12,
            "memory_share": cell["rates"]["bytes_per_s"] / 4.8e12,
        }
        assert cell["outcome"] == "passed", engine
    result = check_document(forged)
    assert not result.ok
    assert figures(result.findings) == [("E", "impossible-rate", "/mkframe/cells/1")]
    assert result.findings[0].message.startswith("board-graph passed, and moves 5.31 TB/s")
    record, data = pack(ledger)
    (tmp_path / record.file).write_bytes(data)
    (tmp_path / "report.json").write_text(canonical.dumps(forged), encoding="utf-8")
    assert validate(tmp_path / "report.json").findings == result.findings


def _sheet() -> dict[str, Any]:
    return {"memory_bytes_per_s": 4.8e12, "flops_per_s": 990e12, "source": "a sheet"}


@pytest.mark.parametrize("name", ["bytes_per_s", "flops_per_s", "compute_share", "memory_share"])
@pytest.mark.parametrize("factor", [1 + 1e-9, 0.5])
def test_a_rate_that_does_not_follow_is_wrong(name: str, factor: float) -> None:
    document = document_of(run_on_paper(planned(ROTATE), US | {"board-graph": 450.0}))
    assert check_document(document).findings == ()
    edited = copy.deepcopy(document)
    edited["mkframe"]["cells"][0]["rates"][name] *= factor
    assert figures(check_document(edited).findings) == [("E", "rates", "/mkframe/cells/0/rates")]


@pytest.mark.parametrize(
    "change",
    [
        lambda block: block["cells"][0]["rates"].update(read_share=0.5),
        lambda block: block["cells"][0]["rates"].update(compute_share=None),
        lambda block: block["cells"][0].update(rates=None),
        lambda block: block["device"]["peaks"]["datasheet"].update(memory_bytes_per_s=5e12),
        lambda block: block["config"]["timing"].update(method="evict"),
        lambda block: block["config"].update(timing=[]),
        lambda block: block["cells"][0]["cost"].update(bytes=1),
        lambda block: block["cells"][0].update(cost=None),
    ],
)
def test_shares_of_other_peaks_states_and_costs_are_wrong(change: Any) -> None:
    edited = document_of(run_on_paper(planned(ROTATE), US | {"board-graph": 450.0}))
    change(edited["mkframe"])
    edited["mkframe"]["config_sha256"] = canonical.digest(edited["mkframe"]["config"])
    found = check_document(edited).findings
    assert "rates" in {finding.rule for finding in found}
    assert {finding.rule for finding in found} <= {
        "rates",
        "config",
        "settings",
        "evidence",
        "chains",
    }  # what changed is found to be changed, too
    assert all(finding.severity is Severity.ERROR for finding in found)


def test_a_report_without_rates_and_peaks_is_held_against_nothing() -> None:
    older = document_of(run_on_paper(planned(ROTATE), US))
    del older["mkframe"]["device"]["peaks"]
    for cell in older["mkframe"]["cells"]:
        del cell["rates"], cell["kernels"], cell["twin"]
    older["recorded_on"] = "2026-11-30"
    assert check_document(older).findings == ()
    assert _table(older)["base-graph"]["share"] == ""


def _table(document: dict[str, Any]) -> dict[str, dict[str, str]]:
    (row,) = table_of(document).rows
    return {engine: {"share": cell.share} for engine, cell in row.cells.items()}


def test_the_table_shows_shares_of_cold_reports() -> None:
    document = document_of(run_on_paper(planned(ROTATE), {"base-graph": 500.0, "board-graph": 450.0}))
    assert _table(document) == {"base-graph": {"share": "83 % of memory peak"}, "board-graph": {"share": "93 % of memory peak"}}
