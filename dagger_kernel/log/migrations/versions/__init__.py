"""One module per schema version. A published migration is never changed."""
