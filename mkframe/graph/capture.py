"""Capture of a call in a CUDA graph, and what the graph holds."""

from collections.abc import Callable
from dataclasses import dataclass

import torch

from mkframe.graph.driver import check, driver


@dataclass(frozen=True, slots=True)
class CapturedGraph:
    """A graph that is ready to replay. `nodes`: one name per node, in the driver's order; kernels by their function name."""

    graph: torch.cuda.CUDAGraph
    nodes: tuple[str, ...]

    def replay(self) -> None:
        self.graph.replay()


def capture(call: Callable[[], None], stream: torch.cuda.Stream, *, names: bool = True) -> CapturedGraph:
    """Runs `call` twice on `stream` (so that nothing is loaded or compiled lazily inside the capture), then captures it.
    `names=False` leaves the nodes of a long graph unread.

    Raises whatever the capture raises: a call that synchronises or allocates outside of the graph's pool cannot be captured.
    """
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(2):
            call()
    stream.synchronize()
    graph = torch.cuda.CUDAGraph(keep_graph=True)
    with torch.cuda.graph(graph, stream=stream):
        call()
    nodes = node_names(graph.raw_cuda_graph()) if names else ()
    graph.instantiate()
    return CapturedGraph(graph, nodes)


def node_names(raw_graph: int) -> tuple[str, ...]:
    """The nodes of a cudaGraph_t, by name: a kernel's function, or the kind of the node ("memset", "memcpy" ...)."""
    cu = driver()
    graph = cu.CUgraph(raw_graph)
    _, count = check(cu.cuGraphGetNodes(graph))
    if count == 0:
        return ()
    nodes, _ = check(cu.cuGraphGetNodes(graph, count))
    return tuple(_node_name(node) for node in nodes)


def _node_name(node: object) -> str:
    cu = driver()
    kind = check(cu.cuGraphNodeGetType(node))
    if kind != cu.CUgraphNodeType.CU_GRAPH_NODE_TYPE_KERNEL:
        return str(kind.name).removeprefix("CU_GRAPH_NODE_TYPE_").lower()
    params = check(cu.cuGraphKernelNodeGetParams(node))
    if int(params.func):
        return _text(check(cu.cuFuncGetName(params.func)))
    return _text(check(cu.cuKernelGetName(params.kern)))


def _text(name: bytes | str) -> str:
    return name.decode(errors="replace") if isinstance(name, bytes) else str(name)
