"""Engines that declare or answer what they must not, one for each requirement that needs no tensor."""

import time
from dataclasses import dataclass, field
from enum import Enum

from mkframe.plugin import Engine, Kernel, Launches, Role, TensorSpec


class Answering(Engine):
    workload, devices, precisions = "scaling", ("cpu",), ("fp32",)

    def bind(self, case, precision, tensors, options):
        import torch

        x, w, y = (tensors[name] for name in ("x", "w", "y"))
        return Launches(call=lambda: _into(torch, x, w, y))


def _into(torch, x, w, y):
    torch.add(x * w, 1, out=y)


class RaisingUnsupported(Answering):
    id = "raising-unsupported"

    def unsupported(self, case, precision, device):
        return {}[case.rows] if case.rows == 7 else None


class EmptyReason(Answering):
    id = "empty-reason"

    def unsupported(self, case, precision, device):
        return "" if case.rows == 3 else None


_asked = [0]


class FickleUnsupported(Answering):
    id = "fickle-unsupported"

    def unsupported(self, case, precision, device):
        _asked[0] += 1
        return f"refused at question {_asked[0]}" if case.rows > 10**6 else None


class SlowUnsupported(Answering):
    id = "slow-unsupported"

    def unsupported(self, case, precision, device):
        time.sleep(0.0015)
        return None


class NumberedImplementation(Answering):
    id = "numbered-implementation"

    def implementation(self, device):
        return 3


class MissingSource(Answering):
    id = "missing-source"

    def sources(self):
        return ("kernel that is not there.cu",)


@dataclass(frozen=True)
class _TextForNumber:
    tile: int = "64"  # type: ignore[assignment]


class WrongDefault(Answering):
    id, Options = "wrong-default", _TextForNumber


@dataclass(frozen=True)
class _RefusedDefault:
    tile: int = field(default=0)

    def __post_init__(self):
        if self.tile < 1:
            raise ValueError("tile must be at least 1")


class RefusedDefault(Answering):
    id, Options = "refused-default", _RefusedDefault


class Mode(Enum):
    FAST = "fast"

    def __eq__(self, other):
        return True

    __hash__ = Enum.__hash__


@dataclass(frozen=True)
class _TakesAnything:
    mode: Mode = Mode.FAST


class AnyOption(Answering):
    id, Options = "any-option", _TakesAnything


class ScratchList(Answering):
    id = "scratch-list"

    def scratch(self, case, precision, options):
        return [TensorSpec(shape=(4,), dtype="float32", role=Role.SCRATCH)]


class ScratchTaken(Answering):
    id = "scratch-taken"

    def scratch(self, case, precision, options):
        return {"x": TensorSpec(shape=(4,), dtype="float32", role=Role.SCRATCH)}


class ScratchRole(Answering):
    id = "scratch-role"

    def scratch(self, case, precision, options):
        return {"h": TensorSpec(shape=(4,), dtype="float32", role=Role.INPUT)}


class ScratchDtype(Answering):
    id = "scratch-dtype"

    def scratch(self, case, precision, options):
        return {"h": TensorSpec(shape=(4,), dtype="float17", role=Role.SCRATCH)}


class ScratchShape(Answering):
    id = "scratch-shape"

    def scratch(self, case, precision, options):
        return {"h": TensorSpec(shape=(case.rows / 2,), dtype="float32", role=Role.SCRATCH)}


class ScratchFickle(Answering):
    id = "scratch-fickle"

    def scratch(self, case, precision, options):
        _asked[0] += 1
        return {"h": TensorSpec(shape=(_asked[0],), dtype="float32", role=Role.SCRATCH)}


@dataclass(frozen=True)
class Instance:
    number: int = 0


def kernel(**changes):
    return Kernel(**({"module": "m", "config": Instance(), "shared_bytes": 0, "block": 128, "name": "k"} | changes))


class KernelsNone(Answering):
    id, devices = "kernels-none", ("cpu", "cuda")

    def kernels(self, case, precision, target, options):
        return None


class KernelsRaising(Answering):
    id, devices = "kernels-raising", ("cpu", "cuda")

    def kernels(self, case, precision, target, options):
        return (kernel(block=2000),)


class KernelsLarge(Answering):
    id, devices = "kernels-large", ("cpu", "cuda")

    def kernels(self, case, precision, target, options):
        return (kernel(shared_bytes=200_000, name="large"),)


class KernelsFickle(Answering):
    id, devices = "kernels-fickle", ("cpu", "cuda")

    def kernels(self, case, precision, target, options):
        _asked[0] += 1
        return (kernel(config=Instance(_asked[0])),)


ENGINES = tuple(kind() for kind in Answering.__subclasses__())
