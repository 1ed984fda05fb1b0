"""One configuration from a command line that runs nothing: for subcommands that only look at what a run would be."""

from collections.abc import Sequence

from mkframe.config.arguments import Arguments, parse
from mkframe.errors import UsageError
from mkframe.plugin.registry import Registry
from mkframe.settings.nodes import Config


def one_job(argv: Sequence[str], command: str, registry: Registry, plugin_paths: Sequence[str] = ()) -> Config:
    """The checked configuration of overrides, `--config-dir` and `--config-name`.

    Raises UsageError for what only a run has (sweeps, --cfg), and ConfigError or SelectionError as a run does.
    """
    arguments = parse(argv)
    from hydra.core.hydra_config import HydraConfig

    from mkframe.config.compose import Composer, plain
    from mkframe.config.load import config_of

    _refuse_the_rest(arguments, command)
    composer = Composer(registry, config_dir=arguments.config_dir, config_name=arguments.config_name)
    composed = composer.compose(arguments.overrides)
    HydraConfig.instance().set_config(composed)  # for ${hydra:...}
    return config_of(plain(composed), registry, plugin_paths)


def shape_set_names(argv: Sequence[str], registry: Registry) -> tuple[str, ...]:
    """The names that the group `shape` offers to this command line."""
    arguments = parse(argv)
    from mkframe.config.compose import Composer

    return tuple(Composer(registry, config_dir=arguments.config_dir, config_name=arguments.config_name).options("shape"))


def _refuse_the_rest(arguments: Arguments, command: str) -> None:
    if arguments.multirun or "hydra.mode=MULTIRUN" in arguments.overrides:
        raise UsageError(f"{command} looks at one job and takes no -m; give the overrides of one of its jobs")
    if arguments.cfg or arguments.info or arguments.hydra_help:
        raise UsageError(f"{command} takes overrides, --config-dir and --config-name; --cfg, --info and --hydra-help belong to a run")
