from __future__ import annotations

import unittest

from millrace import ApiError, Daemon
from servers import servers


class Agents(unittest.TestCase):
    def setUp(self) -> None:
        self.daemon = Daemon(servers().urls["daemon"], servers().daemon_token)
        self.addCleanup(self.daemon.close)

    def test_figures(self) -> None:
        self.assertEqual(self.daemon.spend()["total_usd"], 0)
        self.assertEqual(self.daemon.sessions(), [])

    def test_refusals(self) -> None:
        with self.assertRaises(ApiError) as caught:
            self.daemon.spawn("hello", backend="nobody")
        self.assertGreaterEqual(caught.exception.status, 400)
        with self.assertRaises(ApiError) as caught:
            self.daemon.session("none")
        self.assertEqual(caught.exception.status, 404)
        with self.assertRaises(ApiError) as caught:
            Daemon(servers().urls["daemon"], "wrong").spend()
        self.assertEqual(caught.exception.status, 401)


if __name__ == "__main__":
    unittest.main()
