"""Which lines of the validator a corpus reaches: `python tests/fuzz/corpus_coverage.py CORPUS` prints them by module.

The fuzzer counts edges of instrumented code; this counts lines of functions, once for all modules of mkframe.validate.
"""

import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parents[2])]

from fuzz_target import check  # noqa: E402

import mkframe.validate  # noqa: E402

FOLDER = str(Path(mkframe.validate.__file__).parent)


def main(corpus: Path) -> None:
    reached: dict[str, set[int]] = {}

    def trace(frame: types.FrameType, event: str, _: Any) -> Callable[..., Any] | None:
        if not frame.f_code.co_filename.startswith(FOLDER):
            return None
        reached.setdefault(frame.f_code.co_filename, set()).add(frame.f_lineno)
        return trace

    count = 0
    sys.settrace(trace)
    for path in sorted(corpus.iterdir()):
        check(path.read_bytes())
        count += 1
    sys.settrace(None)
    total = hit = 0
    for file in sorted(Path(FOLDER).glob("*.py")):
        lines = set(_lines(compile(file.read_text(encoding="utf-8"), str(file), "exec")))
        found = lines & reached.get(str(file), set())
        total, hit = total + len(lines), hit + len(found)
        print(f"{file.name:28}{len(found):5} of {len(lines):4}")
    print(f"{count} inputs reach {hit} of {total} lines of functions ({100 * hit / max(total, 1):.0f} %)")


def _lines(code: types.CodeType) -> Iterator[int]:
    """Lines within the functions of a module; what runs at its import is no part of it."""
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            if inner.co_flags & 0x2 and inner.co_name != "<module>":  # CO_NEWLOCALS: a function or a class body
                yield from (line for _, _, line in inner.co_lines() if line is not None and line != inner.co_firstlineno)
            yield from _lines(inner)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
