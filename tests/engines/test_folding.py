"""Which uploads become one layer."""

from dagger_kernel.engines.base import ChainStep, PutFile
from dagger_kernel.engines.folding import folded


def chain_of(kinds, size=1):
    return [
        ChainStep(
            seq=number, kind=kind, key=f"k{number}", parent_key=f"k{number - 1}", nonce=f"n{number}",
            files=(PutFile(path=f"f{number % 7}", blob=f"b{number}", size=size),) if kind == "upload" else (),
        )
        for number, kind in enumerate(kinds, 1)
    ]  # fmt: skip


def shape(chain, **options):
    return [(position, step.key) for position, step in folded(chain, **options)]


def test_neighbouring_uploads_become_the_last_of_them():
    chain = chain_of(["cell", "upload", "upload", "cell", "upload", "layer", "upload", "upload"])
    assert shape(chain) == [(1, "k1"), (3, "k3"), (4, "k4"), (5, "k5"), (6, "k6"), (8, "k8")]
    assert [item.blob for item in folded(chain)[1][1].files] == ["b2", "b3"]


def test_of_one_path_the_latest_version_is_left():
    ((_, step),) = folded(chain_of(["upload"] * 20))
    assert {item.path: item.blob for item in step.files} == {
        f"f{n % 7}": f"b{n}" for n in range(14, 21)
    }


def test_borders_and_sizes_part_them():
    chain = chain_of(["upload"] * 10)
    assert shape(chain, every=4) == [(4, "k4"), (8, "k8"), (10, "k10")]
    assert shape(chain, most_bytes=3) == [(4, "k4"), (8, "k8"), (10, "k10")]


def test_a_prefix_does_not_depend_on_what_follows():
    chain = chain_of((["upload"] * 9 + ["cell"]) * 5)
    options = {"every": 8, "most_bytes": 5}
    for end in range(10, len(chain), 10):
        assert folded(chain, **options)[: len(folded(chain[:end], **options))] == folded(
            chain[:end], **options
        )
