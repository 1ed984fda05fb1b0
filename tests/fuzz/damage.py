"""Random damage to JSON documents: a fuzzer that knows what JSON is reaches the rules behind the parser."""

import copy
import json
from random import Random
from typing import Any

ODD: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 0.0, -0.0, 0.5, 1e-320, 1e308, -1e308, 2**53 + 1, 2**63, 2**64, -(2**70), 10**300,
    "", "a", "é", "\x1b[2J", "\r\n", "%0A::error::", "\u202e", "\ufffe", "\U0001f600", "a/b~c", "0" * 64, "ab" * 32, "ab" * 20,
    "2026-02-30", "2026-10-05", "2026-09-15T11:52:24Z", "per_call", "cold", "nvml_edge_aligned", "float32", "../x",
    [], {}, [[]], [{}], [None], [0], {"": 0}, {"shape": {}, "engines": {}},
)  # fmt: skip


def places(node: Any) -> list[tuple[Any, Any]]:
    """(container, key or index) of every value below `node`."""
    found: list[tuple[Any, Any]] = []
    waiting = [node]
    while waiting:
        here = waiting.pop()
        for key in here if isinstance(here, dict) else range(len(here)) if isinstance(here, list) else ():
            found.append((here, key))
            waiting.append(here[key])
    return found


def damaged(document: Any, random: Random, *, most: int = 4) -> Any:
    """A copy of `document` with one to `most` changes at random places."""
    root = [copy.deepcopy(document)]
    for _ in range(random.randint(1, most)):
        found = places(root)
        container, key = random.choice(found)
        _change(container, key, found, random)
        if not root:
            root.append(None)
    return root[0]


def _change(container: Any, key: Any, found: list[tuple[Any, Any]], random: Random) -> None:
    value = container[key]
    kind = random.randrange(8)
    if kind == 0:
        container[key] = copy.deepcopy(random.choice(ODD))
    elif kind == 1:
        del container[key]
    elif kind == 2:  # what stands somewhere else
        other, where = random.choice(found)
        container[key] = copy.deepcopy(other[where]) if where in other or isinstance(other, list) else None
    elif kind == 3 and isinstance(value, int | float) and not isinstance(value, bool):
        container[key] = _number(value, random)
    elif kind == 4 and isinstance(value, list) and value:
        value.insert(random.randrange(len(value) + 1), copy.deepcopy(random.choice(value)))
    elif kind == 5 and isinstance(value, dict):
        value[random.choice(["", "x", "mkframe", "timing", "rounds", "development", "passed", "a/b", "~", "\x07"])] = copy.deepcopy(
            random.choice(ODD)
        )
    elif kind == 6 and isinstance(container, dict):
        container[random.choice([key + "x", key[1:], key.upper()])] = container.pop(key)
    elif kind == 7 and isinstance(value, str) and value:
        at = random.randrange(len(value))
        container[key] = value[:at] + random.choice(["", "\n", "x", "0", "\x9b", "é"]) + value[at + 1 :]
    else:
        container[key] = copy.deepcopy(random.choice(ODD))


def _number(value: float, random: Random) -> float:
    if isinstance(value, int):
        return random.choice([value + 1, value - 1, -value, value * 2, float(min(value, 2**1000)), value * 10**20])
    return random.choice(
        [value * (1 + 1e-9), value * 1.01, -value, value * 1e300 if abs(value) < 1e8 else 0.0, round(value, 3), int(value)]
    )


def written(document: Any, random: Random) -> bytes:
    """`document` as bytes, in one of the ways in which people write JSON. Infinities come out as tokens that JSON does not have."""
    ascii_only, indent = random.random() < 0.5, random.choice([None, None, 2])
    return json.dumps(document, ensure_ascii=ascii_only, indent=indent).encode("utf-8", "surrogatepass")
