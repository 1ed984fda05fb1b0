"""The names of the checks that a cell goes through, in their order (the table in docs/measurement.md says what each of them does)."""

_ALWAYS = ("poison nan", "poison second", "input negated", "input fresh", "inputs intact", "shifted buffers", "plain tensors")
_PRODUCER = "producer"
_AFTER_TIMING = "after timing"
_CHAIN = "chain on poison"
_AFTER = ("fresh input", "joined")
_IDLE = "device idle"


def checks_before_timing(device_kind: str) -> tuple[str, ...]:
    """What a cell has gone through when it is ready to be timed. `device_kind` is cpu or cuda."""
    return (*_ALWAYS, _PRODUCER) if device_kind == "cuda" else _ALWAYS


def all_checks(device_kind: str, *, chained: bool) -> tuple[str, ...]:
    """What a cell has gone through when it is closed: what came before its timing, then what came after it. `chained` is that of its
    mkframe.model.plan.TimingPlan."""
    after = (_AFTER_TIMING, *((_CHAIN,) if chained else ()), *_AFTER, *((_IDLE,) if device_kind == "cuda" else ()))
    return (*checks_before_timing(device_kind), *after)
