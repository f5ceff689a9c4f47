import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ctl } from '../packages/ctl/test/run-ctl.js';
import { root } from './support/markdown.js';
import { anyPorts, Up } from './support/up.js';

/*
 * Data directories as each released version left them: two records, the queue "agents" paused with
 * one task, and a backend with the tier subscription.
 */

const fixtures = join(root, 'test', 'fixtures', 'data');
const releases = readdirSync(fixtures).map((file) => file.replace('.tar.gz', ''));
const taskId = '01HZZZZZZZZZZZZZZZZZZZZZZZ';

let home = '';
let data = '';
let up: Up | undefined;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'millrace-upgrade-'));
  data = join(home, 'data');
});
afterEach(async () => {
  up?.kill('SIGKILL');
  await up?.ended;
  up = undefined;
  rmSync(home, { recursive: true, force: true });
});

const here = (...args: string[]) => ctl(args, { MILLRACE_DATA_DIR: data, HOME: home });
const json = async (...args: string[]) => JSON.parse((await here(...args, '--json')).out);

test('upgrade: there is a fixture of every release in the changelog', () => {
  const changelog = readFileSync(join(root, 'CHANGELOG.md'), 'utf8');
  const released = Array.from(changelog.matchAll(/^## \[(\d+\.\d+\.\d+)\]/gm), ([, one]) => one);
  expect(releases).toEqual(expect.arrayContaining(['0.1.0', ...released]));
});

describe.each(releases)('data of %s', (release) => {
  // Only that of the first release has an older format.
  const tags = release === '0.1.0' ? {} : { tags: 'campaign-cases' };
  test('opens with everything in it, and again after that', tags, async () => {
    execFileSync('tar', ['-xzf', join(fixtures, `${release}.tar.gz`), '-C', home]);
    for (let round = 0; round < 2; round++) {
      up = await new Up(data, anyPorts, false).ready();
      expect((await here('db', 'get', 'parts', 'wheel')).out).toContain('"teeth": 48');
      const task = await json('queue', 'get', taskId);
      expect(task).toMatchObject({ id: taskId, queue: 'agents', status: 'PENDING' });
      expect((await here('backend', 'list')).out).toMatch(/^claude .*subscription/m);
      expect((await up.stop()).code).toBe(0);
    }
    const upgraded = release === '0.1.0' ? ['db', 'queue', 'daemon'] : [];
    for (const part of upgraded) {
      const backup = join(data, part, 'backup-before-format-2');
      expect(readFileSync(join(backup, 'CURRENT'), 'utf8')).toMatch(/^store-\d{6}\.mdb\n$/);
    }
    const { version } = await json('version');
    expect(readFileSync(join(data, 'VERSION'), 'utf8')).toBe(`${version}\n`);
  });
});

test('upgrade: --no-upgrade refuses older data, which stays as it was', async () => {
  execFileSync('tar', ['-xzf', join(fixtures, '0.1.0.tar.gz'), '-C', home]);
  const stores = ['db', 'queue', 'daemon'].map((part) => join(data, part, 'store-000001.mdb'));
  const before = stores.map((file) => readFileSync(file));
  const { code, err } = await here('up', '--no-upgrade', ...anyPorts);
  expect([code, err]).toEqual([1, expect.stringContaining('--no-upgrade')]);
  stores.forEach((file, i) => expect(readFileSync(file).equals(before[i]!)).toBe(true));
  for (const words of [
    ['db', 'serve', '--data', join(data, 'db')],
    ['queue', 'serve', '--data', data, '--tokens-file', join(data, 'queue-tokens.yaml')],
    ['daemon', 'serve', '--data', data],
  ]) {
    const refused = await here(...words, '--no-upgrade');
    expect([refused.code, refused.err]).toEqual([
      1,
      expect.stringContaining('has format 1, and this Millrace would upgrade it to format 2'),
    ]);
  }
});

test('upgrade: data of a newer version is refused and not touched', async () => {
  execFileSync('tar', ['-xzf', join(fixtures, '0.1.0.tar.gz'), '-C', home]);
  writeFileSync(join(data, 'VERSION'), '99.1.0\n');
  const before = readFileSync(join(data, 'db', 'store-000001.mdb'));
  const { code, err } = await here('up', ...anyPorts);
  expect([code, err]).toEqual([1, expect.stringContaining('npm install -g millrace@99.1.0')]);
  expect(readFileSync(join(data, 'db', 'store-000001.mdb')).equals(before)).toBe(true);
});
