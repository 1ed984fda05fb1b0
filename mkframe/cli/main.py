"""The command line: the first word picks a subcommand, everything else is a run."""

import importlib
import os
import sys
from collections.abc import Sequence

from mkframe import __version__
from mkframe.errors import MkframeError

COMMANDS = {
    "validate": "mkframe.cli.validate_command",
    "engines": "mkframe.cli.engines_command",
    "plan": "mkframe.cli.plan_command",
    "conformance": "mkframe.cli.conformance_command",
    "table": "mkframe.cli.table_command",
    "device": "mkframe.cli.device_command",
    "doctor": "mkframe.cli.doctor_command",
    "compare": "mkframe.cli.compare_command",
}
_RUN = "mkframe.cli.run_command"


def main(argv: Sequence[str]) -> int:
    """Runs a command line and returns its exit code: 0 fine, 1 findings or failed cells, 2 usage or unreadable input."""
    words = list(argv)
    if words == ["--version"]:
        print(f"mkframe {__version__}")
        return 0
    if words and words[0] in COMMANDS:
        module, words = COMMANDS[words[0]], words[1:]
    else:
        module = _RUN
    try:
        code: int = importlib.import_module(module).main(words)
        if sys.stdout is not None:
            sys.stdout.flush()
        return code
    except MkframeError as error:
        print(f"mkframe: {' '.join(str(error).split())}", file=sys.stderr)
        return error.exit_code
    except SystemExit as done:  # argparse, after --help
        return int(done.code or 0)
    except BrokenPipeError:  # whoever read our output has gone, as in `mkframe table ... | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        print("mkframe: interrupted", file=sys.stderr)
        return 1


def entry() -> None:
    """The console script."""
    sys.exit(main(sys.argv[1:]))
