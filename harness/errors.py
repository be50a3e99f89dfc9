"""What a user can fix is raised as UserError and printed once, by cli.main, without a traceback."""
from __future__ import annotations

EXIT_OK, EXIT_WRONG, EXIT_USAGE, EXIT_CANNOT_RUN = 0, 1, 2, 3


class UserError(Exception):
    """A one-line statement of what failed (where, got and wanted), the next thing to do, and the exit code."""

    def __init__(self, what: str, next_step: str = "", exit_code: int = EXIT_USAGE):
        super().__init__(what)
        self.what, self.next_step, self.exit_code = what, next_step, exit_code

    def __str__(self) -> str:
        return self.what + (f"\n  next: {self.next_step}" if self.next_step else "")
