"""The timing protocol of a run, resolved and checked."""

from mkframe.model.device import Device
from mkframe.model.plan import TimingPlan
from mkframe.settings.nodes import TimingConfig
from mkframe.settings.timing import check_timing, own_keys

SPIN_UP_S = 1.0


def timing_plan(config: TimingConfig, device: Device) -> TimingPlan:
    """`auto` resolved, ranges checked. Raises ConfigError."""
    cuda = device.kind == "cuda"
    check_timing(config, cuda=cuda)
    spin_up_s = (SPIN_UP_S if cuda else 0.0) if config.spin_up_s == "auto" else config.spin_up_s
    return TimingPlan(
        protocol=config.protocol.value,
        rounds=config.rounds,
        samples_per_round=config.samples_per_round,
        processes=config.processes,
        warmups=config.warmups,
        hold=cuda if config.hold == "auto" else config.hold,
        spin_up_s=spin_up_s,
        cell_timeout_s=config.cell_timeout_s,
        **own_keys(config),
    )
