"""What kinds of mutants of reports of ours are made with: the two decorators, and honest reports with rates."""

import copy
import json
from hashlib import sha256
from math import ceil
from random import Random
from typing import Any

from report_mutants import COMPARISON, Document, Places, kind

from mkframe.model.checks import all_checks


def block_of(document: Document) -> Document:
    block: Document = document.get("mkframe", {})
    return block


def own(change: Any) -> None:
    """A fault in the block of a comparison report of ours. `change` gets document, block and random."""

    def changed(document: Document, random: Random) -> Places | None:
        block = block_of(document)
        found: Places | None = change(document, block, random) if block else None
        return found

    changed.__name__, changed.__module__ = change.__name__, change.__module__
    kind(COMPARISON)(changed)


def own_doubt(change: Any) -> None:
    """A doubt about a comparison report of ours."""

    def changed(document: Document, random: Random) -> Places | None:
        block = block_of(document)
        found: Places | None = change(document, block, random) if block else None
        return found

    changed.__name__, changed.__module__ = change.__name__, change.__module__
    kind(COMPARISON, "W")(changed)


def rehash(block: Document) -> None:
    text = json.dumps(block["config"], sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    block["config_sha256"] = sha256(text.encode()).hexdigest()


def with_rates(document: Document, *, cold: bool, peak_flops: float = 1e15, read_peak: float = 1e15) -> Document:
    """A report of ours with the peaks of its device and the rates that follow. `cold`: its caches were cold by rotation."""
    document = copy.deepcopy(document)
    block = document["mkframe"]
    if cold:
        document["timing"] = block["timing"]["protocol"] = block["timing"]["cache_state"] = "cold"
        block["config"]["timing"] = {
            **block["config"]["timing"],
            "protocol": "cold",
            "method": "rotate",
            "k1": 20,
            "slope_us": 200.0,
            "sets": 4,
            "footprint": 1.0,
        }
        document["limitations"] = [_told_cold(text) for text in document["limitations"]]
    block["config"]["device"]["card"] = None  # these peaks are of no card
    rehash(block)
    block["device"]["peaks"] = {
        "datasheet": {"memory_bytes_per_s": 1e15, "flops_per_s": peak_flops, "source": "a sheet"},
        "measured": {
            "card_sha256": "ab" * 32,
            "driver": None,
            "read_bytes_per_s": read_peak,
            "write_bytes_per_s": None,
            "copy_bytes_per_s": None,
        },
    }
    for cell in block["cells"]:
        engines = next(case["engines"] for case in document[cell["set"]] if case["shape"] == cell["shape"])
        seconds = engines[cell["engine"]]["stream_summary"]["p50_ms"] / 1e3
        moved, computed = cell["cost"]["bytes"] / seconds, cell["cost"]["flops"] / seconds
        cell["rates"] = {"bytes_per_s": moved, "flops_per_s": computed, "compute_share": computed / peak_flops}
        cell["rates"] |= {"memory_share": moved / 1e15 if cold else None, "read_share": moved / read_peak if cold else None}
        if cold:
            cell["checks"] = list(all_checks("cuda", chained=True))
            sets = max(4, ceil(block["device"]["l2_bytes"] / cell["cost"]["bytes"]))
            cell["facts"] = {**cell["facts"], "k1": 20, "k2": 20 + ceil(2e-4 / seconds), "sets": sets, "edges": "full"}
    return document


_COLD = {
    "protocol per_call:": "protocol cold:",
    "one sample is one call.": "one sample is the slope between two graphs of chained calls over more buffers than L2 holds, or one call "
    "after L2 was evicted, as the configuration says.",
    "Every call reads the same buffers: caches are warm, and no rate here is a memory bandwidth.": "L2 is cold for every call; the "
    "instruction cache, kernel parameters and the TLB stay warm.",
}
"""What the sentences of the published report say otherwise in a cold one."""


def _told_cold(text: str) -> str:
    for warm, cold in _COLD.items():
        text = text.replace(warm, cold)
    return text


def is_cold(block: Document) -> bool:
    return bool(block["timing"]["protocol"] == "cold")


def index_of(block: Document, form: str) -> int:
    return next(index for index, cell in enumerate(block["cells"]) if cell["form"] == form)
