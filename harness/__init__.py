"""The local harness: see README.md for the map of files."""
