"""Which nodes are saved together: those which share objects, or refer to each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .graph import is_linkable
from .unequal import is_unequal

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .dumping import Dump


def group_nodes(dumps: dict[str, Dump]) -> list[list[str]]:
    """Give the sets of nodes to save together.

    Parameters
    ----------
    dumps : dict
        A dump of each node alone, by key.
    """
    groups = Groups()
    for key in dumps:
        groups.find(key)
    _unite_sharers(groups, dumps)
    while rings := cycles(_edges(groups, dumps)):
        for ring in rings:
            for member in ring[1:]:
                groups.union(ring[0], member)
    return groups.groups(dumps)


def _unite_sharers(groups: Groups, dumps: dict[str, Dump]) -> None:
    """Unite nodes which reach one object whose sharing can be noticed."""
    first: dict[int, str] = {}
    sharers: dict[int, list[str]] = {}
    for key, dump in sorted(dumps.items(), key=lambda item: len(item[1].reached)):
        # Set operations run in C: only what two dumps both reached is looked at one by one.
        common = first.keys() & dump.reached.keys()
        for number in common:
            sharers.setdefault(number, [first[number]]).append(key)
        first.update(dict.fromkeys(dump.reached.keys() - common, key))
    for number, everyone in sharers.items():
        keys = [key for key in everyone if number not in dumps[key].exempt]
        if len(keys) < 2 or not _counts(dumps[keys[0]].reached[number]):
            continue
        if all(number in dumps[key].pickler.copy_on_write for key in keys):
            continue  # nobody writes to it in place
        for key in keys[1:]:
            groups.union(keys[0], key)


def _counts(value: object) -> bool:
    return is_linkable(type(value)) or is_unequal(value)


def _edges(groups: Groups, dumps: dict[str, Dump]) -> dict[str, set[str]]:
    """Which group refers to which."""
    edges: dict[str, set[str]] = {}
    for key, dump in dumps.items():
        edges.setdefault(groups.find(key), set()).update(
            groups.find(reference) for reference in dump.pickler.references if reference in dumps
        )
    return edges


class Groups:
    """Union-find over node keys."""

    def __init__(self) -> None:
        self._parent: dict[str, str] = {}

    def find(self, key: str) -> str:
        """Representative of a key's group."""
        parent = self._parent.setdefault(key, key)
        while parent != key:
            grandparent = self._parent[parent]
            self._parent[key] = grandparent
            key, parent = parent, grandparent
        return key

    def union(self, one: str, other: str) -> None:
        """Put two keys in one group."""
        a, b = self.find(one), self.find(other)
        if a != b:
            self._parent[max(a, b)] = min(a, b)

    def groups(self, keys: Iterable[str]) -> list[list[str]]:
        """Give the groups of these keys, each sorted."""
        found: dict[str, list[str]] = {}
        for key in keys:
            found.setdefault(self.find(key), []).append(key)
        return [sorted(group) for group in found.values()]


def cycles(edges: dict[str, set[str]]) -> list[list[str]]:
    """Strongly connected sets of more than one node (Tarjan, without recursion)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    on_stack: set[str] = set()
    stack: list[str] = []
    found: list[list[str]] = []
    for root, targets in edges.items():
        if root in index:
            continue
        work = [(root, iter(targets))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        while work:
            node, successors = work[-1]
            advanced = False
            for successor in successors:
                if successor not in edges:
                    continue
                if successor not in index:
                    index[successor] = low[successor] = len(index)
                    stack.append(successor)
                    on_stack.add(successor)
                    work.append((successor, iter(edges[successor])))
                    advanced = True
                    break
                if successor in on_stack:
                    low[node] = min(low[node], index[successor])
            if advanced:
                continue
            work.pop()
            if work:
                low[work[-1][0]] = min(low[work[-1][0]], low[node])
            if low[node] == index[node]:
                members = []
                while True:
                    member = stack.pop()
                    on_stack.discard(member)
                    members.append(member)
                    if member == node:
                        break
                if len(members) > 1:
                    found.append(members)
    return found
