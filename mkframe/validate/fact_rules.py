"""What cells of a report of ours say of what ran, held against what the report says of it elsewhere: versions, compiled kernels, files.

Facts of third parties' engines are free: only those of engines that ship with mkframe are known well enough to be held to anything.
"""

from collections.abc import Iterator
from typing import Any

from mkframe.validate.block_parts import BlockCell, block_cells, block_of
from mkframe.validate.comparison_parts import Path, items, table, whole
from mkframe.validate.finding import Finding, Severity, error, shown
from mkframe.validate.formats import COMPARISON
from mkframe.validate.rule import Rule, Subject
from mkframe.validate.triton_facts import triton_faults

_BUILT_IN, _FOLDER = "mkframe_plugins.", "mkframe_folder_"
"""How the modules of engines begin that ship with mkframe, and of those that `plugin_path` names."""


def facts(subject: Subject) -> Iterator[Finding]:
    """Versions, architectures, registers and drivers that stand twice are the same."""
    block = block_of(subject.document)
    if not block:
        return
    device, packages = block["device"], subject.document["packages"]
    measured = table(device, "peaks", "measured").get("driver")
    if device["kind"] == "cuda" and measured is not None and measured != device["driver"]:
        why = f"driver is {shown(measured)}, and the device ran with {shown(device['driver'])}: peaks are those of this driver"
        yield error("facts", why, ("mkframe", "device", "peaks", "measured", "driver"))
    elsewhere = {"torch": packages.get("torch"), "triton": packages.get("triton")}
    if device["kind"] == "cuda":  # on a CPU the device has none, and torch may still be a build for CUDA
        elsewhere["cuda"] = device["cuda"]
    for cell in block_cells(subject):
        if ships_with_mkframe(cell):
            yield from _versions(cell, elsewhere)
            yield from _compiled(cell, device["compute_capability"])
            yield from triton_faults(cell, packages.get("triton"))


def ships_with_mkframe(cell: BlockCell) -> bool:
    """Whether the cell ran an engine of ours."""
    return str(cell.record["implementation"]).startswith(_BUILT_IN)


def _versions(cell: BlockCell, elsewhere: dict[str, Any]) -> Iterator[Finding]:
    found = table(cell.record, "facts")
    for name, there in elsewhere.items():
        if name in found and there is not None and _version(name, found[name]) != _version(name, there):
            why = f"{name} is {shown(found[name])} in {cell.text}, and the report was made with {shown(there)}"
            yield error("facts", why, (*cell.path, "facts", name))


def _version(name: str, stated: Any) -> Any:
    """Triton says less of its build than the metadata of its package does."""
    return stated.partition("+")[0] if name == "triton" and isinstance(stated, str) else stated


def _compiled(cell: BlockCell, capability: str | None) -> Iterator[Finding]:
    """Every kernel that was compiled is for this device, and one of the launches of the graph."""
    launches = cell.record.get("kernels") or ()
    most_shared: dict[int | None, int] = {}  # of the launches with so many registers
    for launch in launches:
        count = whole(launch["registers"])
        most_shared[count] = max(launch["shared_bytes"], most_shared.get(count, 0))
    for index, code in enumerate(items(cell.record, "facts", "compiled")):
        place: Path = (*cell.path, "facts", "compiled", index)
        arch, registers, shared = (table(code).get(name) for name in ("arch", "registers", "shared_bytes"))
        if capability is not None and not _runs_on(arch, capability):
            why = f"arch is {shown(arch)}, which a device of compute capability {shown(capability)} does not run"
            yield error("facts", why, place)
            continue
        # A launch counts static shared memory too.
        most, least = most_shared.get(whole(registers)), whole(shared)
        if launches and (most is None or least is None or most < least):
            why = f"no launch of {cell.text} has {shown(registers)} registers and at least {shown(shared)} bytes of shared memory"
            yield error("facts", why, place)


def _runs_on(arch: Any, capability: str) -> bool:
    """A cubin for sm_XY runs on devices of capability X.Y and later ones of the same X; one for sm_XYa on X.Y alone (CUDA C++
    Programming Guide, binary compatibility and architecture-specific features)."""
    digits = arch.removeprefix("sm_") if isinstance(arch, str) else ""
    exact, digits = digits.endswith("a"), digits.removesuffix("a")
    major, _, minor = capability.partition(".")
    if not (digits.isdecimal() and minor.isdecimal() and len(minor) == 1):
        return False
    return digits[:-1] == major and (int(digits[-1]) == int(minor) if exact else int(digits[-1]) <= int(minor))


def implementation(subject: Subject) -> Iterator[Finding]:
    """The module of every implementation that passed is among the files that were hashed."""
    if not block_of(subject.document):
        return
    files = subject.document["source_sha256"]
    below = {file.partition("/")[2] for file in files}
    for cell in block_cells(subject):
        module = str(cell.record["implementation"]).partition(":")[0]
        if not cell.passed or not module.startswith((_BUILT_IN, _FOLDER)):
            continue
        package, _, rest = module.replace(".", "/").partition("/")
        ends = [f"{rest}{end}".removeprefix("/") for end in (".py", "/__init__.py") if rest or end != ".py"]
        # The package of a folder has a made-up name; its files are named by the folder's own.
        known = below if package.startswith(_FOLDER) else files
        if not any((end if known is below else f"{package}/{end}") in known for end in ends):
            why = f"{cell.text} ran {shown(module)}, and no file of this module is in source_sha256"
            yield error("implementation", why, (*cell.path, "implementation"))


FACT_RULES: tuple[Rule, ...] = tuple(
    Rule(id=id, format=COMPARISON, severities=(Severity.ERROR,), says=says, check=check, needs_schema=True)
    for id, check, says in (
        ("facts", facts, "versions, drivers, architectures and registers that cells state are those of packages, device and launches"),
        ("implementation", implementation, "the module of every implementation that passed is among the files of source_sha256"),
    )
)
