"""The targets that ship with mkframe."""

from importlib.resources import files

from mkframe.settings.nodes import TargetGroup, TargetsConfig
from mkframe.settings.typed import typed


def shipped_targets() -> tuple[TargetGroup, ...]:
    """Every group of conf/targets."""
    import yaml

    entries = [entry for entry in files("mkframe_conf").joinpath("targets").iterdir() if entry.name.endswith(".yaml")]
    documents = [(entry.name, yaml.safe_load(entry.read_text(encoding="utf-8"))) for entry in sorted(entries, key=lambda entry: entry.name)]
    return tuple(group for name, document in documents for group in typed(TargetsConfig, document, f"targets/{name}").groups)
