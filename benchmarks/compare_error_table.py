"""Error rates of the rule that ranks two medians (mkframe/stats/rule.py), on pairs whose truth is known. Prints a table.

python benchmarks/compare_error_table.py [--pairs 4000] [--seed 1]      about ten minutes alone; docs/compare.md quotes it

A pair is two reports of one engine (A/A), or of one that became 5 % slower. Each process has a level of its own (standard
deviation `spread`), each round another 0.1 %, each sample 1 % with heavy tails (Student's t with 3 degrees of freedom, and
2 % of the samples 10 to 100 % late); an event clock with a step of 32 ns reads it.
"""

import argparse
import time
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mkframe import stats
from mkframe.model.outcome import Verdict

STEP_MS = 32e-6
PLANTED = 0.05
SLOW_KERNEL = 0.26
"""What another kernel chosen by autotuning was seen to cost."""
Generator = np.random.Generator
Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """`shape`: distribution of the processes' levels."""

    base_processes: int
    new_processes: int
    rounds: int = 2
    samples: int = 200
    median_us: float = 20.0
    base_spread: float
    new_spread: float
    shape: str = "normal"

    def text(self) -> str:
        same = self.base_processes == self.new_processes
        processes = f"{self.base_processes}" if same else f"{self.base_processes} v {self.new_processes}"
        spread = self.base_spread if self.base_spread == self.new_spread else (self.base_spread, self.new_spread)
        spread_text = f"{spread:.1%}" if isinstance(spread, float) else f"{spread[0]:.1%} v {spread[1]:.1%}"
        return f"{processes} x {self.rounds} x {self.samples} | {self.median_us:g} | {spread_text} {self.shape}"


def plan(processes: int, spread: float, *, shape: str = "normal", rounds: int = 2, median_us: float = 20.0) -> Plan:
    return Plan(
        base_processes=processes,
        new_processes=processes,
        base_spread=spread,
        new_spread=spread,
        shape=shape,
        rounds=rounds,
        median_us=median_us,
    )


def levels(generator: Generator, shape: str, spread: float, count: int) -> Array:
    """Log levels of processes with standard deviation `spread`; with `two kernels` half of them run one that is 26 % slower."""
    if shape == "t3":
        return np.asarray(spread * generator.standard_t(3, count) / np.sqrt(3))
    if shape == "uniform":
        return np.asarray(spread * generator.uniform(-np.sqrt(3), np.sqrt(3), count))
    normal = spread * generator.standard_normal(count)
    return normal + np.log1p(SLOW_KERNEL) * (generator.random(count) < 0.5) if shape == "two kernels" else normal


def measured(
    generator: Generator, process_logs: Array, rounds: int, samples: int, median_us: float
) -> tuple[stats.Samples, tuple[int, ...]]:
    """(processes x rounds, samples) in ms as the clock reads them, and the process of each round."""
    count = process_logs.size * rounds
    logs = np.repeat(process_logs, rounds) + 0.001 * generator.standard_normal(count)
    noise = 0.01 * generator.standard_t(3, (count, samples)) / np.sqrt(3)
    noise += (generator.random((count, samples)) < 0.02) * generator.uniform(0.1, 1.0, (count, samples))
    times = median_us / 1e3 * np.exp(logs)[:, None] * np.maximum(1 + noise, 0.5)
    owner = tuple(int(process) for process in np.repeat(np.arange(process_logs.size), rounds))
    return np.rint(times / STEP_MS) * STEP_MS, owner


def pair(generator: Generator, plan: Plan, slower: float) -> tuple[tuple[stats.Samples, tuple[int, ...]], ...]:
    """NEW and BASE; NEW is `slower` (0.05: by 5 %) in truth."""
    sides = ((plan.new_processes, plan.new_spread, 1 + slower), (plan.base_processes, plan.base_spread, 1.0))
    return tuple(
        measured(generator, levels(generator, plan.shape, spread, count), plan.rounds, plan.samples, plan.median_us * factor)
        for count, spread, factor in sides
    )


def verdicts(plan: Plan, slower: float, pairs: int, seed: int) -> dict[Verdict, float]:
    """Share of each verdict of the rule between two reports."""
    generator = np.random.default_rng(seed)
    found = []
    for _ in range(pairs):
        (new, new_process), (base, base_process) = pair(generator, plan, slower)
        found.append(stats.compare_apart(new, new_process, base, base_process, STEP_MS).verdict)
    return {verdict: found.count(verdict) / pairs for verdict in Verdict}


def bootstrap_ranks(plan: Plan, pairs: int, seed: int) -> float:
    """Share of A/A pairs that plain percentile intervals of the hierarchical bootstrap would rank."""
    generator = np.random.default_rng(seed)
    ranked = 0
    for _ in range(pairs):
        (low, high), (low_base, high_base) = (
            stats.interval(stats.bootstrap_medians(samples, process, generator)) for samples, process in pair(generator, plan, 0.0)
        )
        ranked += max(low, low_base) > min(high, high_base)
    return ranked / pairs


def inside(shared: float, own: float, slower: float, pairs: int, seed: int) -> dict[Verdict, float]:
    """Shares inside one report of 3 x 2 x 200: both engines share a part of each process's level and have a part of their own."""
    generator = np.random.default_rng(seed)
    found = []
    for number in range(pairs):
        common = shared * generator.standard_normal(3)
        (one, owner), (other, _) = (
            measured(generator, common + own * generator.standard_normal(3), 2, 200, 20.0 * factor) for factor in (1 + slower, 1.0)
        )
        found.append(stats.compare(one, other, owner, STEP_MS, number).verdict)
    return {verdict: found.count(verdict) / pairs for verdict in Verdict}


def plans() -> Iterable[Plan]:
    for spread in (0.003, 0.005, 0.01, 0.03, 0.05, 0.07):
        yield plan(3, spread)
    for spread in (0.03, 0.07):
        yield plan(3, spread, shape="t3")
        yield plan(3, spread, shape="uniform")
    yield plan(3, 0.005, median_us=5.0)
    yield plan(1, 0.03)
    yield plan(1, 0.07)
    yield plan(2, 0.03)
    for processes, spread in ((4, 0.01), (5, 0.01), (10, 0.02), (16, 0.03), (18, 0.03), (48, 0.05), (96, 0.07)):
        yield plan(processes, spread, rounds=1)
    for base, new, base_spread, new_spread in ((3, 3, 0.03, 0.07), (3, 3, 0.01, 0.07), (3, 16, 0.03, 0.03), (3, 16, 0.07, 0.03)):
        yield Plan(base_processes=base, new_processes=new, base_spread=base_spread, new_spread=new_spread)
    for processes in (3, 4, 6):
        yield plan(processes, 0.01, shape="two kernels")


def row(plan: Plan, pairs: int, seed: int) -> str:
    equal, planted = verdicts(plan, 0.0, pairs, seed), verdicts(plan, PLANTED, pairs, seed + 1)
    return f"| {plan.text()} | {shares(equal, planted)} |"


def shares(equal: dict[Verdict, float], planted: dict[Verdict, float]) -> str:
    ranked = equal[Verdict.FASTER] + equal[Verdict.SLOWER]
    wrong = planted[Verdict.FASTER] + planted[Verdict.SAME]
    return f"{ranked:.2%} | {equal[Verdict.SAME]:.0%} | {planted[Verdict.SLOWER]:.1%} | {wrong:.2%}"


def main() -> None:
    parser = argparse.ArgumentParser(description="Error rates of the rule that ranks two medians.", allow_abbrev=False)
    parser.add_argument("--pairs", type=int, default=4000, help="pairs for each figure")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    start = time.monotonic()
    print("| processes x rounds x samples | us | spread | A/A ranked | A/A SAME | 5 % found | 5 % called FASTER or SAME |")
    print("|---|--:|---|--:|--:|--:|--:|")
    for number, each in enumerate(plans()):
        print(row(each, options.pairs, options.seed + 10 * number), flush=True)
    print(
        "\ninside one report, 3 x 2 x 200\n\n| shared spread | own spread | A/A ranked | A/A SAME | 5 % found | 5 % called FASTER or SAME |"
    )
    print("|--:|--:|--:|--:|--:|--:|")
    for shared, own in ((0.0, 0.005), (0.03, 0.001), (0.03, 0.005), (0.0, 0.03), (0.05, 0.05)):
        equal, planted = (inside(shared, own, slower, options.pairs, options.seed) for slower in (0.0, PLANTED))
        print(f"| {shared:.1%} | {own:.1%} | {shares(equal, planted)} |", flush=True)
    print("\nA/A pairs that plain percentile intervals of the bootstrap would rank:")
    for each in (plan(3, 0.005), plan(3, 0.03), plan(3, 0.07)):
        print(f"  {each.text()}: {bootstrap_ranks(each, options.pairs // 8, options.seed):.1%}", flush=True)
    print(f"\n{options.pairs} pairs for each figure, seed {options.seed}, {time.monotonic() - start:.0f} s")


if __name__ == "__main__":
    main()
