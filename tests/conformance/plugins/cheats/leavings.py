"""Engines of the workload scaling that are right, and leave something behind: one for each trace."""

import os
import signal
import subprocess
import sys
import threading
import time

from mkframe.plugin import Engine, Launches

_calls = []


class Leaving(Engine):
    """`leave` runs when it is bound, `each` at every call."""

    workload, devices, precisions = "scaling", ("cpu",), ("fp32",)

    def __init__(self, name, leave=None, each=None):
        self.id, self._leave, self._each = name, leave, each

    def bind(self, case, precision, tensors, options):
        import torch

        if self._leave is not None:
            self._leave()

        def call():
            torch.add(tensors["x"] * tensors["w"], 1, out=tensors["y"])
            if self._each is not None:
                self._each()

        return Launches(call=call)


def thread():
    threading.Thread(target=time.sleep, args=(600,), daemon=True).start()


def process():
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(98765.5)"])


def late_process():
    """With the thirtieth call of a process."""
    _calls.append(1)
    if len(_calls) == 30:
        process()


def daemon():
    """In a session of its own, and its parent is gone."""
    code = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(98765.5)'], start_new_session=True)"
    subprocess.run([sys.executable, "-c", code], check=True)


def numpy_switch():
    import numpy as np

    np.seterr(under="raise")


def torch_threads():
    import torch

    torch.set_num_threads(torch.get_num_threads() + 1)


def grad_mode():
    import torch

    torch.set_grad_enabled(False)


def tf32():
    import torch

    torch.set_float32_matmul_precision("high")


def deterministic():
    import torch

    torch.use_deterministic_algorithms(True)


def handler():
    signal.signal(signal.SIGUSR1, lambda *_: None)


def folder():
    os.chdir("/")


def variable():
    os.environ["LEFT_BEHIND"] = "1"


def native_print():
    os.write(1, b"from native code\n")


ENGINES = (
    Leaving("leaving-nothing"),
    Leaving("leaving-a-thread", thread),
    Leaving("leaving-threads-at-every-call", each=thread),
    Leaving("leaving-a-process", process),
    Leaving("leaving-a-process-late", each=late_process),
    Leaving("leaving-a-daemon", daemon),
    Leaving("leaving-a-numpy-switch", numpy_switch),
    Leaving("leaving-torch-threads", torch_threads),
    Leaving("leaving-grad-mode", grad_mode),
    Leaving("leaving-tf32", tf32),
    Leaving("leaving-determinism", deterministic),
    Leaving("leaving-a-handler", handler),
    Leaving("leaving-the-folder", folder),
    Leaving("leaving-a-variable", variable),
    Leaving("printing", lambda: print("hello")),
    Leaving("printing-natively", each=native_print),
    Leaving("complaining", each=lambda: print("hm", file=sys.stderr)),
)
