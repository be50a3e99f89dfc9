"""The server's API with the user's own id: read own submissions, wait for one to end.

The id is a password. It goes as a header to the configured address alone (redirects are refused, not followed), has
no repr, and `Account.redact` takes it out of anything that is printed or stored.
"""
from __future__ import annotations

import datetime
import os
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness.popcorn.verdict import Problem, Verdict, from_message, is_final

DEFAULT_API = "https://site--bot--dxfjds728w5v.code.run"
JOB_LIMIT_S = 3600  # as long as the program itself waits; the server ends every job after 1800 s
CLOCK_SKEW_S = 300  # between this machine and the server, when an unanswered submission is looked for


class Account:
    """Who is asking, and whom. Raises Problem(AUTH) where `~/.popcorn.yaml` holds no id."""

    def __init__(self) -> None:
        import yaml

        config = Path.home() / ".popcorn.yaml"
        try:
            found = yaml.safe_load(config.read_text(encoding="utf-8"))
        except OSError:
            raise Problem(Verdict.AUTH, "~/.popcorn.yaml is missing: this machine is not registered") from None
        except (yaml.YAMLError, UnicodeDecodeError):
            raise Problem(Verdict.AUTH, "~/.popcorn.yaml is not YAML") from None
        self._id = str(found.get("cli_id") or "") if isinstance(found, dict) else ""
        if not self._id:
            raise Problem(Verdict.AUTH, "~/.popcorn.yaml holds no cli_id")
        self._client: Any = None
        self.api = (os.environ.get("POPCORN_API_URL") or DEFAULT_API).rstrip("/")

    def redact(self, text: str) -> str:
        return text.replace(self._id, "<your id>")

    def _get(self, path: str, **params: str | int) -> Any:
        """The JSON behind a path. Raises Problem; never with the id in it."""
        import httpx

        if self._client is None:  # one for all polls: making one reads the certificates
            self._client = httpx.Client(headers={"X-Popcorn-Cli-Id": self._id}, timeout=30, follow_redirects=False)
        try:
            answer = self._client.get(self.api + path, params=params)
        except (httpx.HTTPError, httpx.InvalidURL) as e:
            raise Problem(Verdict.NETWORK, self.redact(f"{self.api}: {e or type(e).__name__}")) from None
        if answer.status_code == 200:
            try:
                return answer.json()
            except ValueError:
                raise Problem(Verdict.NETWORK, f"{self.api}{path}: the answer is not JSON") from None
        if answer.is_redirect:
            raise Problem(Verdict.NETWORK, f"{self.api} redirects elsewhere; your id is not sent there")
        try:
            detail = str(answer.json().get("detail"))
        except (ValueError, AttributeError):
            detail = answer.text[:200]
        said = self.redact(f"status {answer.status_code}: {detail}")
        told = from_message(said)
        if answer.status_code in (401, 403):
            raise Problem(Verdict.AUTH, said)
        raise Problem(told.verdict if told else Verdict.INFRA, said, told.seconds if told else 0)

    def submission(self, number: int) -> dict[str, Any]:
        doc = self._get(f"/user/submissions/{number}")
        if not isinstance(doc, dict):
            raise Problem(Verdict.INFRA, f"submission {number}: the server's answer is not a record")
        return doc

    def submissions(self, leaderboard: str, limit: int) -> list[dict[str, Any]]:
        """Own submissions, newest first; limit is at most 100."""
        found = self._get("/user/submissions", leaderboard=leaderboard, limit=limit)
        return [d for d in found if isinstance(d, dict)] if isinstance(found, list) else []

    def find(self, code: str, name: str, leaderboard: str, since: datetime.datetime) -> int | None:
        """The number of the submission that holds exactly this code and was taken after `since`, or None.

        For a submission whose number was never seen: a connection that broke while it was sent, or a program of
        generation A, which prints none.
        """
        earliest = since - datetime.timedelta(seconds=CLOCK_SKEW_S)
        for item in self.submissions(leaderboard, 20):
            taken = datetime.datetime.fromisoformat(item.get("submission_time") or "1970-01-01T00:00:00Z")
            if item.get("file_name") == name and taken >= earliest and self.submission(item["id"]).get("code") == code:
                return int(item["id"])
        return None

    def wait(self, number: int, on_status: Callable[[str], None], cut: bool = False) -> dict[str, Any]:
        """Poll until the submission is final. A lost poll is asked again, ever more slowly; POPCORN_PATIENCE_S
        seconds (300) without any answer end it with Problem(NETWORK).

        cut: the connection that sent it broke. Without a job the submission lived on that connection (generation A)
        and the server may never end it: it is then returned as it is.
        """
        patience = float(os.environ.get("POPCORN_PATIENCE_S", 300))
        start = time.monotonic()
        silent: float | None = None  # since when
        delay = 0.2
        while True:
            try:
                doc = self.submission(number)
            except Problem as p:
                now = time.monotonic()
                silent = silent or now
                lasting = p.outcome.verdict not in (Verdict.NETWORK, Verdict.INFRA, Verdict.RATE)
                if lasting or now - silent > patience:
                    raise
                on_status(f"submission {number}: no answer ({p}); asking again")
            else:
                silent = None
                if is_final(doc) or (cut and not doc.get("job")):
                    return doc
                on_status(f"submission {number}: {_state(doc)} ({time.monotonic() - start:.0f} s)")
            if time.monotonic() - start > JOB_LIMIT_S:
                raise Problem(Verdict.TIMEOUT, f"submission {number} is not final after {JOB_LIMIT_S} s; "
                              f"scripts/submit --resume {number} goes on waiting")
            time.sleep(delay * random.uniform(0.8, 1.2))
            delay = min(1.5 * delay, 5)


def _state(doc: dict[str, Any]) -> str:
    status = (doc.get("job") or {}).get("status") or "pending"
    queue = doc.get("runner_queue") or {}
    waiting = queue.get("queued_jobs")
    if waiting is None:
        return status
    return f"{status}, {queue.get('runner')} {queue.get('gpu')} queue: {waiting}"
