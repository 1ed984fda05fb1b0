"""What only a CUDA device shows: kernel nodes, captured graphs, events, held samples, lies of graphs, faults of the context."""

import json
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.gpu

PLUGINS = Path(__file__).parent / "plugins"
SHORT = ("device=cuda", "timing.processes=1", "timing.rounds=2", "timing.samples_per_round=20", "shape=smoke")
CASES = "shape.smoke.cases=[{rows: 33, channels: 32, hidden: 64}, {rows: 129, channels: 31, hidden: 47}]"


def cells_of(result: Any) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for cell in json.loads(result.stdout)["cells"]:
        found.setdefault(cell["engine"], []).append(cell)
    return found


def run(run_cli: Any, *engines: str, timing: tuple[str, ...] = ()) -> dict[str, list[dict[str, Any]]]:
    result = run_cli(f"plugin_path={PLUGINS}", f"engine=[{','.join(engines)}]", *SHORT, CASES, *timing, "--json")
    assert result.stdout, result.stderr
    return cells_of(result)


def document_of(folder: Path) -> dict[str, Any]:
    (path,) = folder.glob("outputs/*/report.json")
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def test_kernel_nodes_run_eagerly_and_captured(run_cli: Any, tmp_path: Path) -> None:
    cells = run(run_cli, "nodes", "nodes-graph", "torch-cublas", "torch-cublas-graph")
    assert all(cell["outcome"] == "passed" for found in cells.values() for cell in found), cells
    recorded = {cell["engine"]: cell for cell in document_of(tmp_path)["mkframe"]["cells"]}
    assert recorded["nodes-graph"]["nodes"] == ["one_row"]
    assert recorded["nodes"]["nodes"] is None
    assert len(recorded["torch-cublas-graph"]["nodes"]) >= 4


def test_held_samples_leave_the_host_out(run_cli: Any, tmp_path: Path) -> None:
    run(run_cli, "nodes-graph", "torch-cublas", timing=("timing.samples_per_round=100",))
    document = document_of(tmp_path)
    assert document["mkframe"]["timing"]["hold"] is True
    for cell in document["mkframe"]["cells"]:
        assert cell["late_samples"] <= 10, cell
    for case in document["smoke"]:
        for result in case["engines"].values():
            for key in ("min_ms", "p50_ms", "p95_ms", "max_ms", "mean_ms"):
                assert result["host_summary"][key] >= result["stream_summary"][key]


def test_the_recorded_protocol_runs_without_hold(run_cli: Any, tmp_path: Path) -> None:
    run(run_cli, "nodes-graph", timing=("timing=recorded", "timing.rounds=2", "timing.samples_per_round=20"))
    document = document_of(tmp_path)
    assert document["mkframe"]["timing"]["hold"] is False
    assert document["mkframe"]["cells"][0]["late_samples"] is None
    names = {(floor["name"], floor["clock"]) for floor in document["mkframe"]["timing"]["floors"]}
    assert names == {(n, c) for n in ("empty-pair", "empty-kernel", "empty-kernel-graph", "empty-kernel-slope") for c in ("stream", "host")}
    assert document["mkframe"]["rounds"][0]["before"]["sm_clock_mhz"] > 0


@pytest.mark.parametrize(
    ("engine", "outcome", "reason"),
    [
        ("captures-nothing-graph", "incorrect", "graph: the captured graph holds no node"),
        ("captures-an-old-input-graph", "incorrect", "input negated"),
        ("captures-an-old-input", "incorrect", "input negated"),
        ("illegal-address", "crashed", "binding and checking"),
        ("too-much-memory", "oom", "OutOfMemoryError while binding and checking"),
    ],
)
def test_lies_and_faults_cost_their_own_cell(run_cli: Any, engine: str, outcome: str, reason: str) -> None:
    cells = run(run_cli, engine, "nodes-graph")
    assert all(cell["outcome"] == "passed" for cell in cells["nodes-graph"]), cells
    for cell in cells[engine]:
        assert (cell["outcome"], cell["p50_us"]) == (outcome, None)
        assert reason in cell["reason"], cell


def test_torch_compile_in_a_graph_names_its_kernels(run_cli: Any, tmp_path: Path) -> None:
    cells = run(run_cli, "torch-compile", "torch-compile-graph")
    assert all(cell["outcome"] == "passed" for found in cells.values() for cell in found), cells
    recorded = [cell for cell in document_of(tmp_path)["mkframe"]["cells"] if cell["engine"] == "torch-compile-graph"]
    assert all(cell["nodes"] for cell in recorded)


@pytest.mark.parametrize("precision", ["bf16", "fp32", "tf32"])
def test_the_other_precisions_hold_their_contract(run_cli: Any, precision: str) -> None:
    result = run_cli("engine=[torch-cublas-graph,torch-compile-graph]", *SHORT, CASES, f"precision={precision}", "--json")
    assert all(cell["outcome"] == "passed" for found in cells_of(result).values() for cell in found), result.stdout + result.stderr


def test_a_card_of_another_device_refuses(run_cli: Any) -> None:
    import torch

    wrong = "a100" if "A100" not in torch.cuda.get_device_name(0) else "rtx3090"
    result = run_cli("engine=torch-cublas", f"device={wrong}", "shape=smoke")
    assert result.returncode == 2
    assert result.stderr.count("\n") == 1
    assert torch.cuda.get_device_name(0) in result.stderr


def test_a_device_is_found_by_its_uuid(run_cli: Any, tmp_path: Path) -> None:
    import pynvml

    pynvml.nvmlInit()
    uuid = pynvml.nvmlDeviceGetUUID(pynvml.nvmlDeviceGetHandleByIndex(0))
    run_cli("engine=torch-cublas", "device=cuda", f"device.uuid={uuid}", *SHORT[1:], "--json")
    document = document_of(tmp_path)
    assert document["mkframe"]["device"]["uuid"] == uuid
    assert document["mkframe"]["device"]["multiprocessors"] > 0


@pytest.mark.parametrize("protocol", ["replay", "unrolled", "cold"])
def test_the_protocols_of_graphs(run_cli: Any, tmp_path: Path, protocol: str) -> None:
    method = ("timing.method=evict",) if protocol == "cold" else ()
    cells = run(run_cli, "nodes-graph", "torch-cublas-graph", "nodes", timing=(f"timing={protocol}", *method))
    assert {cell["outcome"] for cell in cells.pop("nodes")} == {"unsupported"}
    assert all(cell["outcome"] == "passed" and cell["p50_us"] > 0 for found in cells.values() for cell in found), cells
    document = document_of(tmp_path)
    assert document["timing"] == protocol
    recorded = [cell for cell in document["mkframe"]["cells"] if cell["outcome"] == "passed"]
    if protocol == "unrolled":
        assert all(cell["facts"]["edges"] == "full" and cell["facts"]["sets"] == 4 for cell in recorded)
        assert all("chain on poison" in cell["checks"] for cell in recorded)
    slopes = [
        floor for floor in document["mkframe"]["timing"]["floors"] if floor["name"] == "empty-kernel-slope" and floor["clock"] == "stream"
    ]
    assert all(0.2e-3 < floor["summary"]["p50_ms"] < 2e-3 for floor in slopes)


def test_cold_by_rotation_leaves_l2(run_cli: Any, tmp_path: Path) -> None:
    large = "shape.smoke.cases=[{rows: 4, channels: 2048, hidden: 4096}]"
    result = run_cli(
        "engine=torch-cublas-graph",
        *SHORT,
        large,
        "timing=cold",
        "timing.processes=1",
        "timing.rounds=2",
        "timing.samples_per_round=10",
        "--json",
    )
    assert result.returncode == 0, result.stdout + result.stderr
    (cell,) = document_of(tmp_path)["mkframe"]["cells"]
    assert cell["facts"]["sets"] * cell["cost"]["bytes"] >= 5 * document_of(tmp_path)["mkframe"]["device"]["l2_bytes"] * 0.9


def test_an_engine_that_omits_its_dependency_wait_fails_the_producer_test(run_cli: Any) -> None:
    cells = run(run_cli, "impatient", "impatient-graph", "patient", "patient-graph")
    for engine in ("patient", "patient-graph"):
        assert all(cell["outcome"] == "passed" for cell in cells[engine]), cells
    for engine in ("impatient", "impatient-graph"):
        for cell in cells[engine]:
            assert (cell["outcome"], cell["p50_us"]) == ("incorrect", None)
            assert cell["reason"].startswith("producer"), cell


def test_calls_may_overlap_only_where_the_engine_says_so(run_cli: Any, tmp_path: Path) -> None:
    cells = run(run_cli, "patient-graph", "overlapping-graph", "nodes-graph", timing=("timing=unrolled",))
    assert all(cell["outcome"] == "passed" for name in ("patient-graph", "nodes-graph") for cell in cells[name]), cells
    assert all(cell["outcome"] == "rejected" and cell["reason"].startswith("edges") for cell in cells["overlapping-graph"]), cells
    edges = {cell["engine"]: cell["facts"].get("edges") for cell in document_of(tmp_path)["mkframe"]["cells"]}
    assert (edges["patient-graph"], edges["nodes-graph"]) == ("programmatic", "full")


def test_a_shape_too_small_to_leave_l2_says_so(run_cli: Any) -> None:
    result = run_cli("engine=torch-cublas-graph", *SHORT, CASES, "timing=cold", "timing.processes=1", "timing.rounds=2")
    assert result.returncode == 1
    assert "every cell is unsupported" in result.stderr
    assert "use timing.method=evict" in result.stderr


@pytest.mark.parametrize("protocol", ["per_call", "replay", "unrolled", "cold"])
def test_a_graph_is_read_back_and_has_a_launch_twin(run_cli: Any, tmp_path: Path, protocol: str) -> None:
    method = ("timing.method=evict",) if protocol == "cold" else ()
    cells = run(run_cli, "nodes-graph", "torch-cublas-graph", "patient-graph", timing=(f"timing={protocol}", *method))
    assert all(cell["outcome"] == "passed" for found in cells.values() for cell in found), cells
    for cell in document_of(tmp_path)["mkframe"]["cells"]:
        case, twin = cell["shape"], cell["twin"]
        assert twin["reason"] is None, cell
        assert twin["stream_summary"]["count"] == 20
        own = cell["interval"]["low_ms"]
        assert 0.2e-3 < twin["stream_summary"]["p50_ms"] < own, cell
        assert [launch["name"] for launch in cell["kernels"]] == [name for name in cell["nodes"] if name not in ("memset", "memcpy")]
        if cell["engine"] == "nodes-graph":
            (launch,) = cell["kernels"]
            assert (launch["grid"], launch["block"], launch["cluster"]) == ([case["rows"], 1, 1], [128, 1, 1], [1, 1, 1])
            assert (launch["shared_bytes"], launch["cooperative"], launch["local_bytes"]) == (4 * case["hidden"], False, 0)
            assert launch["programmatic"] is False
            assert 8 <= launch["registers"] <= 255


@pytest.mark.parametrize(
    ("engine", "reason"),
    [
        ("side-stream", "joined: the output is not there when a call has ended"),
        ("side-stream-of-its-own", "joined: the output is not there when a call has ended"),
        ("working-ahead", "device idle: the device works"),
        ("cached-by-content", "fresh input: a call takes"),
        ("skipping-what-is-there", "fresh input: a call takes"),
        ("carve-out-left", "persisting L2: the engine left"),
        ("another-elapsed-time", "originals: torch.cuda.streams.Event.elapsed_time is not the function"),
    ],
)
def test_times_that_are_not_those_of_the_calls_are_rejected(run_cli: Any, engine: str, reason: str) -> None:
    cells = run(run_cli, engine, "nodes", "nodes-graph", "torch-cublas")
    for cell in cells.pop(engine):
        assert (cell["outcome"], cell["p50_us"]) == ("rejected", None), cell
        assert cell["reason"].startswith(reason), cell
    assert all(cell["outcome"] == "passed" for found in cells.values() for cell in found), cells


def test_a_side_stream_that_is_joined_is_honest(run_cli: Any, tmp_path: Path) -> None:
    cells = run(run_cli, "joined-side-stream", "joined-side-stream-graph")
    assert all(cell["outcome"] == "passed" for found in cells.values() for cell in found), cells
    for cell in document_of(tmp_path)["mkframe"]["cells"]:
        assert cell["checks"][-3:] == ["fresh input", "joined", "device idle"]


def test_the_carve_out_of_this_device_is_put_back() -> None:
    import torch
    from cuda.bindings import driver

    from mkframe.graph.carveout import Carveout
    from mkframe.model.outcome import Rejected

    def limit() -> int:
        status, value = driver.cuCtxGetLimit(driver.CUlimit.CU_LIMIT_PERSISTING_L2_CACHE_SIZE)
        assert int(status) == 0
        return int(value)

    torch.zeros(1, device="cuda")
    carveout = Carveout()
    carveout.reset()
    found = limit()
    driver.cuCtxSetLimit(driver.CUlimit.CU_LIMIT_PERSISTING_L2_CACHE_SIZE, 1 << 22)
    if limit() == found:
        pytest.skip("no persisting accesses on this device")
    with pytest.raises(Rejected, match="persisting L2"):
        carveout.check()
    assert limit() == found
