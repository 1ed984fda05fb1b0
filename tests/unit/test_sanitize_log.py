"""What compute-sanitizer writes, read strictly: no text that is not understood counts as zero errors."""

import pytest
from fake_sanitizer import BROKEN, CLEAN, NO_CUDA
from hypothesis import given
from hypothesis import strategies as st

from mkframe.sanitize.log import Findings, UnreadableLog, read_log
from mkframe.sanitize.tool import TOOLS


@pytest.mark.parametrize("tool", TOOLS)
def test_a_clean_log(tool: str) -> None:
    assert read_log(CLEAN[tool], tool) == Findings(errors=0, warnings=0, messages=())


@pytest.mark.parametrize(
    ("tool", "errors", "warnings", "messages"),
    [
        ("memcheck", 257, 0, ("Invalid __global__ write of size 4 bytes at beyond(float *)+0x70 in .../beyond.cu:3",)),
        (
            "racecheck",
            1,
            1,
            (
                "Error: Race reported between Write access at racy(float *)+0x130 and Read access at racy(float *)+0x1b0 [124 hazards]",
                "Warning: Race reported between Write access at racy(float *)+0x110 and Write access at racy(float *)+0x110 [31 hazards]",
            ),
        ),
        ("synccheck", 16, 0, ("Barrier error detected. Divergent thread(s) in block. at divergent(float *)+0xa0",)),
        ("initcheck", 1, 0, ("Uninitialized __global__ memory read of size 4 bytes at unset(float *)+0x50",)),
    ],
)
def test_errors_are_counted_and_the_first_are_told(tool: str, errors: int, warnings: int, messages: tuple[str, ...]) -> None:
    assert read_log(BROKEN[tool], tool) == Findings(errors=errors, warnings=warnings, messages=messages)


@pytest.mark.parametrize("tool", TOOLS)
def test_the_log_of_another_kind_of_tool_is_no_log(tool: str) -> None:
    other = "memcheck" if tool == "racecheck" else "racecheck"
    with pytest.raises(UnreadableLog, match=f"0 summaries of {tool}"):
        read_log(CLEAN[other], tool)


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "wrote nothing"),
        ("garbage\n", "begins 0 times"),
        ("========= COMPUTE-SANITIZER\n", "holds 0 summaries"),
        (NO_CUDA, "Target application terminated before first instrumented API call"),
        ("========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: many errors\n", "holds 0 summaries"),
        (
            "========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 3 errors were not printed. Use --print-limit option\n",
            "holds 0 summaries",
        ),
    ],
)
def test_what_is_no_whole_log(tool: str, text: str, reason: str) -> None:
    with pytest.raises(UnreadableLog, match=reason):
        read_log(text, tool)


@pytest.mark.parametrize("tool", TOOLS)
def test_two_logs_are_none(tool: str) -> None:
    with pytest.raises(UnreadableLog, match="begins 2 times"):
        read_log(CLEAN[tool] * 2, tool)
    summary = CLEAN[tool].splitlines(keepends=True)[1]
    with pytest.raises(UnreadableLog, match="holds 2 summaries"):
        read_log(CLEAN[tool] + summary, tool)


def test_zero_errors_beside_an_error_that_is_told_are_not_zero() -> None:
    text = CLEAN["memcheck"].replace(
        "========= ERROR", "========= Invalid __shared__ read of size 2 bytes\n=========     at k+0x10\n========= ERROR"
    )
    with pytest.raises(UnreadableLog, match="sums up no error and tells of one: Invalid __shared__ read of size 2 bytes at k"):
        read_log(text, "memcheck")


@pytest.mark.parametrize(
    "line", ["Internal Sanitizer Error: Device out of memory", "Error: Device not supported.", "Warning: results are incomplete"]
)
@pytest.mark.parametrize("tool", TOOLS)
def test_what_the_tool_says_of_itself_is_kept(tool: str, line: str) -> None:
    head, summary = CLEAN[tool].splitlines()
    assert read_log(f"{head}\n========= {line}\n{summary}\n", tool).complaint == line


@given(st.text(alphabet=st.sampled_from("= \nABCERORSUMY:0123456789 errorshazdwn()"), max_size=400), st.sampled_from(TOOLS))
def test_no_other_text_is_clean(text: str, tool: str) -> None:
    try:
        found = read_log(text, tool)
    except UnreadableLog:
        return
    assert "COMPUTE-SANITIZER" in text
    assert found.errors >= 0


@given(st.integers(0, 10**9), st.integers(0, 10**9))
def test_every_count_comes_back(errors: int, warnings: int) -> None:
    plural = "" if errors == 1 else "s"
    head = "========= COMPUTE-SANITIZER\n========= Something bad\n"
    if errors:
        assert read_log(f"{head}========= ERROR SUMMARY: {errors} error{plural}\n", "memcheck").errors == errors
    if errors or warnings:
        text = f"{head}========= RACECHECK SUMMARY: 7 hazards displayed ({errors} error{plural}, {warnings} warnings)\n"
        found = read_log(text, "racecheck")
        assert (found.errors, found.warnings >= warnings) == (errors, True)


@given(st.sampled_from(TOOLS), st.data())
def test_a_log_that_was_cut_off_is_never_clean(tool: str, data: st.DataObject) -> None:
    text = BROKEN[tool]
    summary = text.index("SUMMARY")
    cut = text[: data.draw(st.integers(0, summary))]
    with pytest.raises(UnreadableLog):
        read_log(cut, tool)
