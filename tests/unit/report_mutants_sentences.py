"""Kinds of mutants: what a run always says, in its words."""

from random import Random

from own_mutants import own, rehash
from report_mutants import Document, Places


@own
def _no_word_on_caches(document: Document, _: Document, __: Random) -> Places:
    document["limitations"] = [text for text in document["limitations"] if "warm" not in text or "warm-ups" in text]
    return ("=/limitations",)


@own
def _everything_is_claimed(document: Document, _: Document, __: Random) -> Places:
    index = next(i for i, text in enumerate(document["limitations"]) if "nothing is claimed" in text)
    document["limitations"][index] = document["limitations"][index].replace("nothing is claimed", "everything is claimed")
    return (f"=/limitations/{index}",)


@own
def _a_sentence_that_no_run_writes(document: Document, _: Document, random: Random) -> Places:
    index = random.randrange(len(document["limitations"]) + 1)
    document["limitations"].insert(index, "An independent laboratory confirmed these times.")
    return (f"=/limitations/{index}",)


@own
def _a_sentence_twice(document: Document, _: Document, random: Random) -> Places:
    document["limitations"].append(random.choice(document["limitations"]))
    return (f"=/limitations/{len(document['limitations']) - 1}",)


@own
def _sentences_in_another_order(document: Document, _: Document, __: Random) -> Places:
    document["limitations"].reverse()
    return ("/limitations",)


@own
def _checks_that_were_not_told(document: Document, _: Document, __: Random) -> Places:
    told = document["source_replay_checks"]
    document["source_replay_checks"] = told[: told.index("passed.") + len("passed.")]
    return ("=/source_replay_checks",)


@own
def _checks_turned_round(document: Document, _: Document, __: Random) -> Places:
    document["source_replay_checks"] = document["source_replay_checks"].replace("gave the right result", "was not tried")
    return ("=/source_replay_checks",)


@own
def _another_precision_behind_its_name(document: Document, _: Document, __: Random) -> Places:
    document["precision"] = document["precision"].replace("FP32 accumulation", "FP16 accumulation")
    return ("=/precision",)


@own
def _a_contract_under_the_name_of_another(document: Document, block: Document, __: Random) -> Places:
    block["precision"]["accumulate"] = block["config"]["precision"]["accumulate"] = "float16"
    rehash(block)
    document["precision"] = document["precision"].replace("FP32 accumulation", "FP16 accumulation")
    return ("=/mkframe/config/precision/accumulate",)
