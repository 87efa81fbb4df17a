"""The Dockerfile says what the recipe says, and what the environment of cells needs."""

from __future__ import annotations

import json
from pathlib import Path

import dagger_kernel.engines.image as image
from dagger_kernel.engines.dagger import dress
from dagger_kernel.engines.image.recipe import (
    DEFAULT_PACKAGES,
    ENVIRONMENT,
    FORMAT,
    IMAGE,
    commands,
    dockerfile,
    marker,
)
from dagger_kernel.engines.layout import RUNNER_NEEDS
from dagger_kernel.settings import Settings

DOCKERFILE = Path(image.__file__).with_name("Dockerfile")


def test_the_dockerfile_equals_the_recipe():
    assert DOCKERFILE.read_text("utf-8") == dockerfile()


def test_the_recipe_has_the_default_packages_and_what_the_runner_needs():
    assert tuple(Settings().packages.split()) == DEFAULT_PACKAGES
    text = dockerfile()
    for name in (*DEFAULT_PACKAGES, *RUNNER_NEEDS):
        assert f" {name}" in text
    assert f"FROM {IMAGE}\n" in text


def test_the_marker_is_what_the_engine_looks_for():
    assert json.loads(marker()) == {"dagger_kernel_base": FORMAT}
    assert marker() in dockerfile()


def test_a_locked_recipe_takes_what_the_lock_says():
    texts = [command.text for command in commands(DEFAULT_PACKAGES, locked=True)]
    assert any("uv sync --frozen" in text for text in texts)
    assert not any("uv add" in text for text in texts)


def test_cells_find_what_the_image_was_built_with():
    env = dress.sandbox_environment(Settings())
    assert env["HOME"] == ENVIRONMENT["HOME"]
    assert env["VIRTUAL_ENV"] == ENVIRONMENT["VIRTUAL_ENV"]
    assert env["PATH"].split(":")[0] == ENVIRONMENT["PATH"].split(":")[0]
