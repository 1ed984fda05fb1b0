"""How often correct float32 sums break the tolerance of residual_mlp, and which rule tells them from wrong ones.

    python benchmarks/rounding_rows.py [--seeds 10]

numpy only; a few minutes. Every shape is computed in several orders of summation, then with products that end in float16, then
with one element moved. Prints the tables of docs/workloads/residual_mlp.md.
"""

import argparse
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from mkframe.model.precision import PRECISIONS, Precision
from mkframe.plugin import deviations, round_to
from mkframe_plugins.residual_mlp import few_flips
from mkframe_plugins.residual_mlp.chain import blocks, hidden_of
from mkframe_plugins.residual_mlp.workload import MlpCase, ResidualMlp

WORKLOAD = ResidualMlp()
F32 = np.float32
# (rows, channels, hidden), and how many draws make up a row of the table for each unit of --seeds
SHAPES = {
    (1, 7, 13): 100,
    (33, 32, 64): 20,
    (129, 31, 47): 10,
    (257, 64, 128): 4,
    (1024, 128, 256): 1,
    (5, 19, 37): 50,
    (49, 48, 96): 10,
    (193, 63, 111): 4,
    (513, 96, 192): 2,
    (8, 2048, 8192): 0,
}
DEEP = ((257, 64, 128, 4), (33, 256, 512, 4), (257, 64, 128, 24), (33, 256, 512, 24))
Product = Callable[[Any, Any], Any]


def sequential(a: Any, b: Any) -> Any:
    total = np.zeros((a.shape[0], b.shape[1]), F32)
    for k in range(a.shape[1]):
        total += a[:, k, None] * b[k]
    return total


def pairwise(a: Any, b: Any) -> Any:
    half = a.shape[1] // 2
    return a * b if half == 0 else pairwise(a[:, :half], b[:half]) + pairwise(a[:, half:], b[half:])


def split_k(a: Any, b: Any) -> Any:
    parts = [sequential(a[:, part::4], b[part::4]) for part in range(4)]
    return (parts[0] + parts[1]) + (parts[2] + parts[3])


ORDERS: dict[str, Product] = {
    "blas": np.matmul,
    "sequential": sequential,
    "backwards": lambda a, b: sequential(a[:, ::-1], b[::-1]),
    "pairwise": pairwise,
    "split-k": split_k,
}


def half_output(a: Any, b: Any) -> Any:
    return (a @ b).astype(np.float16).astype(F32)


def inputs_of(case: MlpCase, precision: Precision, seed: int) -> dict[str, Any]:
    specs = WORKLOAD.tensors(case, precision)
    return {name: round_to(value.astype(np.float64), specs[name].dtype) for name, value in WORKLOAD.draw(case, seed).items()}


def compute(values: dict[str, Any], precision: Precision, product: Product) -> Any:
    """y as a float32 implementation gets it, as float64."""
    y = values["x"]
    for index, block in enumerate(blocks(values)):
        x = (round_to(y, precision.input) if index else y).astype(F32)
        w1, b1, w2, b2 = (part.astype(F32) for part in (block.w1, block.b1, block.w2, block.b2))
        h = round_to(np.maximum(product(x, w1) + b1, 0).astype(np.float64), precision.hidden).astype(F32)
        y = np.maximum(product(h, w2) + b2 + x, 0).astype(np.float64)
    return y


def candidates(values: dict[str, Any], precision: Precision, rows: Any) -> list[int]:
    """Per row: how many h lie within the bound of a rounding boundary."""
    (block,) = blocks(values)
    x = values["x"][rows]
    exact = hidden_of(x, block)
    _, near = few_flips.flips(exact, round_to(exact, precision.hidden), few_flips.reach(x, block), precision.hidden)
    return [int(count) for count in near.sum(axis=1)]


def draws(shape: tuple[int, ...], precision: Precision, count: int) -> Iterator[tuple[MlpCase, dict[str, Any], Any]]:
    case = MlpCase(**dict(zip(("rows", "channels", "hidden", "depth"), shape, strict=False)))
    for seed in range(count):
        values = inputs_of(case, precision, seed)
        yield case, values, WORKLOAD.reference(case, precision, values)["y"]


def judged(case: MlpCase, precision: Precision, values: dict[str, Any], y: Any, reference: Any) -> Any:
    return WORKLOAD.accepts(case, precision, values, {"y": y}, {"y": reference})


def one_block(precision: Precision, seeds: int) -> None:
    tolerance = WORKLOAD.tolerance(precision)
    print(f"\n{precision.id}: shape | computations | beyond tolerance | rows so | h near a boundary (median, most)", end="")
    print(" | rows with at most 4 | passed | half fails | moved rows passed")
    for shape, weight in SHAPES.items():
        total = beyond = passed = half = halves = moved = movements = 0
        near: list[int] = []
        for case, values, reference in draws(shape, precision, max(1, weight * seeds)):
            for order in ORDERS.values() if case.channels <= 256 else (np.matmul,):
                y = compute(values, precision, order)
                rows = np.flatnonzero(deviations(y, reference, tolerance)[1].any(axis=1))
                total, beyond = total + 1, beyond + bool(len(rows))
                near += candidates(values, precision, rows)
                passed += judged(case, precision, values, y, reference).passed
            halves, half = (
                halves + 1,
                half + (not judged(case, precision, values, compute(values, precision, half_output), reference).passed),
            )
            random = np.random.default_rng(halves)
            for _ in range(10):
                y, place = reference.copy(), random.integers(reference.size)
                y.flat[place] += random.choice([-4, 4]) * (tolerance.atol + tolerance.rtol * y.flat[place])
                movements, moved = movements + 1, moved + judged(case, precision, values, y, reference).passed
        counts = f"{np.median(near):.0f}, {max(near)}" if near else "-"
        few = sum(count <= 4 for count in near)
        print(f"{shape} | {total} | {beyond} | {len(near)} | {counts} | {few} | {passed}", end="")
        print(f" | {half} of {halves} | {moved} of {movements}", flush=True)


def chains(precision: Precision, seeds: int) -> None:
    print(f"\n{precision.id}: chain | computations | beyond tolerance | largest error / tolerance | passed | half fails")
    tolerance = WORKLOAD.tolerance(precision)
    for shape in DEEP:
        total = beyond = passed = half = halves = 0
        worst = 0.0
        for case, values, reference in draws(shape, precision, max(1, seeds // 3)):
            for order in (np.matmul, sequential, pairwise):
                y = compute(values, precision, order)
                error, outside = deviations(y, reference, tolerance)
                total, beyond = total + 1, beyond + bool(outside.any())
                worst = max(worst, float((error / (tolerance.atol + tolerance.rtol * reference)).max()))
                passed += judged(case, precision, values, y, reference).passed
            halves, half = (
                halves + 1,
                half + (not judged(case, precision, values, compute(values, precision, half_output), reference).passed),
            )
        print(f"{shape} | {total} | {beyond} | {worst:.1f} | {passed} | {half} of {halves}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10, help="draws of the largest development shape; others in proportion")
    seeds = parser.parse_args().seeds
    for name in ("fp16", "bf16"):
        one_block(PRECISIONS[name], seeds)
    for name in ("fp16", "bf16", "fp32"):
        chains(PRECISIONS[name], seeds)


if __name__ == "__main__":
    main()
