"""Figures, each a ratio measured side by side in one run."""
