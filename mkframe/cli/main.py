"""The command line: the first word picks a subcommand, everything else is a run."""

import importlib
import sys
from collections.abc import Sequence

from mkframe import __version__
from mkframe.cli.output import drop_unwritable_stderr, silence_stdout, stand_in_for_closed_streams, tell
from mkframe.errors import MkframeError

COMMANDS = {
    "validate": "mkframe.cli.validate_command",
    "explain": "mkframe.cli.explain_command",
    "engines": "mkframe.cli.engines_command",
    "plan": "mkframe.cli.plan_command",
    "conformance": "mkframe.cli.conformance_command",
    "table": "mkframe.cli.table_command",
    "device": "mkframe.cli.device_command",
    "doctor": "mkframe.cli.doctor_command",
    "compare": "mkframe.cli.compare_command",
    "compile": "mkframe.cli.compile_command",
    "sanitize": "mkframe.cli.sanitize_command",
    "cache": "mkframe.cli.cache_command",
}
_READERS = {"validate", "explain", "table", "compare"}
"""Commands that do nothing but print what they found. Others leave a report, a card or a cache behind, printed or not."""
_RUN = "mkframe.cli.run_command"
_NEEDED = (
    "hydra",
    "omegaconf",
    "yaml",
    "numpy",
    "scipy",
    "torch",
    "rich",
    "jsonschema",
    "jsonschema_rs",
    "pynvml",
    "mkframe_plugins",
    "mkframe_conf",
    "mkframe_schemas",
)


def main(argv: Sequence[str]) -> int:
    """Runs a command line and returns its exit code: 0 fine, 1 findings or failed cells, 2 usage, unreadable input or output that
    cannot be written."""
    output_is_closed = stand_in_for_closed_streams()
    words = list(argv)
    if output_is_closed and words and words[0] in _READERS:
        tell(f"mkframe {words[0]}: standard output is closed; redirect it to /dev/null where the exit code is enough")
        return 2
    try:
        return _run(words)
    finally:
        drop_unwritable_stderr()


def _run(words: list[str]) -> int:
    interrupted = 2 if words and words[0] in COMMANDS else 1  # a run keeps what it measured; of what others read nothing can be said
    if words and words[0] in COMMANDS:
        module, words = COMMANDS[words[0]], words[1:]
    else:
        module = _RUN
    try:
        if words == ["--version"]:
            print(f"mkframe {__version__}", flush=True)
            return 0
        code: int = importlib.import_module(module).main(words)
        sys.stdout.flush()
        return code
    except MkframeError as error:
        tell(f"mkframe: {' '.join(str(error).split())}")
        return error.exit_code
    except SystemExit as done:  # argparse, after --help
        return int(done.code or 0)
    except BrokenPipeError:  # whoever read our output has gone, as in `mkframe table ... | head`
        silence_stdout()
        return 1
    except OSError as error:
        silence_stdout()
        tell(f"mkframe: {error.filename or 'standard output'}: {error.strerror or error}")
        return 2
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in _NEEDED:
            raise
        tell(f"mkframe: this Python lacks {error.name}; use scripts/bench, or install mkframe with pip install .")
        return 2
    except KeyboardInterrupt:
        silence_stdout()
        tell("mkframe: interrupted")
        return interrupted


def entry() -> None:
    """The console script."""
    sys.exit(main(sys.argv[1:]))
