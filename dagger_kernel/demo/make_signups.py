"""Make ``q3-signups.csv``: about 5,000 invented sign-ups with the dirt of a real list.

``python -m dagger_kernel.demo.make_signups > dagger_kernel/demo/q3-signups.csv`` writes the committed
file again, byte for byte.
"""

from __future__ import annotations

import csv
import random
import sys
from datetime import datetime, timedelta
from typing import TextIO

SEED = 20250701
FIRST_DAY = datetime(2025, 7, 1)  # noqa: DTZ001 - a list as people export it: local, no zone
DAYS = 92
PEOPLE = 4_430
REPEATED = 0.13
"""How many people signed up more than once."""

GIVEN = (
    "Ada Amir Ana Anders Aoife Bea Bilal Carlos Chen Chloe Dana Dmitri Elif Emma Farid Fatou Freya "
    "Goran Hana Hugo Ines Ivan Jamal Jana Jin Jonas Kai Karin Kofi Lara Leo Lina Luca Maja Marek Mei "
    "Mia Milan Nadia Nils Noor Olga Omar Oscar Paula Pia Quinn Rafael Rosa Sana Selma Sofia Stefan "
    "Tariq Tomas Uma Vera Viktor Wanda Yara Yusuf Zoe"
)
FAMILY = (
    "Abe Ali Berg Brandt Costa Cruz Dahl Diaz Evans Fischer Fox Garcia Haas Holm Ito Jansen Kaya Kim "
    "Klein Kovac Lang Lee Lopez Lund Maier Marin Mendes Moreau Nagy Nowak Okafor Olsen Park Patel "
    "Petrov Popa Ramos Rossi Sato Schmidt Silva Singh Smith Stone Tran Vega Vogel Wang Weber Wolf Yilmaz"
)
DOMAINS = ["example.com", "example.org", "example.net", "mail.example", "post.example"]
PLANS = ["free"] * 7 + ["team"] * 2 + ["pro"]
SOURCES = ["search"] * 5 + ["friend"] * 3 + ["newsletter"] * 2 + ["fair"]


def write(out: TextIO) -> int:
    """Write the list; return the number of rows."""
    rng = random.Random(SEED)  # noqa: S311 - repeatable, not secret
    given_names, family_names = GIVEN.split(), FAMILY.split()
    rows = []
    for number in range(PEOPLE):
        given, family = rng.choice(given_names), rng.choice(family_names)
        email = f"{given}.{family}{number % 97 or ''}@{rng.choice(DOMAINS)}".lower()
        moment = _moment(rng)
        source = rng.choice(SOURCES)
        rows.append((moment, email, f"{given} {family}", rng.choice(PLANS), source))
        while rng.random() < REPEATED:
            moment += timedelta(minutes=rng.randrange(1, 20_000))
            if moment < FIRST_DAY + timedelta(days=DAYS):
                plan = rng.choice(PLANS)
                rows.append((moment, _mistype(rng, email), f"{given} {family}", plan, source))
    rows.sort()
    table = csv.writer(out, lineterminator="\n")
    table.writerow(("signed_up", "email", "name", "plan", "source"))
    table.writerows((f"{row[0]:%Y-%m-%d %H:%M}", *row[1:]) for row in rows)
    return len(rows)


def _moment(rng: random.Random) -> datetime:
    """A moment in the quarter: growing towards its end, fewer at weekends."""
    while True:
        day = int(DAYS * rng.random() ** 0.8)
        moment = FIRST_DAY + timedelta(days=day, minutes=rng.randrange(7 * 60, 23 * 60))
        if moment.weekday() < 5 or rng.random() < 0.45:
            return moment


def _mistype(rng: random.Random, email: str) -> str:
    """The same address as people type it the second time."""
    local, domain = email.split("@")
    return rng.choice(
        [
            email,
            email.upper(),
            email.title(),
            f" {email}",
            f"{email} ",
            f"{local}@{domain.upper()}",
            f"{local}+news@{domain}",
        ]
    )


if __name__ == "__main__":
    write(sys.stdout)
