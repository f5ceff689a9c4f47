// @module-tag campaign-transport
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';

const folder = fileURLToPath(new URL('../sdks/python', import.meta.url));

function pythonVersion(): number {
  const { stdout } = spawnSync('python3', ['-c', 'import sys; print(sys.version_info[1])']);
  return Number(String(stdout ?? '').trim());
}

/** Python 3.11 or newer: the package is written for it. */
const hasPython = pythonVersion() >= 11;

describe.skipIf(!hasPython)('Python SDK (needs python3, 3.11 or newer)', () => {
  test('its tests pass on real servers', () => {
    const run = spawnSync('python3', ['-m', 'unittest', 'discover', '-s', 'tests'], {
      cwd: folder,
      env: { ...process.env, PYTHONPATH: 'src:tests', PYTHONDONTWRITEBYTECODE: '1' },
      encoding: 'utf8',
    });
    expect(run.stderr).toMatch(/^OK$/m);
    expect(run.status).toBe(0);
  });
});
