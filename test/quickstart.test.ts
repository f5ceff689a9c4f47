import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { installFakeAgent } from '../packages/daemon/test/support/fake-agent.js';
import { anyPorts, patient, processes, Up } from './support/up.js';

/* The quickstart as a newcomer types it, with a made-up agent under the name of a real one. */

const root = dirname(dirname(fileURLToPath(import.meta.url)));
let home: string;
let path: string;
let up: Up;

beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), 'millrace-quickstart-'));
  const bin = join(home, 'bin');
  mkdirSync(bin);
  await installFakeAgent(bin, ['claude']);
  path = `${bin}:${dirname(process.execPath)}:/usr/local/bin:/usr/bin:/bin`;
  up = await new Up(join(home, 'data'), anyPorts, false, { PATH: path, HOME: home }).ready();
});
afterAll(async () => {
  up.kill('SIGTERM');
  expect((await up.ended).code).toBe(0);
  const left = () => processes().filter(({ line }) => line.includes(home));
  await vi.waitFor(() => expect(left()).toEqual([]), patient);
  rmSync(home, { recursive: true, force: true });
});

function commands(): string[] {
  const text = readFileSync(join(root, 'docs', 'quickstart.md'), 'utf8');
  const fences = text.matchAll(/^```sh\n([\s\S]*?)^```/gm);
  return Array.from(fences, ([, body = '']) => body.trim().split('\n')).flat();
}

/** What this test has done already, or what has a test of its own. */
const elsewhere = new Set(['npm start', 'npm run build', 'bin/ctl demo']);

test('there is something to run', () => {
  expect(commands().filter((command) => !elsewhere.has(command)).length).toBeGreaterThan(15);
});

test.each(commands().filter((command) => !elsewhere.has(command)))('%s', (command) => {
  const work = join(home, 'work');
  mkdirSync(work, { recursive: true });
  const result = spawnSync(
    'sh',
    ['-c', command.replace(/^bin\/ctl/, `'${join(root, 'bin/ctl')}'`)],
    {
      cwd: work,
      encoding: 'utf8',
      timeout: 150_000,
      env: {
        PATH: path,
        HOME: home,
        MILLRACE_DATA_DIR: join(home, 'data'),
        MILLRACE_DB_URL: up.url('db', 'grpc'),
      },
    },
  );
  expect(result.status, `${result.stdout}${result.stderr}`).toBe(0);
});
