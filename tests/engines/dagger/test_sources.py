"""Bases: named by digest, known by a marker, remembered as a document."""

from __future__ import annotations

import io
import json
import tarfile
from dataclasses import replace

import pytest

from dagger_kernel.engines.dagger.bases import Bases
from dagger_kernel.engines.dagger.connection import Connection
from dagger_kernel.engines.dagger.sources import Source, archive_digest, wanted
from dagger_kernel.engines.known import KnownBases, remembered
from dagger_kernel.errors import BaseBuildError, BlobError, SettingError
from dagger_kernel.log import open_log
from dagger_kernel.settings import Settings

IMAGE = "registry.example/base@sha256:" + "0" * 64


def archive(path, *digests):
    with tarfile.open(path, "w") as tar:
        data = json.dumps({"manifests": [{"digest": digest} for digest in digests]}).encode()
        for name, content in (("oci-layout", b"{}"), ("index.json", data)):
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return path


@pytest.fixture
def blobs(tmp_path):
    log = open_log(Settings.load(data_dir=str(tmp_path / "data")))
    yield log.blobs
    log.close()


def test_an_image_must_be_named_by_digest():
    assert wanted(Settings(base_image=IMAGE)).kind == "image"
    with pytest.raises(SettingError, match="sha256"):
        wanted(Settings(base_image="registry.example/base:latest"))


def test_a_path_must_exist(tmp_path):
    with pytest.raises(SettingError, match="base_path"):
        wanted(Settings(base_path=str(tmp_path / "nothing")))


def test_an_archive_is_its_manifest_wherever_it_lies(tmp_path):
    one = archive(tmp_path / "one.tar", "sha256:aa")
    two = archive(tmp_path / "two.tar", "sha256:aa")
    other = archive(tmp_path / "other.tar", "sha256:bb")
    assert archive_digest(one) == archive_digest(two) == "sha256:aa"
    assert archive_digest(other) == "sha256:bb"
    assert wanted(Settings(base_path=str(one))) == wanted(Settings(base_path=str(two)))


def test_a_file_that_is_no_archive_is_refused(tmp_path):
    path = tmp_path / "x.tar"
    path.write_text("nonsense")
    with pytest.raises(BaseBuildError, match=r"x\.tar"):
        archive_digest(path)
    with tarfile.open(path, "w"):
        pass
    with pytest.raises(BaseBuildError, match=r"index\.json"):
        archive_digest(path)


def test_without_image_and_path_the_recipe_is_built():
    source = wanted(Settings(base_image="", base_path=""))
    assert source.kind == "recipe"
    assert "numpy" in source.packages


def test_the_document_comes_back_as_it_was(blobs):
    source = Source(kind="archive", content="sha256:aa", packages=("numpy",), added=("comm==1",))
    digest = source.to_blob(blobs)
    assert Source.from_blob(blobs, digest) == source
    with pytest.raises(BlobError):
        Source.from_blob(blobs, blobs.put(b'{"format": 1, "python": "3.12.1"}'))


def test_a_base_is_remembered_by_what_was_asked_for(tmp_path):
    settings = Settings(data_dir=str(tmp_path / "data"))
    known = KnownBases(settings, "dagger")
    source = Source(kind="archive", content="sha256:aa", packages=("numpy",))
    assert known.get(source.name) is None
    known.put(source.name, "digest")
    assert KnownBases(settings, "dagger").get(replace(source, added=("comm==1",)).name) == "digest"
    assert known.get(replace(source, content="sha256:bb").name) is None
    assert remembered(settings) == ["digest"]


class Image:
    """A container with one file, or none."""

    def __init__(self, text):
        self._text = text

    def file(self, path):
        return self

    async def contents(self):
        if self._text is None:
            raise RuntimeError("open /etc/dagger-kernel-base.json: no such file or directory")
        return self._text


@pytest.mark.parametrize("text", [None, "", "[]", '{"dagger_kernel_base": 99}'])
async def test_an_image_without_our_marker_is_refused(tmp_path, blobs, text):
    settings = Settings(data_dir=str(tmp_path / "data"), base_image=IMAGE)
    bases = Bases(settings, blobs, Connection(settings))
    with pytest.raises(BaseBuildError, match="Dockerfile"):
        await bases._check_marker(Image(text), wanted(settings))


async def test_an_image_with_our_marker_is_taken(tmp_path, blobs):
    settings = Settings(data_dir=str(tmp_path / "data"), base_image=IMAGE)
    bases = Bases(settings, blobs, Connection(settings))
    await bases._check_marker(Image('{"dagger_kernel_base": 1}'), wanted(settings))
