"""The command line of a run: a few flags, anywhere, and overrides."""

from collections.abc import Sequence
from dataclasses import dataclass

from mkframe.errors import UsageError
from mkframe.plugin.registry import choices

_FLAGS = {
    "-h": "help",
    "--help": "help",
    "--hydra-help": "hydra_help",
    "-m": "multirun",
    "--multirun": "multirun",
    "--resolve": "resolve",
}
_VALUES = {
    "-c": "cfg",
    "--cfg": "cfg",
    "-i": "info",
    "--info": "info",
    "-cd": "config_dir",
    "--config-dir": "config_dir",
    "-cn": "config_name",
    "--config-name": "config_name",
}
_OF_A_RUN = ("--quiet", "--json", "--version")
"""What the commands take off the line before it comes here."""
_ALLOWED = {
    "cfg": ("job", "hydra", "all"),
    "info": ("all", "config", "defaults", "defaults-tree", "plugins", "searchpath"),
}
_REFUSED = {
    "-cp": "the configuration folder ships with mkframe; add a folder of your own with --config-dir DIR",
    "--config-path": "the configuration folder ships with mkframe; add a folder of your own with --config-dir DIR",
    "-r": "a run is what happens without any flag; leave it out",
    "--run": "a run is what happens without any flag; leave it out",
    "-p": "use --cfg job to see the whole configuration",
    "--package": "use --cfg job to see the whole configuration",
    "-sc": "mkframe installs no shell completion",
    "--shell-completion": "mkframe installs no shell completion",
    "--experimental-rerun": "a run keeps no pickled configuration; repeat its overrides instead",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Arguments:
    overrides: tuple[str, ...] = ()
    help: bool = False
    hydra_help: bool = False
    multirun: bool = False
    resolve: bool = False
    cfg: str | None = None
    info: str | None = None
    config_dir: str | None = None
    config_name: str = "config"


def parse(argv: Sequence[str]) -> Arguments:
    """Flags may stand before, between and behind the overrides. Raises UsageError."""
    values: dict[str, str | bool] = {}
    overrides = []
    rest = iter(argv)
    for word in rest:
        name, _, attached = word.partition("=") if word.startswith("--") else (word, "", "")
        if name in _REFUSED:
            raise UsageError(f"{name}: {_REFUSED[name]}")
        if name in _FLAGS and not attached:
            values[_FLAGS[name]] = True
        elif name in _VALUES:
            values[_VALUES[name]] = _value(name, attached or next(rest, ""))
        elif word.startswith("-"):
            raise UsageError(
                f"no option is called {name}; {choices(name, [flag for flag in (*_FLAGS, *_VALUES, *_OF_A_RUN) if flag.startswith('--')])}"
            )
        else:
            overrides.append(_override(word))
    return Arguments(overrides=tuple(overrides), **values)  # type: ignore[arg-type]


def _value(name: str, value: str) -> str:
    allowed = _ALLOWED.get(_VALUES[name])
    if allowed is None and (not value or value.startswith("-")):
        raise UsageError(f"{name} needs a value")
    if allowed is not None and value not in allowed:
        raise UsageError(f"{name} takes one of {', '.join(allowed)}, not {value!r}")
    return value


def _override(word: str) -> str:
    if word.startswith("=") or ("=" not in word and not word.startswith("~")):
        raise UsageError(f"{word!r} is no override and no command; overrides read KEY=VALUE, as in engine=persistent")
    return word
