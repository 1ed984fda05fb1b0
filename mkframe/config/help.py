"""`mkframe --help`: usage, the groups with their choices, examples."""

from collections.abc import Mapping, Sequence

_HEAD = """\
usage: python -m mkframe [OVERRIDE...]          one run, one report
       python -m mkframe -m [OVERRIDE...]       one run for each combination of values with commas
       python -m mkframe resume=RUN_FOLDER      goes on with a run that ended early, and writes its report
       python -m mkframe COMMAND ...            another command, below; COMMAND --help says more

Overrides read KEY=VALUE. A group takes a choice (engine=persistent); engine and shape take several, in brackets and quotes.
"""

_TAIL = """\
commands:
  validate FILE...          checks reports against their schema and their samples file's hash; needs no GPU
  explain FILE              a page for a reviewer: what was measured, how, what follows from it
  table FILE...             prints reports as tables
  compare BASE NEW          what is faster or slower in NEW than in BASE
  engines                   what there is, and what cannot run here and why
  plan [OVERRIDE...]        what a run would do; with --estimate, how long it would take
  conformance OVERRIDE...   asks an engine of yours everything that it must satisfy
  compile [OVERRIDE...]     kernels compiled without a GPU: registers, spills, instructions
  cache [clear]             compiled kernels on disk
  sanitize [OVERRIDE...]    CUDA engines under compute-sanitizer
  device probe              floors and bandwidths of this device, as a card
  doctor                    what this machine can and cannot measure

flags (anywhere on the line):
  -m, --multirun            sweep: values with commas make one job each
  --quiet                   print nothing but errors
  --json                    print one JSON document per job instead of the table
  sanitizers=FILE           a result of sanitize for the report to repeat
  --cfg job|hydra|all       print the composed configuration instead of running
  --info all|defaults|...   what Hydra knows of it
  --config-dir DIR          a folder with more choices, laid out as conf/
  --config-name NAME        another primary configuration in that folder
  --hydra-help              Hydra's own help
  --version                 the version of mkframe

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
