from __future__ import annotations

import contextlib
import io
import re
import unittest
from pathlib import Path

from servers import servers

README = Path(__file__).parents[1] / "README.md"


class Readme(unittest.TestCase):
    """The examples of the page run as they are, but for addresses, tokens and the agent."""

    def test_its_examples_run(self) -> None:
        examples = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
        self.assertEqual(len(examples), 4)
        servers_of = ({"8081": "queue"}, {"8081": "queue"}, {"8082": "db"}, {"8080": "daemon"})
        for example, ports in zip(examples, servers_of, strict=True):
            for port, part in ports.items():
                example = example.replace(f"http://127.0.0.1:{port}", servers().urls[part])
            example = re.sub(r'open\("', f'open("{servers().data}/', example)
            # There is no agent on a machine of tests.
            example = re.sub(r"session = .*\n", "", example)
            example = re.sub(r'daemon\.wait.*\["status"\], ', "", example)
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile(example, str(README), "exec"), {})
            self.assertNotEqual(printed.getvalue(), "")


if __name__ == "__main__":
    unittest.main()
