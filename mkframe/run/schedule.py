"""What a run measures next, as its ledger stands: the coordinator asks for it, and a journal must tell of nothing else."""

from mkframe.model.plan import CasePlan
from mkframe.run.ledger import Ledger


def rotated(engines: list[str], round_index: int) -> list[str]:
    """The order of a round: one position further in each, so that no engine always follows the same one."""
    shift = round_index % len(engines) if engines else 0
    return engines[shift:] + engines[:shift]


def blocks_of_round(ledger: Ledger, case: CasePlan, round_index: int) -> list[str]:
    """The engines whose block of this round is missing, in the order in which they are to run."""
    wanted = [state.plan.engine.id for state in ledger.alive(case) if round_index not in state.blocks]
    return rotated(wanted, round_index)


def next_case(ledger: Ledger, process: int) -> CasePlan | None:
    """The first case of which this process has something left to measure or to check."""
    rounds = ledger.plan.timing.rounds_of(process)
    return next((case for case in ledger.plan.cases if ledger.missing(case, rounds)), None)


def next_process(ledger: Ledger, first: int) -> int | None:
    """The first process, from `first` on, that has something left to do."""
    return next((process for process in range(first, ledger.plan.timing.processes) if next_case(ledger, process) is not None), None)
