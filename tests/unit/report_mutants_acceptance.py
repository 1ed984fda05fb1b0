"""Kinds of mutants: what the comparison with the reference says of a workload that ships with mkframe."""

from random import Random

from own_mutants import own
from report_mutants import Document, Places


@own
def _twice_the_elements_of_the_output(_: Document, block: Document, __: Random) -> Places:
    for cell in block["cells"]:
        if cell["check"] is not None:
            cell["check"]["elements"] *= 2
    return ("=/mkframe/cells/0/check/elements",)


@own
def _more_excused_rows_than_there_are(_: Document, block: Document, random: Random) -> Places | None:
    index = random.randrange(len(block["cells"]))
    check, shape = block["cells"][index]["check"], block["cells"][index]["shape"]
    if check is None or shape["channels"] < 2:
        return None
    check["rounding_rows"] = shape["rows"] + 1
    return (f"=/mkframe/cells/{index}/check/rounding_rows",)


@own
def _errors_that_no_tolerance_forgives(_: Document, block: Document, __: Random) -> Places | None:
    for cell in block["cells"]:
        if cell["check"] is not None:
            cell["check"] |= {"rtol": 0.0, "atol": 0.0, "max_abs_error": 1e-3, "mean_abs_error": 1e-4, "rounding_rows": 0}
    return ("=/mkframe/cells/0/check/max_abs_error",)
