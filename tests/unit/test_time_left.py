"""The time left, on simulated runs whose true end is known."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mkframe.cli.progress import Progress, left_text
from mkframe.plan.estimate import CaseCost, CellCost, Estimate
from mkframe.run.time_left import Step, TimeLeft, step_of

Drop = tuple[str, int, str]


@dataclass(frozen=True, kw_only=True)
class Event:
    """One step of a simulated run: what begins, and how long it takes."""

    step: Step
    seconds: float
    process: int
    case: Any = None
    engine: str | None = None


@dataclass
class Run:
    """What was expected, and what then happened."""

    expected: Estimate
    events: list[Event] = field(default_factory=list)


def simulated(seed: int, *, cases: int, engines: int, processes: int, rounds: int, missed_by: float, compile_s: float) -> Run:
    """Shapes whose calls differ a thousandfold; expectations that are off by a factor for every kind of step and every engine
    (up to `missed_by`), and by 20 % more for each part alone; one engine that takes `compile_s` to bind; blocks that scatter by 5 %."""
    draw = np.random.default_rng(seed)

    def off(sigma: float) -> float:
        return float(np.exp(draw.normal(0, sigma)))

    def factor() -> float:
        return float(missed_by ** draw.uniform(-1, 1))

    names = [f"e{index}" for index in range(engines)]
    call_s = {(case, name): 1e-5 * 10 ** draw.uniform(0, 3) * off(0.5) for case in range(cases) for name in names}
    bind_s = {(case, name): (compile_s if name == "e0" else 0.1) * off(0.3) for case in range(cases) for name in names}
    draw_s = {case: 0.05 * 10 ** draw.uniform(0, 1.5) for case in range(cases)}
    start_s = 5.0
    wrong = {(kind, name): factor() for kind in ("bind", "block") for name in names}
    wrong_draw, wrong_start = factor(), factor()
    close_s = 0.02
    costs = tuple(
        CaseCost(
            case=SimpleNamespace(key=("set", case)),  # type: ignore[arg-type]
            draw_s=draw_s[case] * wrong_draw * off(0.2),
            cells=tuple(
                CellCost(
                    engine=name,
                    bind_s=bind_s[case, name] * wrong["bind", name] * off(0.2),
                    check_s=6 * close_s,
                    warm_up_s=20 * call_s[case, name] * wrong["block", name] * off(0.2),
                    timing_s=200 * call_s[case, name] * wrong["block", name] * off(0.2),
                    statistics_s=0.0,
                    known=False,
                )
                for name in names
            ),
        )
        for case in range(cases)
    )
    run = Run(Estimate(processes=processes, rounds=rounds, start_s=start_s * wrong_start, cases=costs))
    for process in range(processes):
        run.events.append(Event(step=Step.START, seconds=start_s * off(0.05), process=process))
        for case in range(cases):
            key = ("set", case)
            run.events.append(Event(step=Step.DRAW, seconds=draw_s[case] * off(0.05), process=process, case=key))
            for name in names:
                bound = bind_s[case, name] * off(0.05) + 6 * close_s
                run.events.append(Event(step=Step.BIND, seconds=bound, process=process, case=key, engine=name))
            for _ in range(rounds // processes):
                for name in names:
                    block = 220 * call_s[case, name] * off(0.05)
                    run.events.append(Event(step=Step.BLOCK, seconds=block, process=process, case=key, engine=name))
            for name in names:
                run.events.append(Event(step=Step.CLOSE, seconds=close_s, process=process, case=key, engine=name))
    return run


def followed(run: Run) -> Iterator[tuple[float, float, float]]:
    """(share of the time gone, expected seconds left, true seconds left) at the middle of every step."""
    total = sum(event.seconds for event in run.events)
    now = 0.0
    estimator = TimeLeft(run.expected, now)
    for event in run.events:
        if event.step is Step.START:
            estimator.starting(event.process, now)
        else:
            estimator.enter(event.step, event.case, event.engine, now)
        middle = now + event.seconds / 2
        yield middle / total, estimator.left_s(middle), total - middle
        now += event.seconds


SCENES = {
    "one engine": {"cases": 40, "engines": 1, "processes": 3, "rounds": 6, "missed_by": 3.0, "compile_s": 0.1},
    "many shapes": {"cases": 60, "engines": 4, "processes": 3, "rounds": 6, "missed_by": 4.0, "compile_s": 0.1},
    "compile-heavy": {"cases": 40, "engines": 3, "processes": 3, "rounds": 6, "missed_by": 4.0, "compile_s": 20.0},
    "one process": {"cases": 40, "engines": 3, "processes": 1, "rounds": 5, "missed_by": 3.0, "compile_s": 5.0},
    "many rounds": {"cases": 9, "engines": 4, "processes": 3, "rounds": 90, "missed_by": 4.0, "compile_s": 10.0},
}


@pytest.mark.parametrize("scene", SCENES)
def test_within_a_fifth_after_the_first_tenth(scene: str) -> None:
    """At every step between the first tenth and nine tenths of ten runs."""
    for seed in range(10):
        run = simulated(seed, **SCENES[scene])  # type: ignore[arg-type]
        for share, left, true in followed(run):
            if 0.1 <= share <= 0.9:
                assert abs(left - true) <= 0.2 * true, (seed, share, left, true)


def test_the_estimate_alone_is_not_within_a_fifth() -> None:
    """The measurements make the difference: these runs are far from what was expected of them."""
    misses = []
    for seed in range(10):
        run = simulated(seed, **SCENES["compile-heavy"])  # type: ignore[arg-type]
        total = sum(event.seconds for event in run.events)
        misses.append(abs(run.expected.total_s - total) / total)
    assert np.median(misses) > 0.3


@given(seed=st.integers(0, 2**32), cases=st.integers(1, 6), engines=st.integers(1, 3), processes=st.integers(1, 3))
@settings(max_examples=30)
def test_a_perfect_estimate_stays_perfect(seed: int, cases: int, engines: int, processes: int) -> None:
    """Where every part takes what was expected of it, the time left is right from the first step to the last."""
    run = simulated(seed, cases=cases, engines=engines, processes=processes, rounds=2 * processes, missed_by=1.0, compile_s=1.0)
    by_case = {cost.case.key: cost for cost in run.expected.cases}

    def exact(event: Event) -> float:
        if event.step is Step.START:
            return run.expected.start_s
        cost = by_case[event.case]
        if event.step is Step.DRAW:
            return cost.draw_s
        cell = next(cell for cell in cost.cells if cell.engine == event.engine)
        times = {Step.BIND: cell.bind_s + cell.check_s, Step.BLOCK: cell.warm_up_s + cell.timing_s, Step.CLOSE: cell.check_s / 6}
        return times[event.step]

    perfect = Run(
        run.expected,
        [Event(step=e.step, seconds=exact(e), process=e.process, case=e.case, engine=e.engine) for e in run.events],
    )
    for _, left, true in followed(perfect):
        assert left == pytest.approx(true, rel=1e-6, abs=1e-6)


def small(engines: int = 2, processes: int = 2, rounds: int = 4, statistics_s: float = 0.0) -> Estimate:
    """Two cases; start 10 s, draw 1 s, bind and check 2 s, a block 3 s, close 1/6 s."""
    cells = tuple(
        CellCost(engine=f"e{i}", bind_s=1.0, check_s=1.0, warm_up_s=1.0, timing_s=2.0, statistics_s=statistics_s, known=True)
        for i in range(engines)
    )
    cases = tuple(CaseCost(case=SimpleNamespace(key=("set", index)), draw_s=1.0, cells=cells) for index in range(2))  # type: ignore[arg-type]
    return Estimate(processes=processes, rounds=rounds, start_s=10.0, cases=cases)


def by_hand(*, starts: int = 2, draws: int = 4, binds: int = 8, blocks: int = 16, closes: int = 8) -> float:
    return 10.0 * starts + draws + 2.0 * binds + 3.0 * blocks + closes / 6


def test_before_anything_it_is_the_estimate() -> None:
    assert TimeLeft(small(), 100.0).left_s(100.0) == pytest.approx(by_hand())
    assert TimeLeft(small(), 100.0).left_s(104.0) == pytest.approx(by_hand() - 4)


def test_statistics_come_last() -> None:
    assert TimeLeft(small(statistics_s=0.5), 0.0).left_s(0.0) == pytest.approx(by_hand() + 4 * 4 * 0.5)


def test_a_step_that_takes_longer_than_expected_is_as_good_as_done() -> None:
    estimator = TimeLeft(small(), 0.0)
    assert estimator.left_s(50.0) == pytest.approx(by_hand(starts=1))


def test_a_cell_that_fails_takes_its_blocks_away() -> None:
    estimator = TimeLeft(small(), 0.0)
    estimator.drop(("set", 0), "e1")
    assert estimator.left_s(0.0) == pytest.approx(by_hand(binds=6, blocks=12, closes=6))
    estimator.drop(("set", 0), None)
    assert estimator.left_s(0.0) == pytest.approx(by_hand(draws=2, binds=4, blocks=8, closes=4))
    estimator.drop(("set", 7), "e1")
    assert estimator.left_s(0.0) == pytest.approx(by_hand(draws=2, binds=4, blocks=8, closes=4))


def walked(estimator: TimeLeft, now: float = 0.0) -> float:
    """Start, draw and bind the first case as expected."""
    estimator.starting(0, now)
    now += 10.0
    estimator.enter(Step.DRAW, ("set", 0), None, now)
    now += 1.0
    for engine in ("e0", "e1"):
        estimator.enter(Step.BIND, ("set", 0), engine, now)
        now += 2.0
    return now


def test_a_hang_is_no_measure_for_other_blocks() -> None:
    estimator = TimeLeft(small(), 0.0)
    now = walked(estimator)
    estimator.enter(Step.BLOCK, ("set", 0), "e1", now)
    now += 600.0
    estimator.drop(("set", 0), "e1")
    assert estimator.left_s(now) == pytest.approx(by_hand(starts=1, draws=3, binds=5, blocks=12, closes=6))


def test_a_restart_after_a_fault_opens_the_case_again() -> None:
    estimator = TimeLeft(small(), 0.0)
    now = walked(estimator)
    estimator.enter(Step.BLOCK, ("set", 0), "e1", now)
    estimator.drop(("set", 0), "e1")
    estimator.starting(0, now)
    assert estimator.left_s(now) == pytest.approx(by_hand(starts=2, draws=3, binds=5, blocks=12, closes=6))
    now += 10.0
    estimator.enter(Step.DRAW, ("set", 0), None, now)
    assert estimator.left_s(now) == pytest.approx(by_hand(starts=1, draws=4, binds=6, blocks=12, closes=6))


def test_steps_that_are_not_of_the_plan_do_no_harm() -> None:
    estimator = TimeLeft(small(), 0.0)
    estimator.enter(None, ("set", 0), "e0", 10.0)
    estimator.enter(Step.BLOCK, ("other", 0), "e0", 11.0)
    estimator.enter(Step.BIND, ("set", 0), "e9", 12.0)
    assert estimator.left_s(13.0) == pytest.approx(by_hand(starts=1))


def test_it_never_goes_below_zero() -> None:
    estimator = TimeLeft(Estimate(processes=1, rounds=1, start_s=1.0, cases=()), 0.0)
    assert estimator.left_s(5.0) == 0.0


def test_the_words_of_the_worker_are_known(root: Path) -> None:
    """The steps are told apart by what the worker says that it does."""
    source = "\n".join(path.read_text() for path in (root / "mkframe" / "run").glob("*.py") if path.name != "time_left.py")
    for words, step in (
        ("drawing the case", Step.DRAW),
        ("binding and checking", Step.BIND),
        ("timing round", Step.BLOCK),
        ("checking after timing", Step.CLOSE),
    ):
        assert words in source
        assert step_of(f"{words} 3") is step
    assert step_of("getting ready") is None


def test_the_progress_line_tells_it(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("mkframe.cli.progress.monotonic", lambda: now[0])
    assert left_text(None) == ""
    assert left_text(TimeLeft(small(), 0.0)) == "about 89 s left:"
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    told: list[str] = []

    class FakeBar:
        def __init__(self, blocks: int, time_left: TimeLeft | None) -> None:
            self.time_left = time_left

        def tell(self, text: str) -> None:
            told.append(f"{left_text(self.time_left)} {text}")

        def shrink(self, count: int) -> None: ...

        def close(self) -> None: ...

    monkeypatch.setattr("mkframe.cli.progress.Bar", FakeBar)
    case: Any = SimpleNamespace(key=("set", 0), set="set", shape={"rows": 3})
    progress = Progress(False, small())
    progress.started(16)
    progress.starting(0)
    now[0] = 10.0
    progress.doing(case, None, "drawing the case")
    now[0] = 11.0
    progress.doing(case, "e0", "binding and checking")
    progress.cell_failed(case, "e0", "crashed", "it died")  # type: ignore[arg-type]
    progress.doing(case, "e1", "binding and checking")
    progress.finished()
    assert told == [
        "about 89 s left: starting process 0",
        "about 79 s left: set 3 : drawing the case",
        "about 78 s left: set 3 e0: binding and checking",
        "about 62 s left: set 3 e1: binding and checking",
    ]
