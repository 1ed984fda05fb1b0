"""What the sentences of a report tell, out of the written report. mkframe.report.run_facts finds the same before it is written."""

from mkframe.model.outcome import Outcome
from mkframe.sentences import PROTOCOLS, CellFacts, RunFacts
from mkframe.validate.block_parts import BlockCell, block_cells, block_of
from mkframe.validate.comparison_parts import number, table, whole
from mkframe.validate.rule import Subject


def run_facts(subject: Subject) -> RunFacts | None:
    """The document is one of ours and holds to its schema. None where there are no sentences for it: its protocol is none of ours."""
    return subject.once("run facts", _run_facts)


def _run_facts(subject: Subject) -> RunFacts | None:
    document, block = subject.document, block_of(subject.document)
    timing = block["timing"]
    if timing["protocol"] not in PROTOCOLS:
        return None
    return RunFacts(
        recorded_on=document["recorded_on"],
        workload=block["workload"],
        seeds={name: whole(seed) or 0 for name, seed in block["seeds"].items()},
        device_kind=block["device"]["kind"],
        source_dirty=block["environment"]["source_dirty"],
        protocol=timing["protocol"],
        rounds=whole(timing["rounds"]) or 0,
        samples_per_round=whole(timing["samples_per_round"]) or 0,
        processes=whole(timing["processes"]) or 0,
        warmups=whole(timing["warmups"]) or 0,
        hold=timing["hold"],
        cache_state=timing["cache_state"],
        energy_measured=block["energy"]["status"] != "not_measured",
        incomplete=block["incomplete"],
        cells=tuple(map(_cell, block_cells(subject))),
    )


def _cell(cell: BlockCell) -> CellFacts:
    rates = table(cell.record, "rates")
    return CellFacts(
        set=cell.key[0],
        case=cell.key[1],
        engine=cell.key[2],
        baseline=cell.record["baseline"],
        outcome=Outcome(cell.record["outcome"]),
        checks=tuple(cell.record["checks"]),
        late_samples=whole(cell.record["late_samples"]) or 0,
        rated=bool(rates),
        read_share=number(rates.get("read_share")),
    )
