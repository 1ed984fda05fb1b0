"""The workload door."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from math import inf
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mkframe.model.precision import Precision
from mkframe.model.tensors import TensorSpec

Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Tolerance:
    """An element passes when |output - reference| <= atol + rtol |reference|. ValueError unless both are finite and at least 0."""

    rtol: float
    atol: float

    def __post_init__(self) -> None:
        for name in ("rtol", "atol"):
            value: Any = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < inf:
                raise ValueError(f"{name} must be a finite number of at least 0, not {value!r}")


LARGEST_ERROR = float(np.finfo(np.float64).max)
"""Stands for the error of NaN and of infinities: JSON has neither."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Acceptance:
    """Whether an output is right, and how far it is off.

    `violations` counts elements beyond tolerance that nothing excuses; `rounding_rows` counts rows that were excused
    because the rounding of an intermediate at a rounding boundary explains them.
    """

    max_abs_error: float
    mean_abs_error: float
    violations: int
    elements: int
    rtol: float
    atol: float
    rounding_rows: int = 0

    @property
    def passed(self) -> bool:
        return self.violations == 0

    @property
    def finding(self) -> str:
        """How far an output is off, as one clause."""
        not_finite = self.max_abs_error >= LARGEST_ERROR
        how = "the output holds NaN or infinities" if not_finite else f"largest error {self.max_abs_error:.3g}"
        return f"{self.violations} of {self.elements} elements are beyond tolerance ({how})"


@dataclass(frozen=True, kw_only=True, slots=True)
class Cost:
    """The least a call must move and compute: bytes with every tensor touched once, and floating-point operations."""

    bytes: int
    flops: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Defaults:
    """What a run of this workload uses where the user says nothing."""

    engines: tuple[str, ...]
    shapes: tuple[str, ...]
    precision: str = "fp16"


class Workload(ABC):
    """What is computed, exactly. One file is one workload; docs/plugins.md shows a complete one.

    id: lower-case letters, digits and hyphens or underscores.
    Case: frozen dataclass of integers; its fields are the report's `shape`. A field with a default is left out of the
        report where it has that default.
    precisions: ids of the contracts that the workload defines.
    defaults: see Defaults.
    shapes: shape sets that come with the workload (name -> list of cases as dictionaries), beside those in conf/shape.
    eager_id: id of the engine that evaluates `expression` as it stands.
    """

    id: ClassVar[str]
    Case: ClassVar[type]
    precisions: ClassVar[tuple[str, ...]]
    defaults: ClassVar[Defaults]
    shapes: ClassVar[Mapping[str, Sequence[Mapping[str, int]]]] = MappingProxyType({})
    eager_id: ClassVar[str] = "torch-eager"

    @abstractmethod
    def tensors(self, case: Any, precision: Precision) -> Mapping[str, TensorSpec]:
        """Every input, weight and output by name, in the order in which engines take them."""

    @abstractmethod
    def draw(self, case: Any, seed: int) -> Arrays:
        """Inputs and weights as float32 or integer arrays: same seed, same values, on every machine. Use
        `numpy.random.Generator(numpy.random.PCG64(seed))`. The framework rounds them to the contract's dtypes."""

    @abstractmethod
    def reference(self, case: Any, precision: Precision, inputs: Arrays) -> Arrays:
        """The right outputs in float64, rounded only where the contract rounds. `inputs` hold the values that the
        device sees, as float64 (integers as int64)."""

    @abstractmethod
    def tolerance(self, precision: Precision) -> Tolerance:
        """How far an element may be off."""

    @abstractmethod
    def cost(self, case: Any, precision: Precision) -> Cost:
        """Bytes and operations of one call, for rates and shares of peak."""

    @abstractmethod
    def expression(self, case: Any, precision: Precision, tensors: Mapping[str, Any]) -> None:
        """The computation in torch operators, writing the output tensors in place with the last operator's `out=`, so that
        no copy is added to it. Gives the engines `torch-eager` and `torch-compile`."""

    def accepts(self, case: Any, precision: Precision, inputs: Arrays, outputs: Arrays, reference: Arrays) -> Acceptance:
        """Compares outputs (float64, integers as int64) with the reference: every element within `tolerance`."""
        return elementwise(outputs, reference, self.tolerance(precision))

    def shape_of(self, case: Any) -> dict[str, int]:
        """The report's `shape`: the fields of the case, without those that have their default."""
        defaults = {name: f.default for name, f in self.Case.__dataclass_fields__.items()}  # type: ignore[attr-defined]
        return {name: value for name, value in asdict(case).items() if value != defaults[name]}


def elementwise(outputs: Arrays, reference: Arrays, tolerance: Tolerance) -> Acceptance:
    """Acceptance of every element by itself. NaN and infinity violate; errors are then reported as the largest float."""
    worst, total, violations, elements = 0.0, 0.0, 0, 0
    for name, expected in reference.items():
        error, beyond = deviations(outputs[name], expected, tolerance)
        worst = max(worst, float(error.max(initial=0.0)))
        total += float(error.sum())
        violations += int(np.count_nonzero(beyond))
        elements += expected.size
    return Acceptance(
        max_abs_error=min(worst, LARGEST_ERROR),
        mean_abs_error=min(total / elements, LARGEST_ERROR),
        violations=violations,
        elements=elements,
        rtol=tolerance.rtol,
        atol=tolerance.atol,
    )


def deviations(output: NDArray[Any], expected: NDArray[Any], tolerance: Tolerance) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """|output - expected| per element (what is not finite becomes infinity), and which elements are beyond tolerance."""
    with np.errstate(invalid="ignore", over="ignore"):
        error = np.abs(output.astype(np.float64) - expected.astype(np.float64))
    error = np.where(np.isfinite(error), error, np.inf)
    return error, error > tolerance.atol + tolerance.rtol * np.abs(expected)


@dataclass(frozen=True, slots=True)
class _Format:
    """A binary floating-point format: significand bits with the hidden one, smallest normal exponent, largest value."""

    significand_bits: int
    min_exponent: int
    largest: float = field(repr=False)


_FORMATS = {
    "float16": _Format(11, -14, 65504.0),
    "bfloat16": _Format(8, -126, float(np.ldexp(2.0 - 2.0**-7, 127))),
    "float32": _Format(24, -126, float(np.finfo(np.float32).max)),
}


def spacing_of(values: NDArray[np.float64], dtype: str) -> NDArray[np.float64]:
    """The distance between neighbours of `dtype` in the binade of each value (float64 array of the same shape): from a value
    of `dtype` to the next one away from zero. At zero, and for all that is smaller than the normal values, a subnormal step."""
    form = _FORMATS[dtype]
    _, exponent = np.frexp(values)  # |values| in [0.5, 1) 2^exponent, but 0 for zero
    lowest = np.where(values == 0.0, form.min_exponent, np.maximum(exponent - 1, form.min_exponent))
    spacing: NDArray[np.float64] = np.ldexp(1.0, lowest - (form.significand_bits - 1))
    return spacing


def round_to(values: NDArray[np.float64], dtype: str) -> NDArray[np.float64]:
    """Rounds float64 values to `dtype` in ONE step (nearest, ties to even), kept as float64.

    torch rounds float64 to half by way of float32, which rounds twice; a reference must not. `float64` changes nothing.
    """
    if dtype == "float64":
        return values
    spacing = spacing_of(values, dtype)
    with np.errstate(over="ignore"):  # the largest float64 may round up to infinity
        rounded = np.rint(values / spacing) * spacing
    return np.where(np.abs(rounded) > _FORMATS[dtype].largest, np.copysign(np.inf, values), rounded)
