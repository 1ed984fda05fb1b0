"""Engines whose kernels are compiled ahead: a sound one, and one for each way in which a kernel can disappoint. None of them is run."""

from dataclasses import dataclass
from typing import Any

from mkframe.plugin import Engine, Kernel, Launches

KERNELS = f"{__name__.rpartition('.')[0]}.kernels.scaled"


@dataclass(frozen=True, kw_only=True)
class Scaled:
    block: int
    factor: int
    stack: bool = False


@dataclass(frozen=True, kw_only=True)
class Options:
    block: int = 128


class Sound(Engine):
    id = "sound"
    workload = "residual_mlp"
    devices = ("cuda",)
    Options = Options
    stack = False
    expects: tuple[str, ...] = ("ld.global",)

    def unsupported(self, case: Any, precision: Any, device: Any) -> str | None:
        return "needs more shared memory" if device.architecture == "sm_86" and case.rows > 100 else None

    def kernels(self, case: Any, precision: Any, target: Any, options: Options) -> tuple[Kernel, ...]:
        config = Scaled(block=options.block, factor=1 + case.rows % 2, stack=self.stack)
        return (Kernel(module=KERNELS, config=config, shared_bytes=0, block=options.block, name=f"x{config.factor}", expects=self.expects),)

    def bind(self, case: Any, precision: Any, tensors: Any, options: Any) -> Launches:
        raise NotImplementedError


class Spills(Sound):
    id = "spills"
    stack = True


class Lacks(Sound):
    id = "lacks"
    expects = ("ld.global", "mma.sync")


class Breaks(Sound):
    id = "breaks"

    def kernels(self, case: Any, precision: Any, target: Any, options: Options) -> tuple[Kernel, ...]:
        raise KeyError("no tile")


class Misleads(Sound):
    id = "misleads"

    def kernels(self, case: Any, precision: Any, target: Any, options: Options) -> tuple[Kernel, ...]:
        config = Scaled(block=64, factor=1)
        return (Kernel(module=KERNELS, config=config, shared_bytes=0, block=32, name="wrong block"),)


ENGINES = (Sound(), Spills(), Lacks(), Breaks(), Misleads())
