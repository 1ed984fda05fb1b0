"""The requirements that need bound cells. Each takes the bench, raises Broken or NotAsked, and returns what its pass rests on."""

import gc
import tracemalloc
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from mkframe.check.buffers import PATTERNS
from mkframe.check.case_data import BASE, FRESH, NEGATED
from mkframe.check.cell import CheckFailed, Evidence
from mkframe.check.joined import check_joined
from mkframe.conformance.bench import Bench, Bound, Cell, bind, kept, load, settle
from mkframe.conformance.messages import Broken, NotAsked
from mkframe.graph.capture import capture
from mkframe.model.outcome import Rejected

_MANY_CALLS = 100
_LONG_SERIES = 4000
_LEAK_REPEATS = 3
_LEAK_BYTES_PER_CALL = 24  # a float in a list takes 32
_RESIDENT_LEAK_BYTES = 2**20
_TURNS = 3
_PAGE = 4096


def binds(bench: Bench) -> str:
    return _each(bench, lambda cell: bind(cell).call(), generated=None)


def correct_shapes(bench: Bench) -> str:
    found = _each(bench, _once, generated=False)
    left_out = bench.setup.left_out
    return f"{found}; {left_out} large cases were left out, name their sets with shape=..." if left_out else found


def correct_generated(bench: Bench) -> str:
    return _each(bench, _once, generated=True)


def _once(cell: Cell) -> None:
    bound = bind(cell)
    bound.call()
    bound.judge()


def _poisoned(pattern: str) -> Callable[[Cell], None]:
    def check(cell: Cell) -> None:
        bound = bind(cell)
        bound.poison(pattern)
        bound.call()
        bound.judge()

    return check


def _changed(variant: str) -> Callable[[Cell], None]:
    def check(cell: Cell) -> None:
        bound = bind(cell)
        bound.call()
        load(bound, variant)
        bound.call()
        bound.judge(variant)

    return check


def _intact(cell: Cell) -> None:
    bound = bind(cell)
    bound.call(2)
    for name, right in cell.data.variants[BASE].stored.items():
        if not torch.equal(bound.tensors[name].cpu().view(torch.uint8), right.view(torch.uint8)):
            raise Broken(f"it wrote {name}, which is an input")


def _shifted(cell: Cell) -> None:
    first = bind(cell)
    first.call()
    second = bind(cell, shifted=True)
    second.call()
    second.judge()


def _after_many(cell: Cell) -> None:
    bound = bind(cell)
    bound.call(_MANY_CALLS)
    bound.judge()


def _joined(cell: Cell) -> None:
    try:
        check_joined(bind(cell), cell.data, settle, Evidence())
    except (Rejected, CheckFailed) as error:
        raise Broken(str(error)) from error


def _in_bounds(cell: Cell) -> None:
    for shifted in (False, True):
        bound = bind(cell, shifted=shifted)
        bound.call(2)
        name = bound.trespassed()
        if name is not None:
            raise Broken(f"it wrote outside of {name}")


def no_state(bench: Bench) -> str:
    cells = list(bench.few())
    for order in (cells, cells[::-1]):
        for cell in order:
            _at(bench, cell, _once)
    before, after = bench.pristine, kept(bench.engine)
    changed = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    if changed:
        raise Broken(f"the instance's {changed[0]} changed while cells were bound and called; keep what a cell needs in bind()")
    return f"{len(cells)} cells in either order"


def _in_turns(cell: Cell) -> None:
    """Two bindings, base and fresh input, both bound before either is called. Whatever the other one does, an output stays right."""
    pair = {BASE: bind(cell), FRESH: bind(cell, FRESH)}
    for _ in range(_TURNS):
        for bound in pair.values():
            bound.call()
        for variant, bound in pair.items():
            bound.judge(variant)


def _plain(cell: Cell) -> None:
    bound = bind(cell)
    assert torch.is_grad_enabled()
    assert not torch.is_inference_mode_enabled()
    before = _places(bound)
    bound.call(2)
    for name, place in _places(bound).items():
        if place != before[name]:
            raise Broken(f"{name} is no longer the tensor that it was: storage, shape, dtype or gradient changed")


def _places(bound: Bound) -> dict[str, tuple[Any, ...]]:
    return {
        name: (
            tensor.data_ptr(),
            tensor.untyped_storage().data_ptr(),
            tuple(tensor.shape),
            tensor.stride(),
            tensor.dtype,
            tensor.requires_grad,
            tensor.is_inference(),
        )
        for name, tensor in bound.tensors.items()
    }


def graph_capture(bench: Bench) -> str:
    """On CUDA: the call in a graph, replayed on changed input; and once more on shifted buffers."""
    return _each(bench, _captured, kind="cuda", few=True)


def _captured(cell: Cell) -> None:
    for shifted in (False, True):
        bound = bind(cell, shifted=shifted)
        graph = capture(bound.run, torch.cuda.Stream())
        if not graph.nodes:
            raise Broken("the captured graph holds no node")
        for variant in (BASE, NEGATED, FRESH):
            load(bound, variant)
            bound.poison()
            settle()
            graph.replay()
            settle()
            bound.judge(variant)


def memory_constant(bench: Bench) -> str:
    gc.collect()
    gc.freeze()  # what is there already need not be searched again and again
    try:
        return _each(bench, _no_leak, few=True)
    finally:
        gc.unfreeze()


def _no_leak(cell: Cell) -> None:
    """The least growth over a few repeats: what leaks, leaks in each of them. Python objects are counted once more over a long
    series, since pools and free lists grow too, but not for ever."""
    bound = bind(cell)
    bound.call(_MANY_CALLS)
    growth = [_growth(bound, _MANY_CALLS) for _ in range(_LEAK_REPEATS)]
    python, resident, device = (min(values) for values in zip(*growth, strict=True))
    if python > _MANY_CALLS * _LEAK_BYTES_PER_CALL:
        python = _growth(bound, _LONG_SERIES)[0]
        if python > _LONG_SERIES * _LEAK_BYTES_PER_CALL:
            raise Broken(f"Python objects of {python:,} bytes stay behind after {_LONG_SERIES:,} calls")
    if resident > _RESIDENT_LEAK_BYTES:
        raise Broken(f"the process grows by {resident:,} bytes in {_MANY_CALLS} calls")
    if device > 0:
        raise Broken(f"{device:,} bytes of GPU memory stay behind after {_MANY_CALLS} calls")


def _growth(bound: Bound, calls: int) -> tuple[int, int, int]:
    """Bytes of Python objects, of the process, and of torch's GPU memory, after `calls` calls minus before."""
    tracemalloc.start()
    try:
        bound.call()
        gc.collect()
        resident, device = _resident(), _gpu_bytes()
        python = tracemalloc.get_traced_memory()[0]
        bound.call(calls)
        gc.collect()
        python = tracemalloc.get_traced_memory()[0] - python
        return python, _resident() - resident, _gpu_bytes() - device
    finally:
        tracemalloc.stop()


def _resident() -> int:
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE
    except (OSError, ValueError, IndexError):
        return 0


def _gpu_bytes() -> int:
    return torch.cuda.memory_allocated() if torch.cuda.is_initialized() else 0


def determinism(bench: Bench) -> str:
    equal = total = 0
    for cell in bench.few():
        bound = bind(cell)
        bound.call()
        first = {name: bound.tensors[name].clone() for name in cell.data.outputs}
        bound.poison()
        bound.call()
        total += 1
        equal += all(torch.equal(bound.tensors[name].view(torch.uint8), value.view(torch.uint8)) for name, value in first.items())
    return f"two calls gave the same bits on {equal} of {total} cells"


def _each(bench: Bench, check: Callable[[Cell], None], *, generated: bool | None = None, few: bool = False, kind: str | None = None) -> str:
    count = 0
    for cell in bench.few(kind) if few else bench.cells(generated=generated, kind=kind):
        _at(bench, cell, check)
        count += 1
    return f"{count} cells"


def _at(bench: Bench, cell: Cell, check: Callable[[Cell], None]) -> None:
    """Names the cell in the reason of what does not hold there."""
    bench.turn_to(cell.where)
    try:
        check(cell)
    except (NotAsked, Broken) as error:
        raise Broken(f"{cell.where}: {error}") from error


def _few(check: Callable[[Cell], None]) -> Callable[[Bench], str]:
    return lambda bench: _each(bench, check, few=True)


CHECKS: Mapping[str, Callable[[Bench], str]] = {
    "binds": binds,
    "correct shapes": correct_shapes,
    "correct generated": correct_generated,
    "poison nan": _few(_poisoned(PATTERNS[0])),
    "poison second": _few(_poisoned(PATTERNS[1])),
    "input negated": _few(_changed(NEGATED)),
    "input fresh": _few(_changed(FRESH)),
    "inputs intact": _few(_intact),
    "shifted buffers": _few(_shifted),
    "after timing": _few(_after_many),
    "joined": _few(_joined),
    "in bounds": _few(_in_bounds),
    "no state": no_state,
    "interleaved": _few(_in_turns),
    "plain tensors": _few(_plain),
    "graph capture": graph_capture,
    "memory constant": memory_constant,
    "determinism": determinism,
}
