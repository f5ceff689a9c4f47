import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, test } from 'vitest';
import { campaignSize } from './support/campaign.js';

const minutes = String(campaignSize({ quick: 0.005, full: 0.02 }));
const root = fileURLToPath(new URL('..', import.meta.url));
const targets = readdirSync(join(root, 'fuzz', 'targets')).map((name) => name.replace('.mjs', ''));

function fuzz(...args: string[]): Promise<{ code: number; output: string }> {
  const script = join(root, 'scripts', 'fuzz.mjs');
  return new Promise((resolve) => {
    execFile(process.execPath, [script, '--no-build', ...args], (error, stdout, stderr) => {
      resolve({ code: error ? Number(error.code) : 0, output: stdout + stderr });
    });
  });
}

test('fuzz: there is a target and a small corpus for everything that is parsed', () => {
  expect(targets).toEqual(
    ['acp', 'cron', 'filter', 'grpc', 'http2', 'rest', 'restore', 'schema', 'token'].concat(
      'transcripts',
    ),
  );
  const sizes = targets.flatMap((target) => {
    const directory = join(root, 'fuzz', 'corpus', target);
    return readdirSync(directory).map((name) => readFileSync(join(directory, name)).length);
  });
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(200_000);
});

test('fuzz: each target takes its corpus and some mutations', async () => {
  const { code, output } = await fuzz('--minutes', minutes, '--seed', '1');
  for (const target of targets) expect(output).toContain(`ok     ${target}: `);
  expect(code).toBe(0);
});

describe('a target', () => {
  const directory = mkdtempSync(join(tmpdir(), 'mr-fuzz-test-'));
  afterEach(() => rmSync(directory, { recursive: true, force: true }));

  async function planted(code: string, maxMinutes = '0.1') {
    mkdirSync(join(directory, 'fuzz', 'targets'), { recursive: true });
    mkdirSync(join(directory, 'fuzz', 'corpus', 'planted'), { recursive: true });
    writeFileSync(join(directory, 'fuzz', 'targets', 'planted.mjs'), code);
    writeFileSync(join(directory, 'fuzz', 'corpus', 'planted', 'seed'), 'abc');
    const limits = ['--minutes', maxMinutes, '--seed', '1'];
    const outcome = await fuzz('--root', directory, ...limits);
    const [, file] = /input: (\S+)/.exec(outcome.output) ?? [];
    return { ...outcome, input: file === undefined ? undefined : readFileSync(file, 'latin1') };
  }

  test.each([
    ['that throws', `if (input[0] !== 97) throw new TypeError('planted');`, 'TypeError: planted'],
    ['that rejects late', `if (input[0] !== 97) void Promise.reject(new Error('late'));`, 'late'],
    ['that hangs', `while (input[0] !== 97);`, 'hang: more than 1000 ms of CPU time'],
    ['that eats memory', `const all = []; while (input[0] !== 97) all.push([input[0]]);`, ''],
  ])('%s is found with its input', async (_what, body, message) => {
    const { code, output, input } = await planted(`export function run(input) { ${body} }`);
    expect(output).toContain('FAILED planted: ');
    expect(output).toContain(message);
    expect(output).toContain('seed 1');
    expect([code, input?.startsWith('a')]).toEqual([1, false]);
  });

  test('that refuses as it should is no fault', async () => {
    const refuses = `export function run() { throw new TypeError('no'); }
      export const isExpected = (error) => error instanceof TypeError;`;
    mkdirSync(directory, { recursive: true });
    const { code, output } = await planted(refuses, '0.01');
    expect(output).toContain('ok     planted: ');
    expect(code).toBe(0);
  });
});
