"""Measures the published reports anew, on an NVIDIA H200.

    python benchmarks/evidence.py FOLDER [--seconds N] [NAME ...]

Writes FOLDER/NAME/report.json with its samples for every claim below, or for those that are named, in this order; the device's card
comes first, into FOLDER/device-card-h200/card.json and into the user's cache, because shares of peak are taken from it. With --seconds a
claim that is not expected to end in time is left out, and said. Refuses a source with uncommitted changes: its report could not be
published. Exits 1 where a run ends otherwise than it must.
"""

import argparse
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from mkframe.stamp import source

CARD = "device-card-h200"
NINE = "shape=[development,assessment]"
OURS = "persistent-graph,persistent-global-graph,conventional-graph"
ENGINES = f"engine=[{OURS},torch-compile-graph,triton-fused-graph,torch-cublas-graph]"
CALLS = f"engine=[persistent,{OURS},torch-compile-graph,triton-fused-graph]"
GRAPHS = "engine=[torch-cublas-graph,torch-compile-graph]"
FAULTS = (
    "crash",
    "raise-error",
    "leave",
    "leave-at-once",
    "hang",
    "hang-on-the-device",
    "exhaust",
    "exhaust-the-device",
    "corrupt-the-context",
)
HONEST = ("sound", "sound-graph", "torch-cublas", "torch-cublas-graph")
FOOTPRINTS = (1, 2, 3, 5, 7, 10, 14)


@dataclass(frozen=True, kw_only=True)
class Claim:
    """`seconds`: about how long it takes; `exit_code`: how it must end."""

    name: str
    arguments: tuple[str, ...]
    seconds: float
    exit_code: int = 0


def claims() -> tuple[Claim, ...]:
    unrolled = (GRAPHS, NINE, "timing=unrolled")
    footprint = ("engine=torch-cublas-graph", "shape=footprint")
    engines = ",".join([*HONEST, *(f"{fault}-at-clock" for fault in FAULTS)])
    faults = (
        "plugin_path=tests/gpu/faulty",
        f"engine=[{engines}]",
        "shape=smoke",
        "shape.smoke.cases=[{rows: 33, channels: 32, hidden: 64}]",
        "timing.processes=1",
        "timing.rounds=2",
        "timing.samples_per_round=100",
        "timing.cell_timeout_s=8",
    )
    return (
        Claim(name="residual-mlp-graphs-h200-unrolled", arguments=unrolled, seconds=120),
        Claim(name="residual-mlp-graphs-h200-unrolled-again", arguments=unrolled, seconds=80),
        *(
            Claim(
                name=f"residual-mlp-footprint-{caches}-h200-cold",
                arguments=(*footprint, "timing=cold", f"timing.footprint={caches}"),
                seconds=25,
            )
            for caches in FOOTPRINTS
        ),
        Claim(name="residual-mlp-footprint-warm-h200-unrolled", arguments=(*footprint, "timing=unrolled"), seconds=25),
        Claim(name="residual-mlp-footprint-evict-h200-cold", arguments=(*footprint, "timing=cold", "timing.method=evict"), seconds=25),
        Claim(name="residual-mlp-engines-h200-unrolled", arguments=(ENGINES, NINE, "timing=unrolled"), seconds=280),
        Claim(name="residual-mlp-engines-h200-per-call", arguments=(CALLS, NINE), seconds=110),
        Claim(name="faults-h200-per-call", arguments=faults, seconds=90, exit_code=1),
        Claim(name="residual-mlp-baselines-h200-per-call", arguments=("engine=baselines", NINE), seconds=120),
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--seconds", type=float, default=float("inf"))
    words = parser.parse_args()
    known = {claim.name: claim for claim in claims()}
    unknown = [name for name in words.names if name not in known]
    if unknown:
        parser.error(f"no claim is called {unknown[0]}; there are: {', '.join(known)}")
    found = source()
    if found.commit is None or found.dirty is not False:
        parser.error(f"the source must be a commit without changes, and is {found}")
    end = time.monotonic() + words.seconds
    probe(words.folder / CARD)
    failed = [name for name, claim in known.items() if name in (words.names or known) and not measure(claim, words.folder, end)]
    return 1 if failed else 0


def probe(target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    done = subprocess.run([sys.executable, "-m", "mkframe", "device", "probe", "device=cuda", "--json"], stdout=subprocess.PIPE, check=True)
    (target / "card.json").write_bytes(done.stdout)


def measure(claim: Claim, folder: Path, end: float) -> bool:
    begin = time.monotonic()
    if begin + claim.seconds > end:
        print(f"{claim.name}: left out, {end - begin:.0f} s are left and it takes about {claim.seconds:g}", flush=True)
        return True
    run, target = folder / "runs" / claim.name, folder / claim.name
    command = [sys.executable, "-m", "mkframe", *claim.arguments, "device=h200", f"out={run}"]
    code = subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode
    print(f"{claim.name}: exit code {code} after {time.monotonic() - begin:.0f} s", flush=True)
    if code != claim.exit_code:
        return False
    target.mkdir(parents=True, exist_ok=True)
    for path in (run / "report.json", *run.glob("samples-*.npz")):
        shutil.copy(path, target)
    return True


if __name__ == "__main__":
    sys.exit(main())
