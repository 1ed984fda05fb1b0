"""The side file with every raw sample."""

import io

import numpy as np

from mkframe.canonical import sha256
from mkframe.model.report import SamplesRecord
from mkframe.run.ledger import Ledger


def pack(ledger: Ledger) -> tuple[SamplesRecord, bytes]:
    """All samples of all cells as a compressed .npz, and how the report names it. Equal samples give equal bytes.

    Arrays: `SET/CASE/ENGINE/stream_ms` and `.../host_ms`, float64 (finished rounds, samples per round) in milliseconds;
    `.../rounds` and `.../workers`, int64 (finished rounds,), the rounds that they belong to and the worker processes that
    took them, counted from 0 over the whole run.
    """
    arrays = {}
    for (name, case, engine), state in ledger.cells.items():
        if state.blocks:
            key = f"{name}/{case}/{engine}"
            arrays[f"{key}/stream_ms"], arrays[f"{key}/host_ms"] = state.samples()
            arrays[f"{key}/rounds"] = np.array(sorted(state.blocks), dtype=np.int64)
            arrays[f"{key}/workers"] = np.array(state.round_workers(), dtype=np.int64)
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)  # type: ignore[arg-type]
    data = buffer.getvalue()
    digest = sha256(data)
    return SamplesRecord(file=f"samples-{digest}.npz", sha256=digest), data
