"""The three servers, started once for all tests by `millrace up` on ports of their own."""

from __future__ import annotations

import atexit
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

CTL = os.environ.get("MILLRACE_CTL", str(Path(__file__).parents[3] / "bin" / "ctl"))
_LISTENERS = ("listen", "queue-listen", "queue-grpc", "metrics-listen", "db-grpc", "db-http")


class Servers:
    def __init__(self) -> None:
        self.data = Path(tempfile.mkdtemp(prefix="mr-python-"))
        flags = [part for name in _LISTENERS for part in (f"--{name}", "127.0.0.1:0")]
        self._process = subprocess.Popen(
            ["node", CTL, "up", "--json", "--data", str(self.data), *flags],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={"PATH": os.environ["PATH"], "HOME": str(self.data), "MILLRACE_LOG": "error"},
            text=True,
        )
        atexit.register(self.stop)
        self.urls: dict[str, str] = {}
        assert self._process.stdout is not None
        for line in self._process.stdout:
            event = json.loads(line)
            if event.get("listener") == "http":
                self.urls[event["component"]] = event["url"]
            if event.get("event") == "ready":
                break
        else:
            raise RuntimeError("The servers did not start")
        self.queue_token = (self.data / "queue.token").read_text().strip()
        self.daemon_token = (self.data / "daemon.token").read_text().strip()

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(60)
        if self._process.stdout is not None:
            self._process.stdout.close()
        shutil.rmtree(self.data, ignore_errors=True)


_servers: Servers | None = None


def servers() -> Servers:
    global _servers
    _servers = _servers or Servers()
    return _servers
