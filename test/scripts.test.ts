import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';

const run = promisify(execFile);
const root = join(import.meta.dirname, '..');

describe.each(['agents', 'crash', 'failover', 'release', 'simulate', 'soak'])('%s', (name) => {
  const script = join(root, 'scripts', `${name}.mjs`);

  test('--help lists its options', async () => {
    const { stdout, stderr } = await run(process.execPath, [script, '--help']);
    expect(stdout).toMatch(new RegExp(`^usage: npm run ${name} -- `));
    expect(stdout).toContain('--help ');
    expect(stderr).toBe('');
  });

  test('refuses an unknown option and names the help', async () => {
    const failed = run(process.execPath, [script, '--nope']);
    await expect(failed).rejects.toMatchObject({
      code: 2,
      stdout: '',
      stderr: expect.stringMatching(/^Unknown option '--nope'.*\nSee: npm run .* -- --help\n$/),
    });
  });
});

test.each(['queue-workers --rounds 0', '--seed x', 'nothing', '--store postgres'])(
  'crash: refuses %s',
  async (args) => {
    const script = join(root, 'scripts', 'crash.mjs');
    const failed = run(process.execPath, [script, ...args.split(' ')]);
    await expect(failed).rejects.toMatchObject({
      code: 2,
      stderr: expect.stringContaining('npm run crash -- --help'),
    });
  },
);
