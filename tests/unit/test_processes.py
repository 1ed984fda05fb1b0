"""Processes are found below their parent, and end with it, whatever session they have."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from multiprocessing.connection import Connection

from mkframe.processes import GroupLeader, adopt_orphans, children, descendants, end

PATIENCE_S = 60.0


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.01)


def is_running(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_children_are_named_until_they_end() -> None:
    before = children()
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as child:
        assert children().keys() - before.keys() == {child.pid}
        assert child.pid in descendants(os.getpid())
        end([child.pid])
        wait_for(lambda: child.pid not in children())  # not collected yet
        assert child.wait() == -signal.SIGKILL
    end([child.pid])  # nobody is there any more
    assert children().keys() <= before.keys()


def leading(connection: Connection) -> None:
    """A leader with a daemon: a grandchild in a session of its own, whose parent has ended."""
    os.setpgid(0, 0)
    adopt_orphans()
    between = os.fork()
    if between == 0:
        os.setsid()
        daemon = os.fork()
        if daemon == 0:
            time.sleep(600)
        os._exit(0)
    os.waitpid(between, 0)
    connection.send(sorted(children()))
    connection.recv()


def test_a_leader_takes_its_daemons_along() -> None:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=leading, args=(theirs,))
    process.start()
    leader = GroupLeader(process)
    assert ours.poll(PATIENCE_S)
    (daemon,) = ours.recv()
    assert not leader.ended_within(0.0)
    assert descendants(process.pid or 0) == {daemon}
    leader.kill()
    assert process.exitcode == -signal.SIGKILL
    assert leader.ended_within(0.0)
    wait_for(lambda: not is_running(daemon))
    leader.kill()  # twice is once
