"""What a base is made of, as a document: its digest in the blob store is the base's identity.

The document holds the interpreter's version, the packages and their lock, so a base that was
deleted can be built again as it was. Which document new sandboxes use is remembered beside the log,
by the settings that led to it.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, replace

from ...errors import BlobError
from ...settings import Settings
from ...steps import canonical_json, digest_json
from ..base import BlobSource
from ..layout import RUNNER_NEEDS
from .container import Interpreter, platform_tag

FORMAT = 1


@dataclass(frozen=True, slots=True)
class Recipe:
    """The document; ``lock`` is the text of ``uv.lock``, empty while it is not known yet."""

    python: str
    platform: str
    packages: tuple[str, ...]
    lock: str = ""

    def sources(self) -> list[str]:
        """Return the addresses that the locked packages came from: the index and its file hosts."""
        return sorted(set(re.findall(r'"(https?://[^"/]+)', self.lock)))

    def project(self) -> str:
        """Return the text of the base's ``pyproject.toml``."""
        minor = ".".join(self.python.split(".")[:2])
        names = "".join(f"  {json.dumps(name)},\n" for name in (*self.packages, *RUNNER_NEEDS))
        return (
            '[project]\nname = "sandbox"\nversion = "0"\n'
            f'requires-python = ">={minor}"\ndependencies = [\n{names}]\n'
        )

    @property
    def name(self) -> str:
        """What is asked for; see `KnownBases`."""
        return digest_json([FORMAT, RUNNER_NEEDS, asdict(replace(self, lock=""))])[:20]

    def to_blob(self, blobs: BlobSource) -> str:
        """Store the document; return the base's digest."""
        return blobs.put(canonical_json({"format": FORMAT, **asdict(self)}))

    @classmethod
    def from_blob(cls, blobs: BlobSource, digest: str) -> Recipe:
        """Read the document of a base.

        Raises
        ------
        BlobError
            It is missing or damaged.
        """
        with blobs.open(digest) as file:
            data = json.loads(file.read())
        if data.get("format") != FORMAT:
            raise BlobError("The recipe of a base has an unknown format", digest)
        return cls(data["python"], data["platform"], tuple(data["packages"]), data["lock"])

    @classmethod
    def wanted(cls, settings: Settings, interpreter: Interpreter) -> Recipe:
        """Return the recipe that the settings ask for, without a lock."""
        return cls(interpreter.version, platform_tag(), tuple(settings.packages.split()))
