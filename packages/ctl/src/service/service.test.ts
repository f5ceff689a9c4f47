import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Lifecycle } from '../base/lifecycle.js';
import { run } from '../run.js';

/* A systemctl that writes down its arguments; `is-active` succeeds once the service is enabled. */

let home = '';
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'service-'));
  mkdirSync(join(home, 'bin'));
  writeFileSync(
    join(home, 'bin', 'systemctl'),
    `#!/bin/sh
echo "$@" >> "${home}/calls"
case "$2" in
  is-active) grep -q enable "${home}/calls" ;;
  enable) [ ! -e "${home}/broken" ] || { echo "No medium found" >&2; exit 5; } ;;
esac
`,
    { mode: 0o755 },
  );
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

const lifecycle: Lifecycle = {
  interrupted: new AbortController().signal,
  serve: (work) => work(Promise.resolve()),
  onInterrupt: () => () => undefined,
  handOver: (work) => work(),
};

async function service(...args: string[]) {
  let [out, err] = ['', ''];
  const outside = {
    stdout: { write: (text: string | Uint8Array) => (out += text.toString()) },
    stderr: { write: (text: string | Uint8Array) => (err += text.toString()) },
    env: { HOME: home, PATH: `${join(home, 'bin')}:/usr/bin:/bin` },
  };
  const code = await run(['service', ...args, '--for', 'systemd'], outside, lifecycle);
  return { code, out, err };
}

const unit = (name: string) => join(home, '.config', 'systemd', 'user', name);
const calls = () => readFileSync(join(home, 'calls'), 'utf8').trim().split('\n');

test('service: install writes the unit and starts it, uninstall undoes both', async () => {
  const absent = await service('status');
  expect([absent.code, absent.out]).toEqual([1, expect.stringContaining('not installed')]);
  const installed = await service('install', '--data', join(home, 'data'));
  expect(installed).toMatchObject({ code: 0, err: '' });
  expect(readFileSync(unit('millrace.service'), 'utf8')).toContain(
    ` up --data ${join(home, 'data')}\n`,
  );
  expect(calls()).toEqual(['--user daemon-reload', '--user enable --now millrace.service']);
  expect(await service('status')).toMatchObject({ code: 0, out: 'millrace.service: running\n' });
  expect((await service('uninstall')).code).toBe(0);
  expect(existsSync(unit('millrace.service'))).toBe(false);
  expect(calls()).toContain('--user disable --now millrace.service');
  expect((await service('uninstall', '--json')).out).toContain('"removed":false');
});

test('service: --print and --no-start call no service manager', async () => {
  const printed = await service('install', 'queue', '--print');
  expect(printed.out).toMatch(/ queue serve --data .* --tokens-file .*queue-tokens\.yaml\n/);
  expect(existsSync(unit('millrace-queue.service'))).toBe(false);
  const planned = await service('install', 'queue', '--dry-run');
  expect(planned.out).toContain(`Would write ${unit('millrace-queue.service')}`);
  expect(planned.out).toContain('systemctl --user enable --now millrace-queue.service');
  expect(existsSync(unit('millrace-queue.service'))).toBe(false);
  const written = await service('install', 'db', '--no-start');
  expect(written.out).toContain('systemctl --user enable --now millrace-db.service');
  expect(existsSync(unit('millrace-db.service'))).toBe(true);
  expect(existsSync(join(home, 'calls'))).toBe(false);
});

test('service: a failure of the service manager is shown with its words', async () => {
  writeFileSync(join(home, 'broken'), '');
  const { code, err } = await service('install');
  expect([code, err]).toEqual([1, expect.stringContaining('exit code 5: No medium found')]);
  expect(existsSync(unit('millrace.service'))).toBe(false);
  rmSync(join(home, 'bin', 'systemctl'));
});
