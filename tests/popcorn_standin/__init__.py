"""A loopback leaderboard for tests: server.py (the HTTP API, sections 2 and 3 of the contract) and popcorn (the
program, section 1, generations A to D). Both are written from the contract, not from the scripts that they test."""
