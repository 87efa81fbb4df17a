"""The matrix of library objects: restored or reported, nothing silently wrong."""

import pytest

from .catalogue import GROUPS
from .matrix import group


@pytest.mark.parametrize("name", [n for n in GROUPS if n != "scikit-learn"])
def test_a_library(name, engines):
    pytest.importorskip(GROUPS[name][0])
    row = group(engines("zygote"), name)
    assert not row["wrong"]
    assert len(row["restored"]) >= 15
    assert len(row["reported"]) <= 3


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_every_estimator_of_scikit_learn(engines):
    pytest.importorskip("sklearn")
    row = group(engines("zygote"), "scikit-learn")
    assert not row["wrong"]
    assert not row["reported"]
    assert len(row["restored"]) >= 150
