"""Engines of the workload scaling that break one requirement each once they are bound, and honest ones beside them."""

import ctypes
import threading
import weakref

from mkframe.plugin import Engine, Launches, Role, TensorSpec

_FINITE_POISON = -12345.0


def right(t, out=None):
    import torch

    torch.add(t["x"] * t["w"], 1, out=t["y"] if out is None else out)


class Calling(Engine):
    """`make(tensors, case)` gives the call."""

    workload, devices, precisions = "scaling", ("cpu",), ("fp32",)

    def __init__(self, make):
        self.id = make.__name__.replace("_", "-")
        self._make = make

    def bind(self, case, precision, tensors, options):
        return Launches(call=self._make(tensors, case))


def honest(t, case):
    return lambda: right(t)


def noisy(t, case):
    """Right within tolerance, never twice the same in a row."""
    calls = [0]

    def call():
        right(t)
        calls[0] += 1
        t["y"].add_(4e-6 * (calls[0] % 2))  # far above a rounding, far below the tolerance

    return call


def raising_at_bind(t, case):
    raise ValueError("no such\ntile")


def raising_when_called(t, case):
    def call():
        raise ValueError("no such tile")

    return call


def wanting_no_grad(t, case):
    import torch

    def call():
        assert not torch.is_grad_enabled(), "put me under no_grad"
        right(t)

    return call


def wrong_when_large(t, case):
    return lambda: right(t) if case.rows < 100 else t["y"].fill_(1.0)


def wrong_when_prime(t, case):
    """48 columns stand in no shape set, and not among the first generated cases."""
    return lambda: t["y"].fill_(1.0) if case.columns == 48 else right(t)


def keeping_nan(t, case):
    """Writes only what is a number."""
    import torch

    return lambda: t["y"].copy_(torch.where(t["y"].isnan(), t["y"], t["x"] * t["w"] + 1))


def keeping_the_finite_pattern(t, case):
    import torch

    return lambda: t["y"].copy_(torch.where(t["y"] == _FINITE_POISON, t["y"], t["x"] * t["w"] + 1))


def doing_nothing(t, case):
    right(t)
    return lambda: None


def blind_to_negation(t, case):
    import torch

    first, kept = t["x"].clone(), torch.empty_like(t["y"])
    right(t, kept)

    def call():
        if torch.equal(t["x"], -first):
            t["y"].copy_(kept)
        else:
            right(t)

    return call


def knowing_two_inputs(t, case):
    """Recognises its first input and the negated one; all others are the first one to it."""
    import torch

    first = t["x"].clone()

    def call():
        sign = -1 if torch.equal(t["x"], -first) else 1
        right({**t, "x": first * sign})

    return call


def writing_its_weight(t, case):
    mine = t["w"].clone()

    def call():
        right({**t, "w": mine})
        t["w"][0] = 0.5

    return call


_alive = weakref.WeakSet()


class _Holder:
    def __init__(self, tensors):
        self.tensors = tensors


def serving_the_first_buffers(t, case):
    """While another binding of the same data lives, this one's results go there."""
    import torch

    twin = next((h for h in _alive if h.tensors["x"].shape == t["x"].shape and torch.equal(h.tensors["x"], t["x"])), None)
    mine = _Holder(t if twin is None else twin.tensors)
    _alive.add(mine)
    return lambda: right(mine.tensors)


def tired(t, case):
    calls = [0]

    def call():
        calls[0] += 1
        if calls[0] < 60:
            right(t)
        else:
            t["y"].fill_(1.0)

    return call


def finishing_later(t, case):
    """Leaves the work of a warm call to a thread where somebody looks for what a call has written."""
    calls = [0]

    def call():
        calls[0] += 1
        if calls[0] > 1 and t["y"].isnan().all():
            threading.Timer(0.05, right, (t,)).start()
        else:
            right(t)

    return call


def one_too_many(t, case):
    """Writes four bytes behind its output."""

    def call():
        right(t)
        ctypes.memset(t["y"].data_ptr() + 4 * t["y"].numel(), 0, 4)

    return call


def one_before(t, case):
    def call():
        right(t)
        ctypes.memset(t["y"].data_ptr() - 4, 0, 4)

    return call


_last = {}


def serving_the_last_binding(t, case):
    """One set of buffers for everybody: those that were bound last."""
    _last["tensors"] = t
    return lambda: right(_last["tensors"])


def swapping_storage(t, case):
    import torch

    def call():
        fresh = torch.empty_like(t["y"])
        right(t, fresh)
        t["y"].set_(fresh)

    return call


_kept = []


def hoarding(t, case):
    def call():
        right(t)
        _kept.append(t["y"].clone())

    return call


def crashing_after_a_while(t, case):
    calls = [0]

    def call():
        calls[0] += 1
        if calls[0] > 60:
            ctypes.string_at(0)
        right(t)

    return call


class Remembering(Calling):
    """Keeps something of a cell on the instance."""

    def __init__(self):
        super().__init__(honest)
        self.id = "remembering"

    def bind(self, case, precision, tensors, options):
        self.last = case
        return super().bind(case, precision, tensors, options)


class RememberingInAContainer(Calling):
    """The attribute stays, and what it holds grows."""

    def __init__(self):
        super().__init__(honest)
        self.id = "remembering-in-a-container"
        self.cases = {}

    def bind(self, case, precision, tensors, options):
        self.cases[case] = len(self.cases)
        return super().bind(case, precision, tensors, options)


_case_before = []


class MindingTheOrder(Calling):
    """Right on every case in the order in which they are asked, wrong on one after another that follows it in that order."""

    def __init__(self):
        super().__init__(honest)
        self.id = "minding-the-order"

    def bind(self, case, precision, tensors, options):
        before = _case_before[:]
        _case_before[:] = [case]
        if before and (before[0].rows, case.rows, case.columns) == (33, 1, 7):
            return Launches(call=lambda: tensors["y"].fill_(1.0))
        return super().bind(case, precision, tensors, options)


class Nothing(Calling):
    def __init__(self):
        super().__init__(honest)
        self.id = "returning-nothing"

    def bind(self, case, precision, tensors, options):
        return None


class WithScratch(Calling):
    """Honest, by way of a scratch tensor; `overrun` elements more than it asked for."""

    def __init__(self, name, overrun):
        super().__init__(honest)
        self.id, self._overrun = name, overrun

    def scratch(self, case, precision, options):
        return {"h": TensorSpec(shape=(case.columns,), dtype="float32", role=Role.SCRATCH)}

    def bind(self, case, precision, tensors, options):
        def call():
            tensors["h"].copy_(tensors["w"])
            ctypes.memset(tensors["h"].data_ptr(), 0, 4 * (case.columns + self._overrun))
            right(tensors)

        return Launches(call=call)


ENGINES = (
    *(
        Calling(make)
        for make in (
            honest,
            noisy,
            raising_at_bind,
            raising_when_called,
            wanting_no_grad,
            wrong_when_large,
            wrong_when_prime,
            keeping_nan,
            keeping_the_finite_pattern,
            doing_nothing,
            blind_to_negation,
            knowing_two_inputs,
            writing_its_weight,
            serving_the_first_buffers,
            tired,
            finishing_later,
            one_too_many,
            one_before,
            serving_the_last_binding,
            swapping_storage,
            hoarding,
            crashing_after_a_while,
        )
    ),
    Remembering(),
    RememberingInAContainer(),
    MindingTheOrder(),
    Nothing(),
    WithScratch("tidy", 0),
    WithScratch("overrunning-scratch", 1),
)
