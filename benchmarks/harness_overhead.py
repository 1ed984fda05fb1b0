"""Microseconds that the framework adds to one CPU sample: the sampler around an engine that does nothing. Goal: under 2 us."""

import json
from time import perf_counter

from mkframe.timing.cpu import CpuPerCall
from mkframe.timing.sampler import Subject

SAMPLES = 200_000
ROUNDS = 7
GOAL_US = 2.0


def nothing() -> None:
    return None


def main() -> None:
    timed = CpuPerCall().open(Subject(run=nothing))
    found = []
    for _ in range(ROUNDS):
        begin = perf_counter()
        timed.sample(SAMPLES)
        found.append((perf_counter() - begin) / SAMPLES * 1e6)
    print(json.dumps({"us_per_sample": round(sorted(found)[ROUNDS // 2], 3), "goal_us": GOAL_US}))


if __name__ == "__main__":
    main()
