"""Replaces what a report's figures come from."""

import sys

sys.modules["mkframe.stats"].summarize = lambda samples: None  # type: ignore[attr-defined]
ENGINES = ()
