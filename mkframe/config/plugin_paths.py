"""Where plugins are looked for: known before anything is composed, because plugins bring configuration nodes."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from mkframe.errors import ConfigError, UnreadableError

VARIABLE = "MKFRAME_PLUGIN_PATH"
KEY = "plugin_path"


def split_plugin_paths(argv: Sequence[str], environ: Mapping[str, str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(absolute plugin folders, the arguments without `plugin_path=...`).

    `plugin_path=DIR` or `plugin_path=[a,b]`, the last one counts; then the folders of MKFRAME_PLUGIN_PATH, separated as in
    PATH. Folders named twice count once. Raises ConfigError for `plugin_path=a,b`, UnreadableError where the current folder
    has been deleted: nothing that is relative to it can be found then.
    """
    _require_current_folder()
    named: tuple[str, ...] = ()
    rest = []
    for argument in argv:
        if argument.startswith(f"{KEY}="):
            named = _parse(argument.removeprefix(f"{KEY}="))
        else:
            rest.append(argument)
    paths = [*named, *(item for item in environ.get(VARIABLE, "").split(os.pathsep) if item)]
    return tuple(dict.fromkeys(str(Path(path).expanduser().absolute()) for path in paths)), tuple(rest)


def _require_current_folder() -> None:
    try:
        os.getcwd()
    except OSError as error:
        raise UnreadableError("the current folder does not exist any more; change to another one and start again") from error


def _parse(text: str) -> tuple[str, ...]:
    text = _unquote(text.strip())
    if text.startswith("[") and text.endswith("]"):
        items = text[1:-1].split(",")
    elif "," in text and not Path(text).expanduser().exists():
        raise ConfigError(f"plugin_path: write a list with brackets, in quotes: 'plugin_path=[{text}]'")
    else:
        items = [text]
    return tuple(cleaned for item in items if (cleaned := _unquote(item.strip())))


def _unquote(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"" else text
