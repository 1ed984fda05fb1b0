"""The device of a report of ours: what a GPU always tells of itself, and what a CPU does not have."""

import re
from collections.abc import Iterator
from typing import Any

from mkframe.validate.block_parts import block_of
from mkframe.validate.finding import Finding, Severity, error, shown
from mkframe.validate.formats import COMPARISON
from mkframe.validate.rule import Rule, Subject

_CPU, _CUDA = "cpu", "cuda"
_OF_A_GPU = ("uuid", "compute_capability", "multiprocessors", "driver", "cuda")
"""Known of every GPU: without them no worker starts on one."""
_PERHAPS_OF_A_GPU = ("l2_bytes", "card")
"""Null on a GPU whose L2 torch does not tell, or that has no datasheet."""
_OF_A_CPU = ("threads",)
_CAPABILITY = re.compile(r"[0-9]{1,3}\.[0-9]{1,3}")
_BUILD = re.compile(r"cu([0-9]{2,4})")
"""What official builds of torch say behind the + of their version, but for those of a CPU: CUDA without its point."""


def device(subject: Subject) -> Iterator[Finding]:
    """The fields of its kind are known, those of the other kind null."""
    block = block_of(subject.document)
    if not block:
        return
    found, place = block["device"], ("mkframe", "device")
    if found["kind"] not in (_CPU, _CUDA):
        yield error("device", f"kind is {shown(found['kind'])}, and a run is on {_CPU} or {_CUDA}", (*place, "kind"))
        return
    on_cpu = found["kind"] == _CPU
    for name in _OF_A_CPU if on_cpu else _OF_A_GPU:
        if found[name] is None:
            yield error("device", f"{name} is null, and known of every device of kind {found['kind']}", (*place, name))
    for name in (*_OF_A_GPU, *_PERHAPS_OF_A_GPU) if on_cpu else _OF_A_CPU:
        if found[name] is not None:
            yield error("device", f"{name} is {shown(found[name])}, which a device of kind {found['kind']} does not have", (*place, name))
    if on_cpu and (found.get("peaks") or {}).get("datasheet") is not None:
        yield error("device", "a datasheet of a CPU: there is none", (*place, "peaks", "datasheet"))
    if not on_cpu:
        yield from _gpu(found, str(subject.document["packages"].get("torch", "")))


def _gpu(found: dict[str, Any], torch: str) -> Iterator[Finding]:
    """A GPU has more memory than L2, and is driven by a build of torch that can, for the CUDA that it was built for."""
    capability, memory, l2, cuda = (found[name] for name in ("compute_capability", "memory_bytes", "l2_bytes", "cuda"))
    if capability is not None and _CAPABILITY.fullmatch(capability) is None:
        why = f"compute_capability is {shown(capability)}, and every GPU has a major and a minor number"
        yield error("device", why, ("mkframe", "device", "compute_capability"))
    if memory is not None and l2 is not None and memory < l2:
        why = f"memory_bytes is {shown(memory)}, less than the {shown(l2)} of L2"
        yield error("device", why, ("mkframe", "device", "memory_bytes"))
    build = torch.partition("+")[2]
    if build == _CPU:
        yield error("device", f"torch is {shown(torch)}, a build that uses no GPU", ("packages", "torch"))
    elif cuda is not None and (told := _BUILD.fullmatch(build)) and told[1] != cuda.replace(".", ""):
        yield error("device", f"cuda is {shown(cuda)}, and torch is {shown(torch)}", ("mkframe", "device", "cuda"))


DEVICE_RULES: tuple[Rule, ...] = (
    Rule(
        id="device",
        format=COMPARISON,
        severities=(Severity.ERROR,),
        says="a GPU has UUID, compute capability, multiprocessors, driver and CUDA, a CPU threads, and neither what the other has",
        check=device,
        needs_schema=True,
    ),
)
