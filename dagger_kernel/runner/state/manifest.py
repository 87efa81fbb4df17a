"""The manifest: what exists after a step, where its bytes are, what was lost.

It is JSON, so that readers outside the sandbox can list variables without ever
unpickling anything; :func:`parse_manifest` checks every field for them.

Words: a *node* is something with an identity of its own (a variable's value, a
class, a function bound to a name, a user module). A *component* is a set of
nodes which share mutable objects, saved as one pickle and loaded together.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from json import dumps, loads  # the user may patch the module
from typing import Any

from .errors import ManifestError

FORMAT = 1
MAX_BYTES = 64 << 20


@dataclass
class NameEntry:
    """One visible name: its node, and what is known about it unloaded."""

    key: str
    cell: int
    type_name: str
    size: int


@dataclass
class Buffer:
    """Bytes kept outside the pickle: a base slice and later page extents over it."""

    file: str
    offset: int
    length: int
    extents: list[tuple[int, int, str, int]] = field(default_factory=list)
    """(start in the buffer, length, file, offset), later ones over earlier ones."""


@dataclass
class Component:
    """Nodes which are saved and loaded together."""

    keys: list[str]
    skeleton: tuple[str, int, int]
    digest: str
    buffers: list[Buffer]
    references: list[str]
    modules: list[str]

    @property
    def size(self) -> int:
        """Bytes of its pickle and buffers."""
        return self.skeleton[2] + sum(buffer.length for buffer in self.buffers)


@dataclass
class Manifest:
    """State after one step."""

    sequence: int = 0
    parent: str = ""
    cell: int = 0
    step: str = ""
    python: str = ""
    names: dict[str, NameEntry] = field(default_factory=dict)
    components: dict[str, Component] = field(default_factory=dict)
    lost: list[dict[str, Any]] = field(default_factory=list)
    unset: list[str] = field(default_factory=list)
    ambient: dict[str, Any] = field(default_factory=dict)
    lineage: dict[str, Any] = field(default_factory=dict)
    verified: list[str] = field(default_factory=list)
    remade: list[str] = field(default_factory=list)
    """Lost variables which cells make again when they use them, as the user asked."""

    def owners(self) -> dict[str, str]:
        """The component of each node, by the node's key."""
        return {key: cid for cid, found in self.components.items() for key in found.keys}

    def to_json(self) -> bytes:
        """Serialize; equal states give equal bytes."""
        document = {
            "format": FORMAT,
            "sequence": self.sequence,
            "parent": self.parent,
            "cell": self.cell,
            "step": self.step,
            "python": self.python,
            "names": {n: [e.key, e.cell, e.type_name, e.size] for n, e in self.names.items()},
            "components": {c: _pack(component) for c, component in self.components.items()},
            "lost": self.lost,
            "unset": self.unset,
            "ambient": self.ambient,
            "lineage": self.lineage,
            "verified": self.verified,
            "remade": self.remade,
        }
        return dumps(document, separators=(",", ":"), ensure_ascii=True).encode()


def _pack(component: Component) -> list[Any]:
    return [
        component.keys,
        list(component.skeleton),
        component.digest,
        [[b.file, b.offset, b.length, b.extents] for b in component.buffers],
        component.references,
        component.modules,
    ]


def load_manifest(root: str, name: str | None = None) -> tuple[str, Manifest]:
    """Read the manifest `name` ("" is the empty state), or the one ``HEAD`` points at.

    Returns
    -------
    tuple of str and Manifest
        Its file name ("" when nothing was ever saved) and its content.

    Raises
    ------
    ManifestError
        It is damaged or not a manifest.
    """
    given = name is not None
    if name is None:
        try:
            with open(os.path.join(root, "HEAD"), "rb") as file:
                name = file.read(256).decode("ascii", "replace").strip()
        except (FileNotFoundError, NotADirectoryError):
            return "", Manifest()
    if name == "" and given:
        return "", Manifest()
    if not name or os.path.basename(name) != name or name.startswith("."):
        raise ManifestError("HEAD does not name a manifest")
    try:
        with open(os.path.join(root, "m", name), "rb") as file:
            data = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        raise ManifestError(f"the manifest cannot be read: {error}") from error
    if len(data) > MAX_BYTES:
        raise ManifestError(f"manifest {name} is larger than {MAX_BYTES} bytes")
    return name, parse_manifest(data)


def parse_manifest(data: bytes) -> Manifest:
    """Read a manifest's bytes, trusting nothing in them.

    Raises
    ------
    ManifestError
        A field is missing or has the wrong shape.
    """
    try:
        document = loads(data)
        if document["format"] != FORMAT:
            raise ManifestError(f"unknown manifest format {document['format']!r}")
        manifest = Manifest(
            sequence=_int(document["sequence"]),
            parent=_file(document["parent"]),
            cell=_int(document["cell"]),
            step=_str(document["step"]),
            python=_str(document["python"]),
            names={_str(n): _name_entry(entry) for n, entry in document["names"].items()},
            components={_str(c): _component(v) for c, v in document["components"].items()},
            lost=[_lost(entry) for entry in document["lost"]],
            unset=_strings(document["unset"]),
            ambient=dict(document["ambient"]),
            lineage=dict(document["lineage"]),
            verified=_strings(document["verified"]),
            remade=_strings(document.get("remade", [])),
        )
    except ManifestError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise ManifestError(f"not a valid manifest: {type(error).__name__}: {error}") from error
    return manifest


def _name_entry(value: Any) -> NameEntry:
    key, cell, type_name, size = value
    return NameEntry(_str(key), _int(cell), _str(type_name), _int(size))


def _component(value: Any) -> Component:
    keys, skeleton, digest, buffers, references, modules = value
    file, offset, length = skeleton
    return Component(
        keys=_strings(keys),
        skeleton=(_file(file), _int(offset), _int(length)),
        digest=_str(digest),
        buffers=[_buffer(buffer) for buffer in buffers],
        references=_strings(references),
        modules=_strings(modules),
    )


def _buffer(value: Any) -> Buffer:
    file, offset, length, extents = value
    checked = []
    for start, size, name, position in extents:
        if _int(start) + _int(size) > _int(length) + 4096:
            raise ManifestError("a buffer extent lies outside its buffer")
        checked.append((start, size, _file(name), _int(position)))
    return Buffer(_file(file), _int(offset), _int(length), checked)


def _lost(value: Any) -> dict[str, Any]:
    return {
        "name": _str(value["name"]),
        "type": _str(value["type"]),
        "reason": _str(value["reason"]),
        "cell": _int(value["cell"]),
        "new": bool(value["new"]),
    }


def _str(value: Any) -> str:
    if not isinstance(value, str) or len(value) > 1 << 20:
        raise ManifestError(f"expected text, found {type(value).__name__}")
    return value


def _file(value: Any) -> str:
    # A blob or manifest is named by itself: a path would reach outside the directory.
    if "/" in _str(value) or "\0" in value or value.startswith("."):
        raise ManifestError("a file name in the manifest is a path")
    return str(value)


def _int(value: Any) -> int:
    if type(value) is not int or not 0 <= value < 1 << 62:
        raise ManifestError(f"expected a count, found {value!r:.60}")
    return value


def _strings(value: Any) -> list[str]:
    if not isinstance(value, list):
        raise ManifestError(f"expected a list, found {type(value).__name__}")
    return [_str(item) for item in value]
