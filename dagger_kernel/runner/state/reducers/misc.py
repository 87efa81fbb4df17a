"""Small types."""
