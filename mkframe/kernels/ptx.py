"""What PTX says of a kernel: how often it uses which instruction."""

import re
from collections import Counter
from collections.abc import Mapping

_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_OPCODE = re.compile(r"(?:@!?%?[\w$]+\s+)?([a-z][a-z0-9_]*(?:(?:\.|::)[A-Za-z0-9_]+)*)(?=\s|$)")
_LABEL = re.compile(r"^\s*[\w$%]+\s*:\s*(?!:)")


def instructions(ptx: str) -> dict[str, int]:
    """Full name of an instruction ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32") -> how often it stands in the text, by name.
    Directives and declarations are none."""
    counts: Counter[str] = Counter()
    for statement in re.split(r"[;{}]", _COMMENT.sub(" ", ptx)):
        text = statement
        while label := _LABEL.match(text):
            text = text[label.end() :]
        found = _OPCODE.match(text.strip())
        if found:
            counts[found[1]] += 1
    return dict(sorted(counts.items()))


def count(counts: Mapping[str, int], prefix: str) -> int:
    """How many instructions begin with `prefix`, in whole parts: "mma.sync" counts mma.sync.aligned..., not mma.synchronous;
    "cp.async.bulk.shared" counts cp.async.bulk.shared::cluster..."""
    return sum(number for name, number in counts.items() if name == prefix or name.startswith((f"{prefix}.", f"{prefix}::")))
