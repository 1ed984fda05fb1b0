"""Capture of a call in a CUDA graph, and what the graph holds."""

from collections.abc import Callable
from dataclasses import dataclass

import torch

from mkframe.graph.edges import read_edges
from mkframe.graph.nodes import node_names, read_kernels
from mkframe.graph.twin import LaunchTwin
from mkframe.model.launch import LaunchRecord


@dataclass(frozen=True, slots=True)
class CapturedGraph:
    """A graph that is ready to replay. `nodes`: one name per node, in the driver's order; kernels by their function name.
    `launches`: its kernels, in that order too. Both are empty where they were left unread."""

    graph: torch.cuda.CUDAGraph
    nodes: tuple[str, ...]
    launches: tuple[LaunchRecord, ...]

    def replay(self) -> None:
        self.graph.replay()

    def twin(self) -> LaunchTwin:
        """Raises RuntimeError, RunError as LaunchTwin does."""
        return LaunchTwin(self.graph.raw_cuda_graph())


def capture(call: Callable[[], None], stream: torch.cuda.Stream, *, read: bool = True) -> CapturedGraph:
    """Runs `call` twice on `stream` (so that nothing is loaded or compiled lazily inside the capture), then captures it.
    `read=False` leaves the nodes of a long graph unread.

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
    nodes, edges = read_edges(graph.raw_cuda_graph()) if read else ((), [])
    captured = CapturedGraph(graph, node_names(nodes), tuple(kernel.launch for kernel in read_kernels(nodes, edges)))
    graph.instantiate()
    return captured
