"""Which device a run gets, with its engines in view."""

from mkframe.plan.devices import Resolved, cpu, resolve
from mkframe.plan.engines import select
from mkframe.plugin.registry import Registry
from mkframe.settings.nodes import Config, DeviceKind


def device_for(config: Config, registry: Registry) -> Resolved:
    """The device that the configuration names. `auto` takes a CUDA device only where a selected engine can use one.

    Raises what `resolve` and `select` raise.
    """
    resolved = resolve(config.device)
    if config.device.kind is not DeviceKind.AUTO or resolved.device.kind != "cuda":
        return resolved
    selected = select(config.engine, config.workload.id, registry, resolved.device)
    if any("cuda" in item.engine.devices for item in selected):
        return resolved
    names = ", ".join(item.plan.id for item in selected)
    device = cpu()
    return Resolved(device=device, note=f"device: {device.name} (CPU), because no CUDA kernel exists yet for {names}")
