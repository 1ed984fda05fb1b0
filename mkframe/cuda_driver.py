"""The CUDA driver API, with errors as exceptions."""

from typing import Any


def driver() -> Any:
    """cuda.bindings.driver. Raises ImportError where the package is missing."""
    from cuda.bindings import driver as bindings

    return bindings


def check(result: tuple[Any, ...]) -> Any:
    """Unpacks what a driver call returned. Raises RuntimeError with the driver's name of the error."""
    status, *values = result
    if int(status) != 0:
        raise RuntimeError(f"CUDA driver error {status.name}")
    return values[0] if len(values) == 1 else tuple(values)
