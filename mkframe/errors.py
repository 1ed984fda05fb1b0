"""Every error that mkframe raises on purpose.

The tree:

    MkframeError                 base; carries the exit code of the command line
    |-- UsageError        (2)    the command line or a configuration key is wrong
    |   |-- ConfigError          a key or value of the configuration
    |   `-- SelectionError       an id that does not exist, or a selection that is empty
    |-- DeviceError       (2)    a device that is absent, or is not what its card says
    |-- PluginError       (2)    an engine or workload that breaks its contract or fails to import
    |-- UnreadableError   (2)    a file that cannot be read as a report, or written
    |-- RunError          (1)    a run that ended without a usable report
    |-- KernelError       (1)    a kernel that does not compile, or is not what its declaration says
    `-- WorkloadError     (1)    a workload whose own checks do not hold (its mutants pass, say)

A message names the key, file or engine, and what to do. Our own invariants use `assert`.
"""


class MkframeError(Exception):
    """Base of all errors that a user can act on. `exit_code` is what the command line returns."""

    exit_code = 2


class UsageError(MkframeError):
    """The command line is wrong."""


class ConfigError(UsageError):
    """A key or a value of the configuration is wrong."""


class SelectionError(UsageError):
    """An engine, workload, shape set or device was asked for that does not exist here."""


class DeviceError(MkframeError):
    """The device is absent or does not match its card."""


class PluginError(MkframeError):
    """A plugin fails to import, breaks its contract, or claims an id that is taken."""


class UnreadableError(MkframeError):
    """A file or folder cannot be read or written."""


class RunError(MkframeError):
    """A run ended without a usable report."""

    exit_code = 1


class KernelError(MkframeError):
    """A kernel does not compile, or its cubin is not what its declaration says."""

    exit_code = 1


class WorkloadError(MkframeError):
    """A workload does not hold its own contract."""

    exit_code = 1
