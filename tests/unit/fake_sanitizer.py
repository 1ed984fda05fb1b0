"""A stand-in for compute-sanitizer: a program that takes its options, runs or imitates the checked program, and writes its log."""

import stat
import sys
from pathlib import Path

CLEAN = {
    "memcheck": "========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n",
    "racecheck": "========= COMPUTE-SANITIZER\n========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)\n",
    "synccheck": "========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n",
    "initcheck": "========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n",
}
BROKEN = {
    "memcheck": """========= COMPUTE-SANITIZER
========= Invalid __global__ write of size 4 bytes
=========     at beyond(float *)+0x70 in /src/kernels/beyond.cu:3
=========     by thread (31,0,0) in block (0,0,0)
=========     Access at 0x7f1c4be00200 is out of bounds
=========     and is 1 bytes after the nearest allocation at 0x7f1c4be00000 of size 512 bytes
=========
========= Invalid __global__ write of size 4 bytes
=========     at beyond(float *)+0x70 in /src/kernels/beyond.cu:3
=========     by thread (30,0,0) in block (0,0,0)
=========
========= ERROR SUMMARY: 257 errors
========= ERROR SUMMARY: 237 errors were not printed. Use --print-limit option to adjust the number of printed errors
""",
    "racecheck": """========= COMPUTE-SANITIZER
========= Error: Race reported between Write access at racy(float *)+0x130
=========     and Read access at racy(float *)+0x1b0 [124 hazards]
=========
========= Warning: Race reported between Write access at racy(float *)+0x110
=========     and Write access at racy(float *)+0x110 [31 hazards]
=========
========= RACECHECK SUMMARY: 2 hazards displayed (1 error, 1 warning)
""",
    "synccheck": """========= COMPUTE-SANITIZER
========= Barrier error detected. Divergent thread(s) in block.
=========     at divergent(float *)+0xa0
=========     by thread (16,0,0) in block (0,0,0)
=========
========= Target application returned an error
========= ERROR SUMMARY: 16 errors
""",
    "initcheck": """========= COMPUTE-SANITIZER
========= Uninitialized __global__ memory read of size 4 bytes
=========     at unset(float *)+0x50
=========     by thread (0,0,0) in block (0,0,0)
=========     Address 0x7fbbca800000
=========
========= ERROR SUMMARY: 1 error
""",
}
NO_CUDA = """========= COMPUTE-SANITIZER
========= Error: Target application terminated before first instrumented API call
========= Tracking kernels launched by child processes requires the --target-processes all option.
"""
VERSION = "NVIDIA (R) Compute Sanitizer\nCopyright (c) 2020-2025 NVIDIA Corporation\nVersion 2025.1.0.0 (build 35583870) (public-release)\n"

_PROGRAM = """#!{python} -S
import json, os, subprocess, sys, time
HELP, VERSION = {help!r}, {version!r}
def run_program():
    return subprocess.run(program).returncode
def answer(**changed):
    document = {{"calls": 2, "reason": None, "capture_failed": False, "sources": {{"engine.py": "0" * 64}}}}
    with open(job["answer"], "w") as file:
        json.dump(document | changed, file)
def say(text):
    with open(log, "w") as file:
        file.write(text)
words = sys.argv[1:]
if words == ["--version"]:
    print(VERSION, end="")
    sys.exit(0)
if words == ["--help"]:
    print(HELP)
    sys.exit(0)
options = {{}}
while words and words[0].startswith("--"):
    options[words[0]] = words[1]
    words = words[2:]
tool, log, program = options["--tool"], options["--log-file"], words
with open(words[-1]) as file:
    job = json.load(file)
call = {{"options": options, "job": job}}
call["uncached"], call["gpu"] = os.environ.get("PYTORCH_NO_CUDA_MEMORY_CACHING"), os.environ.get("CUDA_VISIBLE_DEVICES")
with open({record!r}, "a") as file:
    print(json.dumps(call), file=file)
CLEAN, BROKEN, NO_CUDA = {clean!r}, {broken!r}, {no_cuda!r}
{behaviour}
"""


def fake_sanitizer(folder: Path, behaviour: str, version: str = VERSION, help: str = "--padding arg (=0)") -> Path:
    """Writes the program into `folder` and returns its path. `behaviour` is Python; it may use `tool`, `job`, `program`, `say(log text)`,
    `answer(**changed)`, `run_program()`, CLEAN, BROKEN, NO_CUDA. What it was called with goes to the file
    `calls` beside it, a line of JSON each."""
    path = folder / "compute-sanitizer"
    text = _PROGRAM.format(
        python=sys.executable,
        help=help,
        version=version,
        record=str(folder / "calls"),
        clean=CLEAN,
        broken=BROKEN,
        no_cuda=NO_CUDA,
        behaviour=behaviour,
    )
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path
