"""What built-in engines say of Triton's kernels, held against the launches of the same cell and the packages of the report."""

import math
from collections.abc import Iterator
from typing import Any

from mkframe.validate.block_parts import BlockCell
from mkframe.validate.comparison_parts import table, whole
from mkframe.validate.finding import Finding, error, shown

_FUSED = ":TritonFused"
_WARP = 32


def triton_faults(cell: BlockCell, triton: str | None) -> Iterator[Finding]:
    """`cell` ran an engine that ships with mkframe; `triton` is the version of the package, None where there is none. The fused kernel is
    a launch with the registers, shared memory, warps and programs that its facts state; what Triton compiled for torch, it compiled."""
    found, place = table(cell.record, "facts"), (*cell.path, "facts")
    language, _, version = str(found.get("compiler")).partition(" ")
    if language == "triton" and triton is not None and version.partition("+")[0] != triton.partition("+")[0]:
        why = f"compiler is {shown(found['compiler'])} in {cell.text}, and the package triton is {shown(triton)}"
        yield error("facts", why, (*place, "compiler"))
    launches = cell.record.get("kernels") or ()
    if launches and str(cell.record["implementation"]).endswith(_FUSED):
        stated = {name: whole(found[name]) for name in ("registers", "shared_bytes", "num_warps", "programs") if name in found}
        if not any(stated.items() <= _of_launch(launch).items() for launch in launches):
            why = f"no launch of {cell.text} has the registers, shared memory, warps and programs that are stated"
            yield error("facts", why, place)


def _of_launch(launch: dict[str, Any]) -> dict[str, int]:
    """The facts that a launch gives."""
    return {
        "registers": launch["registers"],
        "shared_bytes": launch["shared_bytes"],
        "num_warps": math.prod(launch["block"]) // _WARP,
        "programs": math.prod(launch["grid"]),
    }
