"""What the engine caches by: the nonce on its parent, and nothing that another kernel has otherwise."""

from __future__ import annotations

import pytest

from dagger_kernel.engines.base import ChainStep, PutFile
from dagger_kernel.engines.dagger import dress
from dagger_kernel.engines.dagger.chain import FLATTEN_EVERY, LINK, Ground
from dagger_kernel.engines.dagger.server import host_path
from dagger_kernel.engines.dagger.states import State, States
from dagger_kernel.settings import Settings


class Recording:
    """Stands in for a container: records what is done to it."""

    def __init__(self, calls=()):
        self.calls = calls

    def __getattr__(self, name):
        def call(*args, **kwargs):
            plain = tuple(a.calls if isinstance(a, Recording) else a for a in args)
            return Recording(
                (*self.calls, (name, *(tuple(a) if isinstance(a, list) else a for a in plain)))
            )

        return call

    def layers(self):
        made = ("with_exec", "with_directory", "with_new_file", "with_file", "with_rootfs")
        return sum(1 for call in self.calls if call[0] in made)


def step(kind="cell", nonce="ab", **fields):
    return ChainStep(seq=1, kind=kind, key="k", parent_key="p", nonce=nonce, **fields)


@pytest.fixture
def ground():
    return Ground.on(Recording(), "socket", "/usr/local/bin/python3.12")


def test_a_cell_is_its_nonce_and_nothing_else(ground):
    one = ground.with_step(Recording(), step(request={"source": "x = 1", "answers": ["a"]}))
    two = ground.with_step(Recording(), step(request={"source": "something else"}))
    assert one.calls == two.calls
    assert one.calls != ground.with_step(Recording(), step(nonce="cd")).calls


def test_the_link_is_mounted_once_and_steps_end_as_the_user(ground):
    assert ground.root.calls == (("with_unix_socket", LINK, "socket"),)
    for kind, fields in (
        ("cell", {}),
        ("upload", {"files": (PutFile(path="a", blob="b", size=1),)}),
        ("layer", {"layer": "digest"}),
    ):
        calls = ground.with_step(Recording(), step(kind, **fields)).calls
        assert not any("socket" in call[0] for call in calls)
        users = [call for call in calls if call[0] == "with_user"]
        assert not users or users[-1] == ("with_user", dress.USER)


def test_every_step_is_one_layer(ground):
    files = tuple(PutFile(path=f"f{n}", blob="b", size=1) for n in range(200))
    assert ground.with_step(Recording(), step("upload", files=files)).layers() == 1
    assert ground.with_step(Recording(), step("layer", layer="digest")).layers() == 1
    assert ground.with_step(Recording(), step()).layers() == 1


def test_a_step_without_effect_is_its_parent(ground):
    parent = Recording()
    assert ground.with_step(parent, step("layer", layer=None)) is parent


def test_chains_are_flattened_at_fixed_positions(ground):
    for position in (1, FLATTEN_EVERY - 1, FLATTEN_EVERY + 1):
        container = Recording((("deep",),))
        assert ground.settled(container, position) is container
    for position in (FLATTEN_EVERY, 3 * FLATTEN_EVERY):
        flat = ground.settled(Recording((("deep",),)), position)
        assert flat.calls[:1] == ground.root.calls  # it begins at the root, not at the depth
        assert flat.layers() == 1
    assert 2 * FLATTEN_EVERY < 500


def test_helpers_run_on_an_interpreter_that_cells_cannot_change(ground):
    command = ground.inside("list", "x")
    assert command[:3] == ["/usr/local/bin/python3.12", "-I", "-S"]
    assert "-P" in dress.runner_command(LINK, "ab")


def test_the_host_path_is_the_same_text_in_every_kernel(tmp_path):
    assert host_path(tmp_path / "one", "s") == host_path(tmp_path / "two", "s")


def test_where_packages_come_from_does_not_make_replays_cold(monkeypatch):
    for name in ("UV_DEFAULT_INDEX", "PIP_INDEX_URL", "HTTPS_PROXY", "https_proxy"):
        monkeypatch.delenv(name, raising=False)
    plain = dress.with_environment(Recording(), Settings())
    other = dress.with_environment(
        Recording(), Settings(index_url="https://index.example/simple", proxy="http://proxy:3128")
    )

    def fixed(container):
        return [call for call in container.calls if call[0] != "with_volatile_variable"]

    assert fixed(plain) == fixed(other)
    assert (
        "with_volatile_variable",
        "UV_DEFAULT_INDEX",
        "https://index.example/simple",
    ) in other.calls


def test_the_administrators_certificates_reach_the_sandbox(tmp_path):
    bundle = tmp_path / "ca.pem"
    bundle.write_text("-----BEGIN CERTIFICATE-----\n")
    calls = dress.with_environment(Recording(), Settings(ca_bundle=str(bundle))).calls
    assert ("with_new_file", dress.CA_PLACE, bundle.read_text()) in calls
    assert ("with_env_variable", "SSL_CERT_FILE", dress.CA_PLACE) in calls
    assert not any(
        "SSL_CERT_FILE" in call for call in dress.with_environment(Recording(), Settings()).calls
    )


def test_an_interrupted_cells_state_is_not_its_layers():
    states = States()
    for key, kind, position in (("root", "root", 0), ("p", "cell", 1), ("k", "cell", 2)):
        states.put(State(key=key, parent_key="", position=position, kind=kind, container=None))
    parent = ChainStep(seq=1, kind="cell", key="p", parent_key="root", nonce="1")
    as_layer = ChainStep(seq=2, kind="layer", key="k", parent_key="p", nonce="2", layer="d")
    assert states.deepest([parent, as_layer]).key == "p"
    as_cell = ChainStep(seq=2, kind="cell", key="k", parent_key="p", nonce="2")
    assert states.deepest([parent, as_cell]).key == "k"
    assert states.drop(None) == 2
    assert states.get("root") is not None
