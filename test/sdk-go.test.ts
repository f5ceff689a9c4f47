import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';

const folder = fileURLToPath(new URL('../sdks/go', import.meta.url));
const hasGo = spawnSync('go', ['version']).status === 0;

describe.skipIf(!hasGo)('Go SDK (needs go)', () => {
  test('its tests pass on real servers', () => {
    const run = spawnSync('go', ['test', '-count=1', './...'], { cwd: folder, encoding: 'utf8' });
    expect({ status: run.status, output: run.stdout + run.stderr }).toMatchObject({
      status: 0,
      output: expect.stringMatching(/^ok\s/),
    });
  });

  test('it is formatted, and vet finds nothing', () => {
    const run = (...args: string[]) => spawnSync(args[0]!, args.slice(1), { cwd: folder });
    expect(String(run('gofmt', '-l', '.').stdout)).toBe('');
    expect(run('go', 'vet', './...').status).toBe(0);
  });
});
