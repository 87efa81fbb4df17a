"""Recipes for the objects which pickle refuses, or silently gets wrong."""

from . import (
    arrays,
    classes,
    databases,
    files,
    frames,
    functions,
    generators,
    instances,
    iterators,
    misc,
    shell,
    sync,
)

__all__ = [
    "arrays",
    "classes",
    "databases",
    "files",
    "frames",
    "functions",
    "generators",
    "instances",
    "iterators",
    "misc",
    "shell",
    "sync",
]
