"""What a tool of compute-sanitizer wrote, read strictly: a log that is not understood is never one of zero errors."""

import re
from dataclasses import dataclass

from mkframe.redact import storable

MOST_MESSAGES = 5
_LONGEST_MESSAGE = 300
_PREFIX = "========="
_HEADER = f"{_PREFIX} COMPUTE-SANITIZER"
_ERRORS = re.compile(r"ERROR SUMMARY: (\d+) errors?")
_UNPRINTED = re.compile(r"ERROR SUMMARY: \d+ errors? (?:were|was) not printed\..*")
_HAZARDS = re.compile(r"RACECHECK SUMMARY: (\d+) hazards? displayed \((\d+) errors?, (\d+) warnings?\)")
_RACE = re.compile(r"(?:Error|Warning|WARN|Info|INFO|ERROR): (?:Race reported|Potential (?:RAW|WAR|WAW) hazard)")
_COMPLAINT = re.compile(r"(?:Internal Sanitizer Error|Error:|Warning:|WARN:|ERROR:)")
_ENDINGS = ("Target application returned an error", "Error: process didn't terminate successfully")
"""How the tool says that the program failed; the program's own exit code and answer say so too."""


class UnreadableLog(Exception):
    """A log that does not say how many errors there were. The message is one clause."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Findings:
    """`errors`, `warnings`: counts. `messages`: the first different ones, a line each. `complaint`: what the tool says of itself, None
    where it worked; the counts hold for what it saw."""

    errors: int
    warnings: int
    messages: tuple[str, ...]
    complaint: str | None = None


def read_log(text: str, tool: str) -> Findings:
    """Raises UnreadableLog for a text that is no whole log of one checked program."""
    if not text.strip():
        raise UnreadableLog("the tool wrote nothing")
    said = [line.removeprefix(_PREFIX) for line in text.splitlines() if line.startswith(_PREFIX)]
    heads = [line.strip() for line in said if line.startswith(" ") and not line.startswith("  ") and line.strip()]
    if text.count(_HEADER) != 1:
        raise UnreadableLog(f"the tool's log begins {text.count(_HEADER)} times")
    complaint = next((storable(head) for head in heads if _complains(head)), None)
    pattern, other = (_HAZARDS, _ERRORS) if tool == "racecheck" else (_ERRORS, _HAZARDS)
    summaries = [found for head in heads if (found := pattern.fullmatch(head))]
    if len(summaries) != 1 or any(other.fullmatch(head) for head in heads):
        ending = f": {complaint}" if complaint else ""
        raise UnreadableLog(f"the tool's log holds {len(summaries)} summaries of {tool}, and 1 was expected{ending}")
    numbers = [int(number) for number in summaries[0].groups()]
    errors, warnings = (numbers[0], 0) if tool != "racecheck" else (numbers[1], max(numbers[2], numbers[0] - numbers[1]))
    messages = _messages(said)
    if messages and not errors and not warnings:
        raise UnreadableLog(f"the tool's log sums up no error and tells of one: {messages[0]}")
    return Findings(errors=errors, warnings=warnings, messages=messages[:MOST_MESSAGES], complaint=complaint)


def _complains(head: str) -> bool:
    return head not in _ENDINGS and _RACE.match(head) is None and _COMPLAINT.match(head) is not None


def _is_message(head: str) -> bool:
    """Whether a line begins an error or a warning of the program; everything else that begins so is known."""
    known = head in (_HEADER.removeprefix(_PREFIX).strip(), *_ENDINGS) or _complains(head)
    return not (known or any(pattern.fullmatch(head) for pattern in (_ERRORS, _UNPRINTED, _HAZARDS)))


def _messages(said: list[str]) -> tuple[str, ...]:
    """Every different first line with the place behind it: `Invalid __global__ write of size 4 bytes at kernel+0x50`."""
    found: dict[str, None] = {}
    for line, following in zip(said, [*said[1:], ""], strict=True):
        head = line.strip()
        if not head or not line.startswith(" ") or line.startswith("  ") or not _is_message(head):
            continue
        place = following.strip() if following.startswith("  ") else ""
        found[storable(f"{head} {place}")[:_LONGEST_MESSAGE]] = None
    return tuple(found)
