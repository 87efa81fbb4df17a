"""Print rows of milliseconds beside plain ipykernel's, and keep them."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field


@dataclass
class Table:
    """Rows of one benchmark: label -> subject -> milliseconds."""

    title: str
    rows: dict[str, dict[str, float]] = field(default_factory=dict)

    def add(self, label: str, values: dict[str, float]) -> None:
        """Add a row and print it at once: a run takes minutes."""
        if not self.rows:
            print(f"{'':42}" + "".join(f"{name:>22}" for name in values))
        self.rows[label] = values
        plain = values.get("ipykernel")
        cells = []
        for name, value in values.items():
            ratio = f" ({value / plain:5.1f}x)" if plain and name != "ipykernel" else " " * 9
            cells.append(f"{value:9.1f} ms{ratio}".rjust(22))
        print(f"{label:42}" + "".join(cells), flush=True)

    def save(self) -> None:
        """Write the rows to ``benchmarks/results/TITLE.json`` (not committed)."""
        directory = os.path.join(os.path.dirname(__file__), "results")
        os.makedirs(directory, exist_ok=True)
        with open(os.path.join(directory, f"{self.title}.json"), "w", encoding="utf-8") as file:
            json.dump(self.rows, file, indent=1)
