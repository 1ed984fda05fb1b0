"""Kinds of mutants: facts that stand twice, values of the configuration that no run accepts, devices that do not exist."""

from random import Random
from typing import Any

from own_mutants import index_of, own, rehash
from report_mutants import Document, Places

# Facts that stand twice -------------------------------------------------------------------------------------------------------------


@own
def _another_torch_in_a_cell(_: Document, block: Document, __: Random) -> Places:
    block["cells"][0]["facts"]["torch"] = "1.0"
    return ("=/mkframe/cells/0/facts/torch",)


@own
def _another_torch_in_the_packages(document: Document, _: Document, __: Random) -> Places:
    document["packages"]["torch"] = "1.0"
    return ("/mkframe/cells/0/facts/torch",)


@own
def _another_cuda_than_the_device(_: Document, block: Document, random: Random) -> Places:
    index = random.randrange(len(block["cells"]))
    block["cells"][index]["facts"]["cuda"] = "1.0"
    return (f"=/mkframe/cells/{index}/facts/cuda",)


@own
def _another_triton_in_a_cell(_: Document, block: Document, __: Random) -> Places:
    block["cells"][0]["facts"]["triton"] = "1.0"
    return ("=/mkframe/cells/0/facts/triton",)


@own
def _peaks_of_another_driver(_: Document, block: Document, __: Random) -> Places | None:
    if (block["device"].get("peaks") or {}).get("measured") is None:
        return None
    block["device"]["peaks"]["measured"]["driver"] = "1.0"
    return ("=/mkframe/device/peaks/measured/driver",)


def _compiled(block: Document, **changes: Any) -> Places:
    """A graph with an entry of its first launch among its compiled kernels, and `changes` to it."""
    index = index_of(block, "graph")
    launch = (block["cells"][index].get("kernels") or [{"registers": 32, "shared_bytes": 0}])[0]
    entry = {"name": "mlp", "arch": "sm_90a", "registers": launch["registers"], "shared_bytes": launch["shared_bytes"]}
    block["cells"][index]["facts"]["compiled"] = [entry | changes]
    return (f"=/mkframe/cells/{index}/facts/compiled/0",)


@own
def _a_kernel_for_another_architecture(_: Document, block: Document, __: Random) -> Places:
    return _compiled(block, arch="sm_80")


@own
def _a_kernel_with_registers_of_no_launch(_: Document, block: Document, __: Random) -> Places | None:
    return _compiled(block, registers=254) if block["cells"][index_of(block, "graph")].get("kernels") else None


@own
def _a_kernel_with_more_shared_memory_than_its_launch(_: Document, block: Document, __: Random) -> Places | None:
    return _compiled(block, shared_bytes=2**30) if block["cells"][index_of(block, "graph")].get("kernels") else None


@own
def _an_implementation_without_a_file(document: Document, block: Document, __: Random) -> Places:
    del document["source_sha256"]["mkframe_plugins/torch_engines.py"]
    return ("=/mkframe/cells/0/implementation",)


@own
def _a_folder_without_its_file(_: Document, block: Document, __: Random) -> Places:
    for cell in block["cells"]:
        cell["implementation"] = "mkframe_folder_0123456789ab.gone:Engine"
        cell["facts"].pop("compiled", None)
    return ("=/mkframe/cells/0/implementation",)


# Values of the configuration that no run accepts ------------------------------------------------------------------------------------


def _setting(part: str, name: str, value: Any) -> None:
    """A value of the configuration that no run accepts."""

    def changed(_: Document, block: Document, __: Random) -> Places:
        block["config"][part][name] = value
        rehash(block)
        return (f"=/mkframe/config/{part}/{name}",)

    changed.__name__ = f"_{part}_{name}_{value}"
    own(changed)


for _part, _name, _value in (
    ("timing", "hold", "autox"),
    ("timing", "cell_timeout_s", -1.0),
    ("timing", "cell_timeout_s", "never"),
    ("timing", "replays", 50),
    ("timing", "spin_up_s", -0.5),
    ("timing", "budget_s", 0),
    ("timing", "surprise", 1),
    ("device", "index", "lie"),
    ("device", "index", -1),
    ("device", "uuid", "GPU-0"),
    ("workload", "surprise", 1),
    ("energy", "surprise", 1),
):
    _setting(_part, _name, _value)


@own
def _a_seed_that_is_no_number(_: Document, block: Document, __: Random) -> Places:
    block["config"]["shape"]["development"]["seed"] = "lie"
    rehash(block)
    return ("=/mkframe/config/shape/development/seed",)


@own
def _a_precision_of_other_types(_: Document, block: Document, __: Random) -> Places:
    for precision in (block["precision"], block["config"]["precision"]):
        precision["hidden"] = "float32"
    rehash(block)
    return ("=/mkframe/config/precision/hidden",)


@own
def _a_card_without_rates(_: Document, block: Document, __: Random) -> Places | None:
    if not block["config"]["device"]["card"]:
        return None
    block["config"]["device"]["card"]["fp32_flops"] = 0.0
    rehash(block)
    return ("=/mkframe/config/device/card/fp32_flops",)


@own
def _no_targets(_: Document, block: Document, __: Random) -> Places:
    del block["config"]["targets"]
    rehash(block)
    return ("=/mkframe/config",)


@own
def _an_unknown_part_of_the_configuration(_: Document, block: Document, __: Random) -> Places:
    block["config"]["afterwards"] = 1
    rehash(block)
    return ("=/mkframe/config/afterwards",)


# The device ---------------------------------------------------------------------------------------------------------------------------


def _of_device(name: str, value: Any) -> None:
    """A field of the device that no device of its kind has so."""

    def changed(_: Document, block: Document, __: Random) -> Places:
        block["device"][name] = value
        return (f"=/mkframe/device/{name}",)

    changed.__name__ = f"_device_{name}_{value}"
    own(changed)


_FIELDS: tuple[tuple[str, Any], ...] = (
    ("uuid", None),
    ("driver", None),
    ("cuda", None),
    ("multiprocessors", None),
    ("threads", 4),
    ("kind", "tpu"),
    ("compute_capability", "banana"),
    ("memory_bytes", 1000),
)
for _name, _value in _FIELDS:
    _of_device(_name, _value)


@own
def _a_processor_with_multiprocessors(_: Document, block: Document, __: Random) -> Places:
    block["device"] |= {"kind": "cpu", "threads": 8}
    return tuple(f"=/mkframe/device/{name}" for name in ("uuid", "compute_capability", "multiprocessors", "l2_bytes", "driver", "cuda"))


@own
def _a_torch_that_uses_no_gpu(document: Document, block: Document, __: Random) -> Places:
    for place in (document["packages"], *(cell["facts"] for cell in block["cells"] if "torch" in cell["facts"])):
        place["torch"] = "2.11.0+cpu"
    return ("=/packages/torch",)


@own
def _a_torch_for_another_cuda(_: Document, block: Document, __: Random) -> Places:
    for place in (block["device"], *(cell["facts"] for cell in block["cells"] if "cuda" in cell["facts"])):
        place["cuda"] = "12.8"
    return ("=/mkframe/device/cuda",)


@own
def _a_compiler_of_another_version(_: Document, block: Document, __: Random) -> Places | None:
    index = next((i for i, cell in enumerate(block["cells"]) if str(cell["facts"].get("compiler")).startswith("triton ")), None)
    if index is None:
        return None
    block["cells"][index]["facts"]["compiler"] = "triton 2.0.0"
    return (f"=/mkframe/cells/{index}/facts/compiler",)


def _of_the_fused_kernel(name: str, value: int) -> None:
    """A fact that no launch of the fused kernel has."""

    def changed(_: Document, block: Document, __: Random) -> Places | None:
        index = index_of(block, "graph")
        cell = block["cells"][index]
        if not cell.get("kernels"):
            return None
        launch = cell["kernels"][0] | {"grid": [1, 1, 1], "block": [32, 1, 1], "cluster": [1, 1, 1]}
        cell["implementation"], cell["kernels"][0] = "mkframe_plugins.residual_mlp.triton_fused:TritonFused", launch
        stated = {key: launch[key] for key in ("registers", "shared_bytes")} | {"num_warps": 1, "programs": 1}
        cell["facts"] |= stated | {name: value}
        return (f"=/mkframe/cells/{index}/facts",)

    changed.__name__ = f"_fused_{name}"
    own(changed)


for _name, _value in (("registers", 254), ("shared_bytes", 9), ("num_warps", 8), ("programs", 99_999)):
    _of_the_fused_kernel(_name, _value)
