"""What the reader finds before any rule is asked: these findings end the validation, and the exit code is 2."""

from dataclasses import dataclass

from mkframe.validate import reader, values

FORMAT = "format"


@dataclass(frozen=True, kw_only=True, slots=True)
class ReadingRule:
    """`id` stands in the findings; `says` is the demand in one line."""

    id: str
    says: str


READING_RULES = (
    ReadingRule(id=reader.RULE, says="the file is a regular one, can be opened and is not larger than the limit"),
    ReadingRule(
        id=values.RULE,
        says="the file is one JSON document in UTF-8 without NaN, infinities, numbers beyond float64, repeated or very long keys, "
        "lone surrogates or deep nesting",
    ),
    ReadingRule(id=FORMAT, says="the document is a comparison report, an energy report or a device card"),
)
