"""The command line of subcommands: argparse, with its mistakes told in our way."""

import argparse
from typing import NoReturn

from mkframe.errors import UsageError


class Parser(argparse.ArgumentParser):
    """A mistake raises UsageError, one line, instead of printing a usage text and ending the program. No abbreviations."""

    def __init__(self, prog: str, description: str, epilog: str | None = None) -> None:
        super().__init__(prog=prog, description=description, epilog=epilog, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}; see {self.prog} --help")
