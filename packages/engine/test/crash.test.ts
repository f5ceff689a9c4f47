import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { problemsOf } from './consistency.test-support.js';
import { useScratch } from './scratch.test-support.js';
import { campaignSize } from '../../../test/support/campaign.js';

const scratch = useScratch();
const script = fileURLToPath(new URL('../../../scripts/crash.mjs', import.meta.url));
const rounds = campaignSize({ quick: 3, full: 20 });

/** Set MILLRACE_SEED to repeat a failed run. */
const seed = Number(process.env['MILLRACE_SEED'] ?? Date.now() % 1_000_000);

test(`a database killed ${rounds} times has all that it acknowledged (seed ${seed})`, async () => {
  const directory = scratch.directory();
  const args = [
    '--no-build',
    '--quiet',
    '--rounds',
    rounds,
    '--seed',
    seed,
    '--directory',
    directory,
  ];
  const child = spawn(process.execPath, [script, ...args.map(String)], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const said = { out: '', errors: '' };
  child.stdout.on('data', (text: Buffer) => (said.out += text.toString()));
  child.stderr.on('data', (text: Buffer) => (said.errors += text.toString()));
  const [code] = (await once(child, 'close')) as [number];
  expect({ code, errors: code === 0 ? '' : said.errors }).toEqual({ code: 0, errors: '' });
  const report = JSON.parse(said.out) as Record<string, number>;
  expect(report).toMatchObject({ ok: true, seed, rounds, kills: rounds });
  // Kills without a call in flight would prove nothing.
  expect(report['answered']).toBeGreaterThan(0);
  expect(report['unanswered']).toBeGreaterThan(rounds / 2);

  // The engine verifies itself after every kill; this independently verifies the last state.
  const db = await scratch.open({}, join(directory, 'data'));
  expect(problemsOf(db.core)).toEqual([]);
}, 180_000);
