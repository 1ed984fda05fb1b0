"""What `validate` takes: process time, start included, and peak memory, for honest files of all sizes and for files made to be slow.

python benchmarks/validate_speed.py [WORD...]    only the files whose description holds one of the words

Every line is a process of its own. Reports are built from the recorded ones and by the generator of the tests.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RECORDED = ROOT / "tests" / "data" / "valid"
sys.path.insert(0, str(ROOT / "tests" / "unit"))

from report_generator import comparison_report, energy_report, with_rounds  # noqa: E402

Document = dict[str, Any]
_PROGRAM = """
import os, sys
from mkframe.cli.main import main
code = main(sys.argv[2:])
status = open("/proc/self/status").read()
os.write(int(sys.argv[1]), status[status.index("VmHWM:") + 6 :].split()[0].encode())
sys.exit(code)
"""


def main(words: list[str]) -> None:
    print("   MB in    s cpu   s wall   MB peak   x file   exit  what")
    with tempfile.TemporaryDirectory() as name:
        for what, paths in files(Path(name)):
            if words and not any(word in what for word in words):
                continue
            size = sum(path.stat().st_size for path in paths)
            cpu_s, wall_s, peak, code = measured([str(path) for path in paths])
            print(f"{size / 1e6:8.2f} {cpu_s:8.2f} {wall_s:8.2f} {peak / 1e6:9.0f} {peak / size:8.1f} {code:6}  {what}", flush=True)
            for path in paths:
                if path.is_relative_to(name):
                    path.unlink()


def measured(paths: list[str]) -> tuple[float, float, int, int]:
    """(process time in s, wall time in s, peak resident bytes, exit code) of one call.

    The kernel's figure for a child begins with the size of its parent; VmHWM is the program's own.
    """
    read, write = os.pipe()
    start = time.perf_counter()
    command = [sys.executable, "-P", "-c", _PROGRAM, str(write), "validate", *paths]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, pass_fds=(write,))
    os.close(write)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    with os.fdopen(read) as pipe:
        peak = int(pipe.read()) * 1024
    return usage.ru_utime + usage.ru_stime, time.perf_counter() - start, peak, process.returncode


def files(folder: Path) -> Iterator[tuple[str, list[Path]]]:
    """What is in the files, and where they are. They are written as they are asked for."""
    yield "the recorded comparison report", [RECORDED / "residual-mlp-rtx3090.json"]
    yield "the recorded energy report", [RECORDED / "qda-energy-a100.json"]
    yield "1,000 reports of under 5 KB", small_ones(folder)
    comparison = big_comparison()
    yield "a comparison report, indented", [written(folder, comparison, indent=2)]
    yield "a comparison report, on one line", [written(folder, comparison)]
    next(iter(comparison["set_700"][0]["engines"].values()))["stream_summary"]["min_ms"] = -1
    yield "a comparison report with one fault", [written(folder, comparison, indent=2)]
    for name in list(comparison):
        for case in comparison[name] if name.startswith("set_") else ():
            case["shape"]["rows"] = 0
    yield "a comparison report with a fault in every case", [written(folder, comparison)]
    energy = with_rounds(json.loads((RECORDED / "qda-energy-a100.json").read_text()), Random(1), 33_000)
    yield "an energy report, indented", [written(folder, energy, indent=2)]
    energy["rounds"][20_000]["gross_mj"] *= 2
    yield "an energy report with one fault", [written(folder, energy)]
    yield from slow_ones(folder)


def big_comparison() -> Document:
    recorded: Document = json.loads((RECORDED / "residual-mlp-rtx3090.json").read_text())
    cases = recorded["development"] + recorded["assessment"]
    return recorded | {f"set_{index}": json.loads(json.dumps(cases)) for index in range(1080)}


def small_ones(folder: Path) -> list[Path]:
    random, paths = Random(1), []
    while len(paths) < 1000:
        text = json.dumps((comparison_report, energy_report)[len(paths) % 2](random))
        if len(text) < 5000:
            paths.append(folder / f"report-{len(paths)}.json")
            paths[-1].write_text(text)
    return paths


def slow_ones(folder: Path) -> Iterator[tuple[str, list[Path]]]:
    """Files that nobody honest writes: masses of one thing, at a place where a rule looks."""
    minimal: Document = json.loads((RECORDED / "minimal-comparison.json").read_text())
    yield "10,000,000 brackets", [written(folder, b"[" * 10_000_000)]
    yield "5,000,000 empty objects", [written(folder, b"[" + b"{}," * 5_000_000 + b"{}]")]
    yield "100,000 violations", [written(folder, minimal | {"limitations": [0] * 100_000})]
    yield "130,000 unknown keys", [written(folder, minimal | {f"devic{index}": 0 for index in range(130_000)})]
    yield "a key of 10,000,000 characters", [written(folder, minimal | {"x" * 10_000_000: 0})]
    yield "10,000 faults below keys of 4,900 characters", [written(folder, minimal | {"packages": dict(long_keys(5000))})]
    yield "a text of 30,000,000 characters", [written(folder, minimal | {"device": "x" * 30_000_000, "rounds": 0})]
    yield "a number of 10,000,000 digits", [written(folder, b'{"samples_per_round": ' + b"9" * 10_000_000 + b"}")]
    engine = {"passed": True, "replay_changed_input": True}
    yield "100,000 engines in one case", [written(folder, minimal | {"x": [{"shape": {"rows": 1}, "engines": many(engine, 100_000)}]})]
    yield "200,000 equal shapes", [written(folder, minimal | {"x": [{"shape": {"rows": 1}, "engines": {"a": engine}}] * 200_000})]
    yield "as many small objects as are allowed", [written(folder, minimal | {"x": [{"aaaaaa": 0.5}] * 3_500_000})]
    yield "a mass of digits", [written(folder, beside(minimal, b"[" + b"1," * 30_000_000 + b"1]", 1))]
    yield "a mass of short numbers", [written(folder, beside(minimal, b"[" + b"1.5," * 15_000_000 + b"1]", 1))]
    yield "a mass of NaN", [written(folder, b"[" + b"NaN," * 15_000_000 + b"0]")]
    yield "a mass of numbers beyond float64", [written(folder, b"[" + b"9e999," * 10_000_000 + b"0]")]
    yield "a mass of keys named twice", [written(folder, b"[" + b'{"ab":1,"ab":1,"ab":1},' * 2_600_000 + b"0]")]
    yield "4,000,000 unknown keys at the top", [written(folder, beside(minimal, b"0", 4_000_000))]
    yield "3,500,000 unknown lists at the top", [written(folder, beside(minimal, b"[]", 3_500_000))]
    yield "3,500,000 axes in one shape", [written(folder, beside(minimal, b"[" + wide_case(3_500_000) + b"]", 1))]
    yield "35 shapes of 100,000 axes", [written(folder, beside(minimal, b"[" + b",".join([wide_case(100_000)] * 35) + b"]", 1))]
    in_each: Document = {"passed": True, "replay_changed_input": True} | {f"key{index}": 0 for index in range(8)}
    found = [{"shape": {"rows": row}, "engines": many(in_each, 1000)} for row in range(1, 450)]
    yield "unknown keys in every engine", [written(folder, minimal | {"x": found})]
    small = b'{"shape":{"rows":1},"engines":{"engine":0}}'
    yield "a mass of small cases", [written(folder, beside(minimal, b"[" + b",".join([small] * 1_300_000) + b"]", 1))]
    engine_alone = b'{"shape":{"rows":1},"engines":{"a":{"passed":false,"replay_changed_input":false}}}'
    yield "a mass of small cases that failed", [written(folder, beside(minimal, b"[" + b",".join([engine_alone] * 750_000) + b"]", 1))]
    yield "unknown keys in every shape set", [written(folder, beside(minimal, b'[{"shape":{},"engines":{}}]', 1_400_000))]
    yield "a mass of short texts", [written(folder, minimal | {"x": [f"{index:x}" for index in range(3_000_000)]})]
    yield "a mass of short texts and one character beyond", [written(folder, minimal | {"x": ["ab"] * 3_000_000, "y": "\U0001f600"})]


def beside(document: Document, value: bytes, count: int) -> bytes:
    """A document as text with `count` more keys of one value, of which no second copy is made in memory."""
    more = b",".join(b'"%x":' % index + value for index in range(2**20, 2**20 + count))
    return json.dumps(document, separators=(",", ":")).encode()[:-1] + b"," + more + b"}"


def wide_case(axes: int) -> bytes:
    """A case whose shape has that many axes."""
    shape = b",".join(b'"%x":%d' % (index, 1 + index % 9) for index in range(2**20, 2**20 + axes))
    return b'{"shape":{' + shape + b'},"engines":{"a":{}}}'


def many(value: Any, count: int) -> Document:
    return {f"engine{index}": value for index in range(count)}


def long_keys(count: int) -> Iterator[tuple[str, Any]]:
    return ((f"{index}" + "x" * 4890, index) for index in range(count))


def written(folder: Path, content: bytes | Document, indent: int | None = None) -> Path:
    path = folder / "report.json"
    separators = (",", ":") if indent is None else None
    data = content if isinstance(content, bytes) else json.dumps(content, indent=indent, separators=separators, ensure_ascii=False).encode()
    path.write_bytes(data)
    return path


if __name__ == "__main__":
    main(sys.argv[1:])
