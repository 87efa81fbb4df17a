"""Where a base comes from, as a document: its digest in the blob store is the base's identity.

``image``: a pre-baked image by digest; ``archive``: an OCI archive of this machine; ``root``: a root
directory of this machine; ``recipe``: built from a plain Python image. ``added`` pins the packages that an
image, archive or root did not have and the runner needs.
"""

from __future__ import annotations

import json
import os
import re
import tarfile
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from ...errors import BaseBuildError, BlobError, SettingError
from ...settings import Settings
from ...steps import canonical_json, digest_json
from ..base import BlobSource
from ..image.recipe import IMAGE
from . import faults

FORMAT = 1
BY_DIGEST = re.compile(r".+@sha256:[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The document.

    Attributes
    ----------
    kind
        ``image``, ``archive``, ``root`` or ``recipe``.
    content
        Reference of the image; digest of the archive's manifests or of the directory.
    packages
        Of the setting ``packages``.
    added
        Exact requirements that complete the base.
    lock, project
        Texts of ``uv.lock`` and ``pyproject.toml`` of a recipe once it was built.
    """

    kind: str
    content: str
    packages: tuple[str, ...]
    added: tuple[str, ...] = ()
    lock: str = ""
    project: str = ""

    @property
    def description(self) -> str:
        """One line for people."""
        return {
            "image": f"image {self.content}",
            "archive": f"OCI archive {self.content[:19]}",
            "root": f"root directory {self.content[:19]}",
        }.get(self.kind, f"{self.content} with {' '.join(self.packages)}")

    @property
    def name(self) -> str:
        """What is asked for, without what its making adds: see `KnownBases`."""
        plain = replace(self, added=(), lock="", project="")
        return digest_json([FORMAT, asdict(plain)])[:20]

    def to_blob(self, blobs: BlobSource) -> str:
        """Store the document; return the base's digest."""
        return blobs.put(canonical_json({"format": FORMAT, "engine": faults.NAME, **asdict(self)}))

    @classmethod
    def from_blob(cls, blobs: BlobSource, digest: str) -> Source:
        """Read the document of a base.

        Raises
        ------
        BlobError
            It is missing, damaged or no document of this engine's bases.
        """
        with blobs.open(digest) as file:
            data = json.loads(file.read())
        if not isinstance(data, dict) or (data.pop("format", 0), data.pop("engine", "")) != (
            FORMAT,
            faults.NAME,
        ):
            raise BlobError("The document of a base has an unknown format", digest)
        return cls(**{**data, "packages": tuple(data["packages"]), "added": tuple(data["added"])})


def wanted(settings: Settings) -> Source:
    """Return what the settings ask for; ``content`` of a root directory is left to the engine.

    Raises
    ------
    SettingError, BaseBuildError
    """
    packages = tuple(settings.packages.split())
    if settings.base_image:
        if not BY_DIGEST.fullmatch(settings.base_image):
            raise SettingError(
                "base_image", settings.base_image, "an image by digest, NAME@sha256:..."
            )
        return Source(kind="image", content=settings.base_image, packages=packages)
    if settings.base_path:
        path = base_path(settings)
        if path.is_dir():
            return Source(kind="root", content="", packages=packages)
        return Source(kind="archive", content=archive_digest(path), packages=packages)
    return Source(kind="recipe", content=IMAGE, packages=packages)


def base_path(settings: Settings) -> Path:
    """Return the setting ``base_path``, absolute.

    Raises
    ------
    SettingError
        There is nothing.
    """
    path = Path(settings.base_path).expanduser().absolute()
    if not path.exists():
        raise SettingError("base_path", settings.base_path, "an OCI archive or a root directory")
    return path


def archive_digest(path: Path) -> str:
    """Return the identity of an OCI archive: the digests of the manifests that its index names.

    Raises
    ------
    BaseBuildError
        It is no OCI archive.
    """
    try:
        with tarfile.open(path) as tar:
            for member in tar:
                if os.path.normpath(member.name) == "index.json":
                    file = tar.extractfile(member)
                    index = json.loads(file.read()) if file else {}
                    digests = sorted(item["digest"] for item in index["manifests"])
                    return digests[0] if len(digests) == 1 else f"sha256:{digest_json(digests)}"
    except (OSError, tarfile.TarError, ValueError, KeyError, TypeError) as error:
        why: object = error
    else:
        why = "it has no index.json"
    raise BaseBuildError(
        f"The base {path.name} is not a usable OCI archive: {why}.", engine=faults.NAME
    )
