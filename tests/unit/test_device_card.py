"""Measured cards: where they lie, what is refused, what is looked up in them; the probe of a CPU; the probe's process."""

import json
import os
import re
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from probe_fakes import HOPPER, FakeGpu

from mkframe.cli import device_command
from mkframe.cli.device_command import device_config, summary
from mkframe.errors import DeviceError, RunError, UnreadableError, UsageError
from mkframe.model.device import Device
from mkframe.model.device_card import Body, MeasuredCard, Operation
from mkframe.plan.devices import cpu
from mkframe.probe import cards, machine
from mkframe.probe.cpu import default_sizes, probe_cpu
from mkframe.probe.process import measure_in_child
from mkframe.probe.session import probe_gpu
from mkframe.settings.nodes import DeviceKind
from mkframe.validate.schemas import resolved, schema

UUID, DRIVER = HOPPER.uuid, HOPPER.driver
SCHEMA = schema("device-card")
UNITS = {
    "us": "us",
    "s": "s",
    "bytes_per_s": "bytes/s",
    "mhz": "MHz",
    "bytes": "bytes",
    "bytes_per_block": "bytes",
    "w": "W",
    "c": "degrees Celsius",
}


@pytest.fixture(scope="module")
def card() -> MeasuredCard:
    gpu = FakeGpu()
    return probe_gpu(gpu, rounds=2, now=gpu.now)


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    return {"XDG_CACHE_HOME": str(tmp_path / "cache")}


def numbers(node: dict[str, Any], path: str = "$") -> Iterator[tuple[str, str, dict[str, Any]]]:
    for name, child in node.get("properties", {}).items():
        kinds = child.get("type", [])
        if {"number", "integer"} & {kinds} if isinstance(kinds, str) else {"number", "integer"} & set(kinds):
            yield f"{path}.{name}", name, child
        yield from numbers(child, f"{path}.{name}")
    if "items" in node:
        yield from numbers(node["items"], f"{path}[]")


def test_the_schema_is_valid_and_versioned() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    assert re.fullmatch(r"urn:mkframe:schema:device-card:\d+\.\d+\.\d+", SCHEMA["$id"])


def test_every_number_of_the_schema_states_its_unit() -> None:
    found = list(numbers(resolved(SCHEMA)))
    assert len(found) > 60
    for path, name, node in found:
        unit = re.search(r"Unit: ([^.]+)\.$", node["description"])
        assert unit, path
        for suffix in sorted(UNITS, key=len, reverse=True):
            if name.endswith(f"_{suffix}") or name == suffix:
                assert unit[1] == UNITS[suffix], path
                break
        else:
            assert unit[1].startswith("1 "), path


def test_a_card_is_kept_per_uuid_and_driver(card: MeasuredCard, home: dict[str, str], tmp_path: Path) -> None:
    assert cards.load_card(UUID, DRIVER, home) is None
    path = cards.save_card(card.document(), cards.card_path(UUID, DRIVER, home))
    assert path == tmp_path / "cache" / "mkframe" / "devices" / f"{UUID}-{DRIVER}.json"
    assert cards.load_card(UUID, DRIVER, home) == card
    assert cards.load_card(UUID, "999.2", home) is None
    assert cards.other_drivers(UUID, "999.2", home) == (DRIVER,)
    assert cards.other_drivers(UUID, DRIVER, home) == ()
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_a_card_of_another_device_under_this_name_is_not_used(card: MeasuredCard, home: dict[str, str]) -> None:
    cards.save_card(card.document(), cards.card_path("GPU-other", DRIVER, home))
    assert cards.load_card("GPU-other", DRIVER, home) is None


@pytest.mark.parametrize("environ", [{"HOME": "/h"}, {"HOME": "/h", "XDG_CACHE_HOME": ""}, {"HOME": "/h", "XDG_CACHE_HOME": "relative"}])
def test_without_a_cache_folder_it_is_in_the_home(environ: dict[str, str]) -> None:
    assert cards.card_path("GPU-1/../x", "1 2", environ) == Path("/h/.cache/mkframe/devices/GPU-1_.._x-1_2.json")


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[:-20],
        lambda text: text.replace('"device-card/1"', '"device-card/2"'),
        lambda text: text.replace('"took_s"', '"took"'),
        lambda text: text.replace('"body": "empty"', '"body": "full"', 1),
        lambda text: text.replace('"rounds": 2', '"rounds": NaN', 1),
    ],
)
def test_a_damaged_card_is_refused_in_words_and_not_loaded(card: MeasuredCard, home: dict[str, str], damage: Any) -> None:
    path = cards.save_card(card.document(), cards.card_path(UUID, DRIVER, home))
    path.write_text(damage(path.read_text()))
    with pytest.raises(UnreadableError, match="no valid device card"):
        cards.read_card(path)
    assert cards.load_card(UUID, DRIVER, home) is None


def test_a_document_that_breaks_the_schema_is_not_written(card: MeasuredCard, tmp_path: Path) -> None:
    document = {**card.document(), "took_s": -1}
    with pytest.raises(RunError, match="contradicts its format at /took_s"):
        cards.save_card(document, tmp_path / "card.json")
    assert not (tmp_path / "card.json").exists()


def test_a_folder_that_cannot_be_made_is_named(card: MeasuredCard, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UnreadableError, match="cannot make the folder"):
        cards.save_card(card.document(), tmp_path / "file" / "card.json")


@pytest.mark.parametrize(("out", "complaint"), [("file/card.json", "cannot make the folder"), (".", "it is a folder; name a file")])
def test_a_probe_that_could_not_keep_its_card_measures_nothing(
    out: str, complaint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device_command, "measure_in_child", None)
    (tmp_path / "file").write_text("")
    with pytest.raises(UnreadableError, match=complaint):
        device_command.main(["probe", "device=cpu", "--out", str(tmp_path / out)])
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_a_card_that_cannot_be_written_any_more_is_printed(
    card: MeasuredCard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "cards"

    def measured(device: Device, tell: Any) -> dict[str, Any]:
        folder.rmdir()
        folder.write_text("")
        return card.document()

    monkeypatch.setattr(device_command, "measure_in_child", measured)
    with pytest.raises(UnreadableError, match="cannot"):
        device_command.main(["probe", "device=cpu", "--out", str(folder / "card.json")])
    assert json.loads(capsys.readouterr().out) == json.loads(json.dumps(card.document()))


def test_peaks_and_passes_are_looked_up(card: MeasuredCard) -> None:
    best = cards.peak_rate(card, Operation.READ)
    assert best is not None
    assert best.rate.median_bytes_per_s == max(r.rate.median_bytes_per_s for r in card.memory if r.operation is Operation.READ)
    assert cards.pass_us(card, Operation.READ, 2**26) == pytest.approx(1.85 + 2**26 / 4.6e12 * 1e6)


def test_the_nearest_launch_twin_is_found(card: MeasuredCard) -> None:
    exact = cards.launch_twin(card, grid=16, block=512, cluster=4, cooperative=True)
    assert exact is not None
    assert (exact.grid, exact.block, exact.cluster, exact.cooperative, exact.shared_bytes) == (16, 512, 4, True, 0)
    near = cards.launch_twin(card, grid=13, block=320, shared_bytes=150_000)
    assert near is not None
    assert (near.grid, near.shared_bytes, near.programmatic) == (16, 200 * 1024, False)
    touching = cards.launch_twin(card, grid=4, block=128, programmatic=True, body=Body.ROUND_TRIP)
    assert touching is not None
    assert touching.body is Body.ROUND_TRIP
    assert cards.launch_twin(card, grid=4, block=128, cluster=16) is None


def test_a_cpu_card_measures_what_a_cpu_has() -> None:
    device = cpu()
    card = probe_cpu(device, rounds=2, sizes=(2**20, 2**21, 2**22))
    assert cards.findings_of(card.document()) == []
    assert MeasuredCard.of(card.document()) == card
    assert (card.clock, card.events, card.launches, card.barriers, card.l2) == (None,) * 5
    assert card.host is not None
    assert 0 < card.host.clock_step_us < 100
    assert {(rate.operation, rate.bytes) for rate in card.memory} == {(o, b) for o in Operation for b in (2**20, 2**21, 2**22)}
    assert all(rate.rate.median_bytes_per_s > 1e6 for rate in card.memory)
    assert summary(card)


def test_sizes_of_a_cpu_are_beyond_its_caches_and_within_its_memory() -> None:
    assert default_sizes(0, 2**36) == (2**26, 2**27, 2**28)
    assert default_sizes(2**26, 2**36) == (2**28, 2**29, 2**30)
    assert max(default_sizes(2**28, 2**32)) <= 2**32 // 16


def test_caches_are_read_from_the_kernel(tmp_path: Path) -> None:
    for index, (level, kind, size, shared) in enumerate(
        [("1", "Data", "48K", "0"), ("3", "Unified", "32M", "0-3,8"), ("2", "Unified", "odd", "0")]
    ):
        folder = tmp_path / f"index{index}"
        folder.mkdir()
        for name, text in (("level", level), ("type", kind), ("size", size), ("shared_cpu_list", shared)):
            (folder / name).write_text(f"{text}\n")
    found = machine.caches(tmp_path)
    assert [(cache.level, cache.bytes, cache.shared_by) for cache in found] == [(1, 48 * 1024, 1), (3, 2**25, 5)]
    assert machine.largest_cache_bytes(found) == 2**25
    assert machine.caches(tmp_path / "absent") == ()


def crash(connection: Connection, device: Device) -> None:
    os.abort()


def silence(connection: Connection, device: Device) -> None:
    time.sleep(60)


def refusal(connection: Connection, device: Device) -> None:
    connection.send(("say", "working"))
    connection.send(("error", RunError("device probe: the data are wrong")))


@pytest.mark.parametrize(
    ("target", "message"), [(crash, "killed by SIGABRT"), (silence, "no sign of life for 1 s"), (refusal, "data are wrong")]
)
def test_a_fault_of_the_probe_is_one_error_here(target: Any, message: str) -> None:
    said: list[str] = []
    with pytest.raises(RunError, match=message):
        measure_in_child(cpu(), said.append, target=target, silence_limit_s=20 if target is not silence else 1)
    assert said == (["working"] if target is refusal else [])


def test_device_words_are_read_as_for_a_run() -> None:
    assert device_config([]).kind is DeviceKind.AUTO
    named = device_config(["device.index=2"])
    assert (named.kind, named.index) == (DeviceKind.CUDA, 2)
    assert device_config(["device.uuid=GPU-1"]).uuid == "GPU-1"
    assert device_config(["device=cpu"]).kind is DeviceKind.CPU


@pytest.mark.parametrize(
    "words", [["x"], ["device=tpu"], ["device.index=-1"], ["device.index="], ["device=cpu", "device=cpu"], ["engine=a"]]
)
def test_wrong_device_words_are_one_line(words: list[str]) -> None:
    with pytest.raises(UsageError):
        device_config(words)


def test_device_probe_on_a_cpu_writes_a_card_and_prints_it(run_cli: Any, tmp_path: Path) -> None:
    result = run_cli("device", "probe", "device=cpu", "--out", "here/card.json", "--json")
    assert result.returncode == 0, result.stderr
    document = json.loads(result.stdout)
    assert json.loads((tmp_path / "here" / "card.json").read_text()) == document
    assert cards.read_card(tmp_path / "here" / "card.json").device.kind == "cpu"


@pytest.mark.parametrize("words", [("device",), ("device", "erase"), ("device", "probe", "device=tpu"), ("device", "probe", "--nothing")])
def test_wrong_usage_exits_2_with_one_line(run_cli: Any, words: tuple[str, ...]) -> None:
    result = run_cli(*words)
    assert (result.returncode, result.stdout, result.stderr.count("\n")) == (2, "", 1)


def test_a_device_that_is_absent_is_said_in_one_line(run_cli: Any) -> None:
    result = run_cli("device", "probe", "device.uuid=GPU-nowhere")
    assert (result.returncode, result.stdout, result.stderr.count("\n")) == (2, "", 1)


def test_a_gpu_that_torch_cannot_use_is_refused() -> None:
    import torch

    from mkframe.probe.cuda_gpu import CudaGpu

    if torch.cuda.is_available():
        pytest.skip("torch can use one here")
    with pytest.raises(DeviceError, match="cannot use CUDA here"):
        CudaGpu(UUID, DRIVER)
