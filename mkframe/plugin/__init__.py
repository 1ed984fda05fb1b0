"""The two doors: engines and workloads. Third parties and built-ins import from here and nowhere else in mkframe,
beside mkframe.kernels for kernels that are compiled.

A plugin is one Python file. It names what it brings in module constants:

    WORKLOADS = (MyWorkload(),)             benchmarks
    ENGINES = (MyEngine(),)                 ways to compute one of them
    ENGINE_FACTORIES = (function,)          workload -> engines, called once for every workload

docs/plugins.md shows a complete file of each kind.
"""

from mkframe.model.device import Device
from mkframe.model.kernel import Kernel, Target
from mkframe.model.precision import Precision
from mkframe.model.tensors import Role, TensorSpec
from mkframe.plugin.engine import Engine, NoOptions
from mkframe.plugin.launches import KernelNode, Launches
from mkframe.plugin.workload import Acceptance, Cost, Defaults, Tolerance, Workload, deviations, elementwise, round_to, spacing_of

__all__ = [
    "Acceptance",
    "Cost",
    "Defaults",
    "Device",
    "Engine",
    "Kernel",
    "KernelNode",
    "Launches",
    "NoOptions",
    "Precision",
    "Role",
    "Target",
    "TensorSpec",
    "Tolerance",
    "Workload",
    "deviations",
    "elementwise",
    "round_to",
    "spacing_of",
]
