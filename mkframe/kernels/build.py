"""From a kernel's declaration to its cubin: out of the disk cache, or compiled and kept there."""

import os
from collections.abc import Mapping, Sequence
from contextlib import closing
from functools import cache as remembered
from pathlib import Path

from mkframe.errors import KernelError
from mkframe.kernels.cache import KernelCache, kernels_folder
from mkframe.kernels.cubin import kernels_of
from mkframe.kernels.key import compiler, key_of
from mkframe.kernels.process import Raw, compile_in_child
from mkframe.kernels.ptx import instructions
from mkframe.kernels.result import Compiled, Entry
from mkframe.model.kernel import Kernel, Target


def compiled(kernel: Kernel, target: Target, cache: KernelCache | None = None) -> Compiled:
    """The kernel for the target's architecture. Raises KernelError as `compile_kernels` says."""
    found = compile_kernels((kernel,), target, cache)[kernel]
    if isinstance(found, KernelError):
        raise found
    return found


def compile_kernels(kernels: Sequence[Kernel], target: Target, cache: KernelCache | None = None) -> Mapping[Kernel, Compiled | KernelError]:
    """Every kernel, each once: out of the cache (None: the user's), or compiled in one other process and kept. Processes that want the
    same kernel at a time compile it once.

    A kernel that does not compile, launches otherwise than it declares, or takes more shared memory than the target has, is a
    KernelError.
    """
    store = _users_cache(kernels_folder(os.environ)) if cache is None else cache
    results: dict[Kernel, Compiled | KernelError] = {}
    keys: dict[Kernel, str] = {}
    for kernel in dict.fromkeys(kernels):
        try:
            _check_fits(kernel, target)
            keys[kernel] = key_of(kernel, target.arch)
        except KernelError as error:
            results[kernel] = error
            continue
        kept = store.load(keys[kernel])
        if kept is not None:
            results[kernel] = kept
    missing = [kernel for kernel in keys if kernel not in results]
    if missing:
        results |= _build(missing, keys, target, store)
    return {kernel: results[kernel] for kernel in dict.fromkeys(kernels)}


@remembered
def _users_cache(folder: Path) -> KernelCache:
    return KernelCache(folder)


def _build(
    kernels: Sequence[Kernel], keys: Mapping[Kernel, str], target: Target, store: KernelCache
) -> dict[Kernel, Compiled | KernelError]:
    found: dict[str, Compiled | KernelError] = {}
    by_key = {keys[kernel]: kernel for kernel in reversed(kernels)}  # kernels that differ in what they promise alone are one
    with store.writing(list(by_key)) as release:
        for key in by_key:  # while we waited for a lock, its holder has made what we want
            kept = store.load(key)
            if kept is not None:
                found[key] = kept
                release(key)
        left = [key for key in reversed(by_key) if key not in found]
        with closing(compile_in_child([by_key[key] for key in left], target.arch)) as answers:
            for key, raw in zip(left, answers, strict=True):
                found[key] = _kept(by_key[key], raw, key, target, store)
                release(key)
    return {kernel: found[keys[kernel]] for kernel in kernels}


def _kept(kernel: Kernel, raw: Raw | KernelError, key: str, target: Target, store: KernelCache) -> Compiled | KernelError:
    if isinstance(raw, KernelError):
        return raw
    try:
        found = _checked(kernel, raw, target.arch)
        if key_of(kernel, target.arch) != key:
            raise KernelError(f"kernel {kernel.name}: a source of {kernel.module} changed while it was compiled; start again")
    except KernelError as error:
        return error
    store.store(Entry(key=key, module=kernel.module, name=kernel.name, compiled=found))
    return found


def _check_fits(kernel: Kernel, target: Target) -> None:
    if kernel.shared_bytes > target.shared_bytes_per_block:
        raise KernelError(
            f"kernel {kernel.name} takes {kernel.shared_bytes} bytes of shared memory a block, and {target.arch} has "
            f"{target.shared_bytes_per_block}; its engine must say unsupported, or choose another kernel"
        )


def _checked(kernel: Kernel, raw: Raw, arch: str) -> Compiled:
    """Raises KernelError where the kernel is not what it is declared to be."""

    def demand(holds: bool, clause: str) -> None:
        if not holds:
            raise KernelError(f"kernel {kernel.name} ({kernel.module}): {clause}")

    found = kernels_of(raw.cubin)
    demand(len(found) == 1, f"its host function launches {len(found)} kernels; declare one Kernel for each")
    (one,) = found
    launch, shared = raw.launch, raw.launch.shared_bytes
    demand(shared is not None, f"its launch leaves shared memory to the compiler; give smem={kernel.shared_bytes} as declared")
    demand(shared == kernel.shared_bytes, f"it declares {kernel.shared_bytes} bytes of shared memory, and its launch asks for {shared}")
    demand(not launch.overflows, f"it allocates more than the {kernel.shared_bytes} bytes of shared memory that its launch asks for")
    for block in (one.block, launch.block):
        demand(block in (None, (kernel.block, 1, 1)), f"it declares a block of {kernel.block} threads, and is compiled for {block}")
    cluster = launch.cluster or (1, 1, 1)
    demand(cluster == (kernel.cluster, 1, 1), f"it declares a cluster of {kernel.cluster} blocks, and its launch asks for {cluster}")
    wanted = compiler()[-1]
    demand(raw.flavour in (None, wanted), f"it was compiled with the libraries for {raw.flavour}, not {wanted}; start again")
    return Compiled(
        entry=one.name,
        arch=arch,
        cubin=raw.cubin,
        ptx=raw.ptx,
        registers=one.registers,
        frame_bytes=one.frame_bytes,
        parameters=one.parameters,
        instructions=instructions(raw.ptx),
        compile_s=raw.seconds,
    )
