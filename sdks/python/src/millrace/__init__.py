"""Clients of the Millrace queue, database and daemon, and workers for its tasks."""

from .daemon import Daemon
from .database import Change, Collection, Database, Record, Transaction, Watch
from .errors import (
    ApiError,
    ConnectionLost,
    LeaseLost,
    MillraceError,
    PermanentError,
    RetryLater,
    StepFailed,
    TaskCancelled,
    TaskFailed,
    WaitTimeout,
)
from .queue import AsyncQueue, Queue
from .steps import AsyncSteps, Steps
from .tasks import SubmitOptions, Task
from .ulid import new_ulid
from .worker import Call, Worker

__all__ = [
    "ApiError",
    "AsyncQueue",
    "AsyncSteps",
    "Call",
    "Change",
    "Collection",
    "ConnectionLost",
    "Daemon",
    "Database",
    "LeaseLost",
    "MillraceError",
    "PermanentError",
    "Queue",
    "Record",
    "RetryLater",
    "StepFailed",
    "Steps",
    "SubmitOptions",
    "Task",
    "TaskCancelled",
    "TaskFailed",
    "Transaction",
    "WaitTimeout",
    "Watch",
    "Worker",
    "new_ulid",
]
