"""`mkframe --help`: usage, the groups with their choices, examples."""

from collections.abc import Mapping, Sequence

_HEAD = """\
usage: python -m mkframe [OVERRIDE...]          one run, one report
       python -m mkframe -m [OVERRIDE...]       one run for each combination of values with commas

Overrides read KEY=VALUE. A group takes a choice (engine=persistent); engine and shape take several, in brackets and quotes.
"""

_TAIL = """\
flags (anywhere on the line):
  -m, --multirun            sweep: values with commas make one job each
  --cfg job|hydra|all       print the composed configuration instead of running
  --info all|defaults|...  what Hydra knows of it
  --config-dir DIR          a folder with more choices, laid out as conf/
  --config-name NAME        another primary configuration in that folder
  --hydra-help              Hydra's own help

examples:
  python -m mkframe engine=persistent shape=assessment device=cpu
  python -m mkframe engine=all 'shape=[development,assessment]' out=results/today
  python -m mkframe shape=grid 'shape.grid.rows={start: 1, stop: 1024, factor: 4}' timing.rounds=10
  python -m mkframe -m engine=persistent,conventional shape=smoke
"""

_WIDTH = 108


def help_text(groups: Mapping[str, Sequence[str]]) -> str:
    lines = [_HEAD, "groups:"]
    for group, options in groups.items():
        lines.extend(_wrapped(group, options))
    return "\n".join([*lines, "", _TAIL])


def _wrapped(group: str, options: Sequence[str]) -> list[str]:
    lines = [f"  {group:<10}"]
    for option in options:
        if len(lines[-1]) + len(option) > _WIDTH:
            lines.append(" " * 12)
        lines[-1] += f" {option}"
    return lines
