"""What can go wrong, as exceptions."""

from __future__ import annotations

from typing import Any


class MillraceError(Exception):
    """Any error of this package."""


class ApiError(MillraceError):
    """A server refused a request. `code` is the machine code, such as `QUEUE_NOT_FOUND`."""

    def __init__(self, status: int, problem: Any = None, retry_after: float | None = None) -> None:
        body: dict[str, Any] = problem if isinstance(problem, dict) else {}
        # The database has its reasons in the details of a google.rpc.Status.
        details = [each for each in body.get("details") or [] if isinstance(each, dict)]
        reasons = [each["reason"] for each in details if "reason" in each]
        self.status = status
        self.reason: str | None = body.get("reason") or (reasons[0] if reasons else None)
        self.code: str = str(reasons[0] if reasons else body.get("code") or "UNKNOWN")
        self.detail: str = str(body.get("detail") or body.get("message") or f"status {status}")
        self.errors: list[Any] = body.get("errors") or []
        self.body = body
        self.retry_after = retry_after
        super().__init__(f"{self.code}: {self.detail}")


class ConnectionLost(MillraceError):
    """No server could be reached, or the connection broke before the answer."""


class RetryLater(MillraceError):
    """Raised by a handler: try again no sooner than `after` seconds from now, at most an hour."""

    def __init__(self, after: float, message: str | None = None) -> None:
        self.after = after
        super().__init__(message or f"Try again in {after} s")


class PermanentError(MillraceError):
    """Raised by a handler: do not try again. The task goes to the dead-letter queue."""


class StepFailed(PermanentError):
    """A step or a child task failed for good; `error_type` names its error. Uncaught it ends the task."""

    def __init__(self, message: str, error_type: str) -> None:
        self.error_type = error_type
        super().__init__(message)


class TaskFailed(MillraceError):
    """The task that was waited for is dead, or was purged."""

    def __init__(self, message: str, task_id: str, error_type: str | None) -> None:
        self.task_id = task_id
        self.error_type = error_type
        super().__init__(message)


class WaitTimeout(MillraceError):
    """The task that was waited for did not end in time. It goes on."""

    def __init__(self, task_id: str, timeout: float) -> None:
        self.task_id = task_id
        super().__init__(f"The task {task_id} did not end within {timeout} s. It goes on.")


class TaskCancelled(MillraceError):
    """The task of a running handler was cancelled."""


class LeaseLost(MillraceError):
    """Another worker may have the task of a running handler, or will: its result is not taken."""
