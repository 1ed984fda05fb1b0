"""The edges of a captured graph: which node waits for which, and whether one call of a chain may overlap the next."""

from collections.abc import Sequence
from graphlib import TopologicalSorter
from typing import Any

from mkframe.graph.driver import check, driver

FULL, PROGRAMMATIC = "full", "programmatic"

Edge = tuple[int, int, bool]
"""(from, to, programmatic): places of two nodes in the driver's list."""


def read_edges(raw_graph: int) -> tuple[tuple[Any, ...], list[Edge]]:
    """The nodes of a cudaGraph_t in the driver's order, and its edges."""
    cu = driver()
    graph = cu.CUgraph(raw_graph)
    _, count = check(cu.cuGraphGetNodes(graph))
    nodes = tuple(check(cu.cuGraphGetNodes(graph, count))[0]) if count else ()
    *_, edge_count = check(cu.cuGraphGetEdges(graph))
    sources, targets, data, _ = check(cu.cuGraphGetEdges(graph, edge_count)) if edge_count else ([], [], [], 0)
    place = {int(node): index for index, node in enumerate(nodes)}
    programmatic = cu.CUgraphDependencyType.CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC.value
    return nodes, [
        (place[int(source)], place[int(target)], int(datum.type) == programmatic)
        for source, target, datum in zip(sources, targets, data, strict=True)
    ]


def edges_between_calls(raw_graph: int, calls: int) -> str:
    """ "full" or "programmatic": the weakest edge from a node of one call to a node of a later one, read back from a cudaGraph_t
    that holds `calls` equal calls captured one after another.

    Raises RuntimeError where the nodes do not divide into equal calls, or where two calls are not connected.
    """
    nodes, edges = read_edges(raw_graph)
    return weakest(edges, len(nodes), calls)


def weakest(edges: Sequence[Edge], nodes: int, calls: int) -> str:
    """The rule behind `edges_between_calls`, on plain data: edges are (from, to, programmatic) between nodes 0 to nodes - 1."""
    per_call, rest = divmod(nodes, calls)
    if rest or not per_call:
        raise RuntimeError(f"{nodes} nodes are no whole number of nodes for each of {calls} calls")
    call_of = {node: place // per_call for place, node in enumerate(_in_order(edges, nodes))}
    crossing: dict[int, list[bool]] = {}
    for source, target, programmatic in edges:
        if call_of[source] != call_of[target]:
            crossing.setdefault(call_of[target], []).append(programmatic)
    alone = [call for call in range(1, calls) if call not in crossing]
    if alone:
        raise RuntimeError(f"call {alone[0]} of the chain waits for no earlier one")
    return PROGRAMMATIC if any(any(kinds) for kinds in crossing.values()) else FULL


def _in_order(edges: Sequence[Edge], nodes: int) -> list[int]:
    """The nodes so that every edge leads forward: the driver lists them in no order that it promises."""
    after: dict[int, set[int]] = {node: set() for node in range(nodes)}
    for source, target, _ in edges:
        after[target].add(source)
    return list(TopologicalSorter(after).static_order())
