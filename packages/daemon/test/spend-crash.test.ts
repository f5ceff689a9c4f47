import { spawn, type ChildProcess } from 'node:child_process';
import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { open } from '@millrace/engine';
import { seededRandom } from '@millrace/kit/random';
import { afterEach, expect, test } from 'vitest';
import { Tally } from '../src/spend/tally.js';
import { claudeLine, codexCount, codexMeta, truth } from './support/transcripts.js';
import { ApiClient } from './support/client.js';
import { noLocalModel } from './support/daemon.js';

const ctl = fileURLToPath(new URL('../../../bin/ctl', import.meta.url));
const home = mkdtempSync(join(tmpdir(), 'mr-spend-crash-'));
const children: ChildProcess[] = [];

afterEach(() => {
  for (const child of children.splice(0)) if (child.exitCode === null) child.kill('SIGKILL');
  rmSync(home, { recursive: true, force: true });
});

/** Starts a daemon on the home; the client comes when it listens. */
function start(): { child: ChildProcess; ended: Promise<unknown>; api: Promise<ApiClient> } {
  const args = ['--auth=none', '--listen=127.0.0.1:0', `--backends-local-url=${noLocalModel}`];
  const command = [ctl, 'daemon', 'serve', ...args, `--data=${home}/data`];
  const child = spawn(process.execPath, command, {
    env: { PATH: process.env['PATH'] ?? '', HOME: home },
  });
  children.push(child);
  const ended = new Promise((resolve) => child.on('close', (_, signal) => resolve(signal)));
  let out = '';
  const api = new Promise<ApiClient>((resolve) => {
    child.stdout.on('data', (bytes: Buffer) => {
      out += bytes.toString();
      if (!out.includes('\n')) return;
      resolve(new ApiClient((JSON.parse(out.split('\n')[0]!) as { url: string }).url));
    });
  });
  return { child, ended, api };
}

/** Resolves when the store has grown by this many bytes, or stopped growing. */
async function growth(bytes: number): Promise<void> {
  const size = () =>
    readdirSync(join(home, 'data', 'daemon'), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .reduce((sum, { parentPath, name }) => sum + statSync(join(parentPath, name)).size, 0);
  const begun = size();
  for (let waits = 0; waits < 1_000 && size() < begun + bytes; waits++) {
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

/** Holds what the store has counted against the part of each file that it says it has read. */
async function checkStore(): Promise<{ read: number; isWhole: boolean }> {
  const database = await open(join(home, 'data', 'daemon'));
  try {
    const tally = Tally.open(database);
    const counted = { claude: 0, codex: 0 };
    for (const { place, tokens } of tally.cells()) {
      counted[tally.place(place).backend as keyof typeof counted] += tokens.input;
    }
    const reported = { claude: 0, codex: 0 };
    let [read, isWhole] = [0, tally.states.size > 0];
    for (const { path, offset } of tally.states.values()) {
      const text = readFileSync(path).subarray(0, offset).toString();
      reported.claude += new Set(text.match(/"id":"m\d+"/g)).size * 10;
      const totals = [...text.matchAll(/"total_token_usage":\{"input_tokens":(\d+)/g)];
      reported.codex += Number(totals.at(-1)?.[1] ?? 0);
      read += offset;
      isWhole &&= offset === statSync(path).size;
    }
    expect(counted).toEqual(reported);
    return { read, isWhole };
  } finally {
    await database.close();
  }
}

test('kill -9 in the midst of counting changes no figure', async () => {
  const random = seededRandom(11);
  const projects = join(home, '.claude', 'projects', 'p');
  const rollouts = join(home, '.codex', 'sessions');
  mkdirSync(projects, { recursive: true });
  mkdirSync(rollouts, { recursive: true });
  let messages = 0;
  let total = 0;
  /** Some megabytes more, in new files and old ones. */
  const write = () => {
    for (let file = 0; file < 6; file++) {
      let text = '';
      for (let each = 0; each < 1_000; each++) {
        const line = claudeLine(truth(`m${messages++}`, { session: `s${file}`, at: Date.now() }));
        text += each % 3 === 0 ? line + line : line;
      }
      appendFileSync(join(projects, `s${file}.jsonl`), text);
    }
    let text = total === 0 ? codexMeta('thread') : '';
    for (let each = 0; each < 2_000; each++) {
      total += 3;
      text += codexCount([total, total], Date.now());
    }
    appendFileSync(join(rollouts, 'rollout-thread.jsonl'), text);
  };

  const found: string[] = [];
  let before = 0;
  while (found.filter((each) => each === 'part').length < 2 && found.length < 12) {
    write();
    const { child, ended, api } = start();
    await api;
    await growth(random.integer(1, 4) * 64 * 1024);
    child.kill('SIGKILL');
    expect(await ended).toBe('SIGKILL');
    const { read, isWhole } = await checkStore();
    found.push(isWhole ? 'whole' : read > before ? 'part' : 'nothing');
    before = read;
  }
  expect(found).toContain('part');

  const { child, ended, api } = start();
  const client = await api;
  const rollup = await client.ok('GET', '/api/v1/spend');
  expect(rollup).toMatchObject({
    input_tokens: messages * 10 + total,
    output_tokens: messages * 20 + total,
    by_backend: [
      { key: 'claude', input_tokens: messages * 10 },
      { key: 'codex', input_tokens: total, output_tokens: total },
    ],
  });
  child.kill('SIGTERM');
  await ended;
});
