"""Coverage-guided fuzzing of `validate` with atheris (pip install .[fuzz]); docs/fuzzing.md says how it is run and what it found.

python tests/fuzz/seeds.py CORPUS && python tests/fuzz/fuzz_validate.py CORPUS -max_total_time=1800 -max_len=65536

What the fuzzer changes are the bytes, or, where they are JSON, values and keys of the document.
"""

import json
import sys
from pathlib import Path
from random import Random

import atheris

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parents[2])]
with atheris.instrument_imports(include=["mkframe"]):
    from damage import damaged, written
    from fuzz_target import check

_RAW = 0.15
"""Share of changes that are made to bytes, whatever they hold."""


def change(data: bytes, max_size: int, seed: int) -> bytes:
    """A changed input of at most `max_size` bytes."""
    random = Random(seed)
    if random.random() >= _RAW:
        try:
            made = written(damaged(json.loads(data), random), random)
        except (ValueError, RecursionError, OverflowError):
            made = b""
        if 0 < len(made) <= max_size:
            return made
    return bytes(atheris.Mutate(data, max_size))


def one(data: bytes) -> None:
    check(data)


def main() -> None:
    atheris.Setup(sys.argv, one, custom_mutator=change)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
