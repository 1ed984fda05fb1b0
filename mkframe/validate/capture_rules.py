"""What a cell of a report of ours states because it became ready to be timed, or does not state because it never did."""

from collections.abc import Iterator

from mkframe.validate.block_parts import BlockCell, block_cells, block_of, chained
from mkframe.validate.finding import Finding, Severity, error, shown
from mkframe.validate.formats import COMPARISON
from mkframe.validate.rule import Rule, Subject

_READY = ("bind_s", "check_s")
"""What an engine that is ready to be timed states."""
_CAPTURED = ("capture_s", "nodes", "kernels")
"""What a graph states besides, with the same breath."""
_KINDS = (
    *("memcpy", "memset", "host", "graph", "empty", "wait_event", "event_record", "ext_semas_signal", "ext_semas_wait", "mem_alloc"),
    *("mem_free", "batch_mem_op", "conditional", "memcpy_batch", "reserved_16", "external_engine", "fabric_cpy_batch"),
)
"""What nodes are called that are no kernels (CUgraphNodeType of CUDA 13.5, in small letters)."""


def captures(subject: Subject) -> Iterator[Finding]:
    """A cell states all of what it takes to be ready, or nothing of it: all where it passed, nothing where it is unsupported. The
    kernels of a graph are its kernel nodes, in their order. Of reports since schema 1.2."""
    on_chains = chained(block_of(subject.document))
    for cell in block_cells(subject):
        if "kernels" not in cell.record:
            continue
        if cell.supported:
            yield from _together(cell)
        else:
            yield from _never_ready(cell, on_chains)
        if cell.record["kernels"] is not None:
            yield from _nodes(cell, [kernel["name"] for kernel in cell.record["kernels"]])


def _together(cell: BlockCell) -> Iterator[Finding]:
    names = (*_READY, *_CAPTURED) if cell.form == "graph" else _READY
    missing = [name for name in names if cell.record[name] is None]
    if missing and (cell.passed or len(missing) < len(names)):
        there = next((name for name in names if name not in missing), None)
        why = "and the cell passed" if cell.passed else f"and {there} is not: both are known once an engine is ready"
        yield error("captures", f"{missing[0]} is null, {why}", (*cell.path, missing[0]))


def _never_ready(cell: BlockCell, on_chains: bool) -> Iterator[Finding]:
    """An unsupported cell was left out of the plan, and nothing ran; or, on chains, its buffers were found to be too many after its
    checks."""
    for name in (*_READY, *_CAPTURED, "twin", "late_samples", "facts", *(() if on_chains else ("check", "checks"))):
        if (value := cell.record.get(name)) is not None and value not in ([], {}):
            yield error("captures", f"{name} is {shown(value)} in a cell that is unsupported: it never became ready", (*cell.path, name))


def _nodes(cell: BlockCell, kernels: list[str]) -> Iterator[Finding]:
    """Every kernel node is a kernel, in turn. A kernel may have the name of another kind of node."""
    found = 0
    for node in cell.record["nodes"] or ():
        if found < len(kernels) and node == kernels[found]:
            found += 1
        elif node not in _KINDS:
            yield error("captures", f"the node {shown(node)} is not in its turn among the kernels of {cell.text}", (*cell.path, "kernels"))
            return
    if found < len(kernels):
        why = f"the kernel {shown(kernels[found])} is not in its turn among the nodes of {cell.text}"
        yield error("captures", why, (*cell.path, "kernels", found))


CAPTURE_RULES: tuple[Rule, ...] = (
    Rule(
        id="captures",
        format=COMPARISON,
        severities=(Severity.ERROR,),
        says="what a cell states once it is ready stands together, and never in an unsupported one; kernels are the kernel nodes, in order",
        check=captures,
        needs_schema=True,
    ),
)
