"""The plan: everything a run will do, decided and checked before anything is allocated. No torch, no CUDA context."""

from mkframe.plan.build import build_plan
from mkframe.plan.devices import Resolved, resolve

__all__ = ["Resolved", "build_plan", "resolve"]
