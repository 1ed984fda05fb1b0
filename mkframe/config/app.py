"""One entry for the command line of a run: single runs, sweeps, and what can be shown without running.

Hydra composes; running is ours: its own job runner stops a sweep at the first failure, exits 1 for a mistake of the user,
and writes folders and logs that a report does not need.
"""

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from mkframe.config.arguments import Arguments, parse
from mkframe.config.folders import claim_job_folder, claim_run_folder, claim_sweep_folder
from mkframe.config.patience import tell_if_slow
from mkframe.errors import ConfigError, MkframeError, UsageError
from mkframe.plugin.registry import Registry
from mkframe.settings.nodes import Config

if TYPE_CHECKING:
    from omegaconf import DictConfig

    from mkframe.config.compose import Composer

Plan = TypeVar("Plan")
_FOLDERS = ("hydra.run.dir", "hydra.sweep.dir")


@dataclass(frozen=True, kw_only=True, slots=True)
class JobResult:
    """The end of one job. `report` is the report's name in the job's folder, `error` one line; either may be absent.
    `interrupted`: somebody asked for the end of it all."""

    exit_code: int
    report: str | None = None
    error: str | None = None
    interrupted: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class SweepJob:
    """One job of a sweep. `folder` is relative to the sweep's folder, "" where none was made.

    For the index, `overrides` are only those that say what is measured, without `out` and Hydra's own, which name folders.
    """

    number: int
    overrides: tuple[str, ...]
    folder: str
    result: JobResult


@dataclass(frozen=True, kw_only=True, slots=True)
class _Prepared(Generic[Plan]):
    overrides: tuple[str, ...]
    composed: "DictConfig"
    config: Config
    plan: Plan


def run_hydra(
    argv: Sequence[str],
    registry: Registry,
    *,
    prepare: Callable[[Config], Plan],
    job: Callable[[Plan, Path], JobResult],
    finish_sweep: Callable[[Path, tuple[SweepJob, ...]], None],
    plugin_paths: Sequence[str] = (),
    tell: Callable[[str], None] | None = None,
) -> int:
    """Does what a command line without its subcommand asks for; returns the exit code.

    `prepare` turns a configuration into a plan and is called for every job before the first one runs; `job` runs a plan in a
    folder that exists and belongs to it alone; `finish_sweep` gets the sweep's folder and all results, also after Ctrl-C.
    `tell` says what is going on where composing takes long (on stderr where it is not given).
    A MkframeError becomes one line on stderr and its exit code; in a sweep, a job that fails does not stop the others.
    """
    try:
        arguments = parse(argv)
        from mkframe.config.compose import Composer  # Hydra costs its import only here

        composer = Composer(registry, config_dir=arguments.config_dir, config_name=arguments.config_name)
        if arguments.help:
            print(_help(composer))
        elif arguments.hydra_help or arguments.info:
            _show_hydra(arguments, composer)
        elif arguments.multirun or "hydra.mode=MULTIRUN" in arguments.overrides:
            return _sweep(arguments, composer, plugin_paths, prepare, job, finish_sweep, tell or _complain)
        elif arguments.cfg:
            _show(arguments, composer, arguments.overrides, plugin_paths)
        else:
            return _single(arguments, composer, plugin_paths, prepare, job, tell or _complain)
    except MkframeError as error:
        _complain(error)
        return error.exit_code
    return 0


def _single(
    arguments: Arguments,
    composer: "Composer",
    plugin_paths: Sequence[str],
    prepare: Callable[[Config], Plan],
    job: Callable[[Plan, Path], JobResult],
    tell: Callable[[str], None],
) -> int:
    with tell_if_slow(tell, "composing the configuration; nothing runs yet"):
        composed, config = _composed(arguments.overrides, composer, plugin_paths)
    plan = prepare(config)
    named = _names_folder(config, arguments.overrides, "hydra.run.dir")
    result = job(plan, claim_run_folder(_folder(config, composed, "hydra.run.dir"), named=named))
    if result.error is not None:
        _complain(result.error)
    return result.exit_code


def _sweep(
    arguments: Arguments,
    composer: "Composer",
    plugin_paths: Sequence[str],
    prepare: Callable[[Config], Plan],
    job: Callable[[Plan, Path], JobResult],
    finish_sweep: Callable[[Path, tuple[SweepJob, ...]], None],
    tell: Callable[[str], None],
) -> int:
    jobs = composer.jobs(arguments.overrides)
    if arguments.cfg:
        for number, overrides in enumerate(jobs):
            print(f"--- # job {number}: {' '.join(overrides)}")
            _show(arguments, composer, overrides, plugin_paths)
        return 0
    with tell_if_slow(tell, f"composing and planning {len(jobs)} jobs; nothing runs before all of them are known to be possible"):
        composed = [_composed(overrides, composer, plugin_paths) for overrides in jobs]  # a bad choice in any of them ends all
        ready = [
            _Prepared(overrides=tuple(words), composed=node, config=config, plan=prepare(config))
            for words, (node, config) in zip(jobs, composed, strict=True)
        ]
    first = ready[0]
    if any(item.config.out != first.config.out for item in ready):
        raise UsageError("out: cannot be swept over; it names the folder of the whole sweep")
    named = _names_folder(first.config, arguments.overrides, "hydra.sweep.dir")
    root = claim_sweep_folder(_folder(first.config, first.composed, "hydra.sweep.dir"), named=named)
    ended: list[SweepJob] = []
    try:
        for number, item in enumerate(ready):
            ended.append(_run_job(number, item, root, job))
            if ended[-1].result.interrupted:
                break
    finally:
        finish_sweep(root, tuple(_for_index(end, root) for end in ended))
    failed = [end for end in ended if end.result.exit_code != 0]
    for end in failed:
        reason = end.result.error or f"exit code {end.result.exit_code}"
        _complain(f"job {end.number} ({' '.join(end.overrides)}) failed: {reason}")
    if len(ended) < len(ready):
        _complain(f"{len(ready) - len(ended)} of {len(ready)} jobs were not started")
    return 1 if failed or len(ended) < len(ready) else 0


def _run_job(number: int, item: _Prepared[Plan], root: Path, job: Callable[[Plan, Path], JobResult]) -> SweepJob:
    from mkframe.config.compose import number_job

    folder = ""
    try:
        number_job(item.composed, number)
        folder = os.path.normpath(_text(item.composed, "hydra.sweep.subdir"))
        if folder.startswith(("..", "/")) or folder == ".":
            raise UsageError(f"hydra.sweep.subdir: {folder!r} is no folder inside the sweep's folder")
        path = claim_job_folder(root / folder)
        result = job(item.plan, path)
    except MkframeError as error:
        result = JobResult(exit_code=error.exit_code, error=_one_line(error))
    except Exception as error:  # the other jobs must still run
        result = JobResult(exit_code=1, error=_one_line(f"{type(error).__name__}: {error}"))
    return SweepJob(number=number, overrides=item.overrides, folder=folder, result=result)


def _for_index(job: SweepJob, root: Path) -> SweepJob:
    """Without what names a folder outside the sweep's own; its own is where the index lies."""
    error = None if job.result.error is None else job.result.error.replace(f"{root}{os.sep}", "")
    words = tuple(word for word in job.overrides if _is_public(word))
    return replace(job, overrides=words, result=replace(job.result, error=error))


def _is_public(override: str) -> bool:
    key = override.partition("=")[0].lstrip("+~")
    return key not in ("out", "plugin_path") and not key.startswith(("hydra.", "hydra/"))


def _composed(overrides: Sequence[str], composer: "Composer", plugin_paths: Sequence[str]) -> "tuple[DictConfig, Config]":
    from hydra.core.hydra_config import HydraConfig

    from mkframe.config.compose import plain
    from mkframe.config.load import config_of

    composed = composer.compose(overrides)
    HydraConfig.instance().set_config(composed)  # for ${hydra:...}
    return composed, config_of(plain(composed), composer.registry, plugin_paths)


def _folder(config: Config, composed: "DictConfig", key: str) -> Path:
    text = config.out if config.out is not None else _text(composed, key)
    if not text.strip():
        named = "out" if config.out is not None else key
        raise ConfigError(f"{named}: names no folder; write {named}=DIR, or leave it out for a new folder under outputs")
    return Path(text).expanduser()


def _text(composed: "DictConfig", key: str) -> str:
    from omegaconf import OmegaConf

    from mkframe.config.messages import unresolved

    try:
        return str(OmegaConf.select(composed, key, throw_on_missing=True))
    except Exception as error:
        raise unresolved(key, error) from error


def _names_folder(config: Config, overrides: Sequence[str], key: str) -> bool:
    given = [override.partition("=")[0].lstrip("+") for override in overrides]
    for other in _FOLDERS:
        if config.out is not None and other in given:
            raise ConfigError(f"out and {other} both name the folder; leave one of them out")
    return config.out is not None or key in given


def _help(composer: "Composer") -> str:
    from mkframe.config.help import help_text

    return help_text({group: composer.options(group) for group in composer.groups})


def _show(arguments: Arguments, composer: "Composer", overrides: Sequence[str], plugin_paths: Sequence[str]) -> None:
    """--cfg: the checked configuration of the job, Hydra's own, or both."""
    from omegaconf import OmegaConf

    from mkframe.config.compose import plain

    composed, config = _composed(overrides, composer, plugin_paths)
    shown: dict[str, Any] = {}
    if arguments.cfg in ("job", "all"):
        shown.update(plain(composed))
        shown.update(plugin_path=list(config.plugin_path), targets=config.targets.id)
    if arguments.cfg in ("hydra", "all"):
        shown["hydra"] = composed.hydra
    print(OmegaConf.to_yaml(OmegaConf.create(shown), resolve=False), end="")


def _show_hydra(arguments: Arguments, composer: "Composer") -> None:
    """--hydra-help and --info, as Hydra prints them."""
    from hydra._internal.hydra import Hydra
    from hydra._internal.utils import get_args_parser

    hydra = Hydra(task_name="mkframe", config_loader=composer.loader)
    parser = get_args_parser()
    if arguments.hydra_help:
        hydra.hydra_help(composer.config_name, parser, parser.parse_args(["--hydra-help"]))
    else:
        composer.compose(arguments.overrides)  # a mistake is told in our words
        hydra.show_info(arguments.info or "all", composer.config_name, list(arguments.overrides))


def _complain(message: MkframeError | str) -> None:
    print(f"mkframe: {_one_line(message)}", file=sys.stderr)


def _one_line(message: BaseException | str) -> str:
    return " ".join(str(message).split())
