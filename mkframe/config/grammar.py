"""What Hydra's grammar of overrides refuses without a reason, and what it accepts in silence."""

import re
from collections.abc import Iterator
from typing import Any

from antlr4 import CommonTokenStream, InputStream  # type: ignore[import-untyped, unused-ignore]
from hydra.grammar.gen.OverrideLexer import OverrideLexer
from hydra.grammar.gen.OverrideParser import OverrideParser

_KEY = re.compile(r"(?:\+{0,2}|~)[A-Za-z0-9_][\w-]*(?:[./][A-Za-z0-9_][\w-]*)*(?:@.*)?", re.ASCII)


def is_key(text: str) -> bool:
    """Whether the part of an override before the first = can be a key."""
    return _KEY.fullmatch(text) is not None


def repeated_key(text: str) -> str | None:
    """A key that stands twice in one {...} of an override that the grammar accepts; Hydra keeps the last one."""
    if text.count("{") == 0 or text.count(":") < 2:
        return None
    parser: Any = OverrideParser(CommonTokenStream(OverrideLexer(InputStream(text))))
    for node in _walk(parser.override()):
        if isinstance(node, OverrideParser.DictContainerContext):
            keys = [pair.getChild(0).getText().strip() for pair in node.getChildren() if pair.getChildCount()]
            for key in keys:
                if keys.count(key) > 1:
                    return str(key)
    return None


def _walk(root: Any) -> Iterator[Any]:
    stack = [root]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(list(node.getChildren())) if node.getChildCount() else ())
