"""Recipes for the objects which pickle refuses, or silently gets wrong."""

from . import arrays, classes, functions, instances, iterators, misc

__all__ = ["arrays", "classes", "functions", "instances", "iterators", "misc"]
