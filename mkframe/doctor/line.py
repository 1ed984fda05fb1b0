"""What the doctor says: one line per thing it looked at."""

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any


class Status(StrEnum):
    """`warn`: measuring works, with a catch. `no`: something cannot be measured."""

    OK = "ok"
    WARN = "warn"
    NO = "no"


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """`found` is the fact, `means` what it does to measurements, `advice` what to do (None where nothing is to be done).

    `stops` names the kinds of devices ("cpu", "cuda") on which nothing can be measured because of it.
    """

    topic: str
    status: Status
    found: str
    means: str
    advice: str | None = None
    stops: tuple[str, ...] = ()

    def document(self) -> dict[str, Any]:
        return {**asdict(self), "status": str(self.status), "stops": list(self.stops)}


KINDS = ("cpu", "cuda")


def ok(topic: str, found: str, means: str) -> Line:
    return Line(topic=topic, status=Status.OK, found=found, means=means)


def warn(topic: str, found: str, means: str, advice: str | None) -> Line:
    return Line(topic=topic, status=Status.WARN, found=found, means=means, advice=advice)


def no(topic: str, found: str, means: str, advice: str | None, *stops: str) -> Line:
    return Line(topic=topic, status=Status.NO, found=found, means=means, advice=advice, stops=stops)
