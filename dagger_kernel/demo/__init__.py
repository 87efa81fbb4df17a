"""Demo notebooks and their data. ``dagger-kernel demo`` runs them."""
