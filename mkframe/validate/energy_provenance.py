"""Payloads: every hash that can be computed from the report, and the names by which draws are joined."""

import hashlib
import json
from collections.abc import Callable, Iterator
from typing import Any

from mkframe.validate.energy_parts import Absent, Node, Path, at, energy_rule, items, maybe, objects, text, whole
from mkframe.validate.finding import Finding, Severity, error, shown

_PROVENANCE: Path = ("provenance",)
_MANIFEST: Path = ("provenance", "payload_manifest")
_DRAWS: Path = (*_MANIFEST, "draws")
_LABELS = ("test_labels", "frozen_predictions")
"""Arrays of a payload that hold one entry for each label that is predicted."""
_SEED_LIMIT = 2**63
_OUTSIDE = ("runner_sha256", "ptx_sha256")


def manifest_hash(document: Node) -> Iterator[Finding]:
    """SHA-256 of the manifest as JSON: indent 2, keys as they stand, a newline at the end; other alphabets escaped or as they are."""
    try:
        stated, manifest = text(document, *_PROVENANCE, "payload_manifest_sha256"), at(document, *_MANIFEST)
    except Absent:
        return
    plain = indented(manifest, escaped=False)
    rebuilt = _sha256(plain)
    if stated == rebuilt:
        return
    if not plain.isascii():
        rebuilt = _sha256(indented(manifest, escaped=True))
    if stated != rebuilt:
        why = f"payload_manifest_sha256 is {shown(stated)}, and payload_manifest has {rebuilt}"
        yield error("manifest-hash", why, (*_PROVENANCE, "payload_manifest_sha256"))


def _sha256(content: str) -> str:
    return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()


def indented(value: Any, *, escaped: bool) -> str:
    """A value as json.dumps writes it with indent 2, and a newline at the end; several times as fast, for large manifests."""
    parts: list[str] = []
    _indent(value, "\n", json.encoder.encode_basestring_ascii if escaped else json.encoder.encode_basestring, parts)
    parts.append("\n")
    return "".join(parts)


def _indent(value: Any, line: str, quoted: Callable[[str], str], parts: list[str]) -> None:
    if isinstance(value, dict | list) and value:
        is_object, inner = isinstance(value, dict), line + "  "
        before = ("{" if is_object else "[") + inner
        for item in value.items() if isinstance(value, dict) else value:
            if is_object:
                before += quoted(item[0]) + ": "
                item = item[1]
            if isinstance(item, str):
                parts.append(before + quoted(item))
            else:
                parts.append(before)
                _indent(item, inner, quoted, parts)
            before = "," + inner
        parts.append(line + ("}" if is_object else "]"))
    else:
        parts.append(quoted(value) if isinstance(value, str) else json.dumps(value))


def seed_hashes(document: Node) -> Iterator[Finding]:
    """The array `dataset_seed` of a payload holds the draw's seed."""
    for place, draw in objects(document, *_DRAWS):
        try:
            seed, stated = whole(draw, "dataset_seed"), text(draw, "arrays", "dataset_seed", "sha256")
        except Absent:
            continue
        if seed >= _SEED_LIMIT:
            continue
        rebuilt = hashlib.sha256(seed.to_bytes(8, "little", signed=True)).hexdigest()
        if stated != rebuilt:
            why = f"sha256 is {shown(stated)}, and the seed {seed} as int64 has {rebuilt}"
            yield error("seed-hashes", why, (*place, "arrays", "dataset_seed", "sha256"))


def seeds(document: Node) -> Iterator[Finding]:
    """The list of seeds is the draws' own, in their order."""
    try:
        listed = [whole(items(document, *_MANIFEST, "seeds"), position) for position in range(len(items(document, *_MANIFEST, "seeds")))]
        drawn = [whole(draw, "dataset_seed") for draw in items(document, *_DRAWS)]
    except Absent:
        return
    if len(listed) != len(drawn):
        yield error("seeds", f"{len(listed)} seeds are listed for {len(drawn)} draws", (*_MANIFEST, "seeds"))
        return
    for position, (one, other) in enumerate(zip(listed, drawn, strict=True)):
        if one != other:
            why = f"the seed is {shown(one)}, and draw {position} of the manifest has {shown(other)}"
            yield error("seeds", why, (*_MANIFEST, "seeds", position))


def _manifest_by_draw(document: Node) -> dict[int, Node]:
    found: dict[int, Node] = {}
    for _, draw in objects(document, *_DRAWS):
        try:
            found.setdefault(whole(draw, "draw"), draw)
        except Absent:
            continue
    return found


def payload_join(document: Node) -> Iterator[Finding]:
    """What was checked is what the manifest lists: seed, payload and number of labels of each draw."""
    manifest = _manifest_by_draw(document)
    if not manifest:
        return
    for place, draw in objects(document, "validation", "draws"):
        try:
            name = whole(draw, "draw")
        except Absent:
            continue
        entry = manifest.get(name)
        if entry is None:
            yield error("payload-join", f"draw {shown(name)} is not in the manifest", (*place, "draw"))
            continue
        for mine, theirs in (("payload_sha256", "sha256"), ("dataset_seed", "dataset_seed")):
            stated, listed = maybe(draw, mine), maybe(entry, theirs)
            if _is_name(stated) and _is_name(listed) and stated != listed:
                yield error("payload-join", f"{mine} is {shown(stated)}, and the manifest has {shown(listed)}", (*place, mine))


def label_counts(document: Node) -> Iterator[Finding]:
    """total = number of labels: the payload holds one test label and one frozen prediction for each."""
    manifest = _manifest_by_draw(document)
    for place, draw in objects(document, "validation", "draws"):
        try:
            total, arrays = whole(draw, "total"), at(manifest.get(whole(draw, "draw")), "arrays")
        except Absent:
            continue
        for name in _LABELS:
            try:
                length = whole(arrays, name, "shape", 0)
            except Absent:
                continue
            if length != total:
                yield error("label-counts", f"total is {shown(total)}, and {name} of the payload has {shown(length)}", (*place, "total"))


_ONCE: tuple[tuple[Path, str], ...] = ((_DRAWS, "draw"), (_DRAWS, "sha256"), (("validation", "draws"), "draw"), (("rounds",), "round"))


def once(document: Node) -> Iterator[Finding]:
    """No draw, no payload and no round stands twice."""
    for place, name in _ONCE:
        first: dict[Any, int] = {}
        for path, node in objects(document, *place):
            value = maybe(node, name)
            if not _is_name(value):
                continue
            before = first.setdefault(value, int(path[-1]))
            if before != path[-1]:
                yield error("once", f"the same {name} as item {before}", (*path, name))


def benchmark_join(document: Node) -> Iterator[Finding]:
    """What was timed is one entry of the manifest."""
    try:
        seed = whole(document, *_PROVENANCE, "benchmark_dataset_seed")
        payload = text(document, *_PROVENANCE, "benchmark_payload_sha256")
        draws = items(document, *_DRAWS)
    except Absent:
        return
    pairs = {
        (maybe(draw, "dataset_seed"), maybe(draw, "sha256"))
        for draw in draws
        if _is_name(maybe(draw, "dataset_seed")) and _is_name(maybe(draw, "sha256"))
    }
    if (seed, payload) in pairs or not pairs:
        return
    place, what = ("benchmark_payload_sha256", "payload") if any(seed == one for one, _ in pairs) else ("benchmark_dataset_seed", "seed")
    why = f"no draw of the manifest has seed {shown(seed)} and payload {shown(payload)}; another {what} was timed than is listed"
    yield error("benchmark-join", why, (*_PROVENANCE, place))


def _is_name(value: Any) -> bool:
    """Whether a value may be a seed or a hash; other parts are the schema's to report."""
    return isinstance(value, str | int) and not isinstance(value, bool)


def opaque(document: Node) -> Iterator[Finding]:
    """Hashes of things outside of the file, in one finding."""
    provenance = maybe(document, *_PROVENANCE)
    names = [name for name in _OUTSIDE if isinstance(maybe(provenance, name), str)]
    payload = maybe(document, *_MANIFEST, "source_sha256")
    sources = len(payload) if isinstance(payload, dict) else 0
    draws = sum(1 for _ in objects(document, *_DRAWS))
    predictions = sum(isinstance(maybe(draw, "gpu_predictions_int32_sha256"), str) for _, draw in objects(document, "validation", "draws"))
    said = [*names]
    said += [f"{sources} sources of the payload"] if sources else []
    said += [f"the payloads of {draws} draws"] if draws else []
    said += [f"the predictions of {predictions} draws"] if predictions else []
    if said:
        why = f"hashes of things outside of this file are taken as they are: {', '.join(said)}"
        place = "/provenance" if "provenance" in document else ""
        yield Finding(severity=Severity.INFORMATION, rule="opaque-hashes", pointer=place, message=why)


PROVENANCE_RULES = (
    energy_rule("manifest-hash", manifest_hash, "payload_manifest_sha256 is the SHA-256 of the manifest as JSON"),
    energy_rule("seed-hashes", seed_hashes, "the hash of each dataset_seed array is that of the seed as a little-endian int64"),
    energy_rule("seeds", seeds, "seeds lists the seed of each draw"),
    energy_rule("payload-join", payload_join, "each draw that was checked has the seed and the payload that the manifest lists"),
    energy_rule("label-counts", label_counts, "total of a draw is the number of its labels"),
    energy_rule("once", once, "no draw, no payload and no round stands twice"),
    energy_rule("benchmark-join", benchmark_join, "the seed and the payload that were timed name one draw of the manifest"),
    energy_rule("opaque-hashes", opaque, "hashes of things outside of the file cannot be checked", Severity.INFORMATION),
)
