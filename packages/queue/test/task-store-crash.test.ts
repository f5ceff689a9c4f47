import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { open } from '@millrace/engine';
import { systemClock } from '@millrace/kit/clock';
import { silentLog } from '@millrace/kit/log';
import { systemRandom } from '@millrace/kit/random';
import { afterAll, expect, test } from 'vitest';
import { campaignSize } from '../../../test/support/campaign.js';
import { scriptFrom } from '../../../test/support/script.js';
import { storeProblems } from '../src/storage/embedded/verify.js';
import { openEmbeddedStore } from '../src/storage/embedded/open.js';
import type { TaskStore } from '../src/storage/port/task-store.js';

const rounds = campaignSize({ quick: 2, full: 5 });
const newLine = 10;
const directory = mkdtempSync(join(tmpdir(), 'millrace-queue-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

test(`a store killed ${rounds} times has all that it acknowledged, whole`, async () => {
  const seen = new Map<string, SeenTask>();
  let acts = 0;
  for (let round = 0; round < rounds; round++) {
    for (const line of await workAndKill(systemRandom.integer(110, 1_500))) {
      record(seen, line);
      acts++;
    }
    const database = await open(directory);
    expect(database.readRows(storeProblems)).toEqual([]);
    await database.close();
    await checkSeen(seen);
  }
  // Kills that met no work would prove nothing.
  expect(acts).toBeGreaterThan(100 * rounds);
}, 180_000);

/** State of a task as its user knows it. */
interface SeenTask {
  /** How it stood by the last word that was not overtaken. */
  status: string;
  /** The claims of it, in their order; nothing that an older one did counts any more. */
  tokens: string[];
  /** Settlements of the last claim that were begun and not told. Two workers may both be at it. */
  begun: Set<string>;
}

const ends: Record<string, string> = {
  succeeded: 'SUCCEEDED',
  dead: 'DEAD',
  retry: 'PENDING',
  handed_back: 'PENDING',
};

function record(all: Map<string, SeenTask>, line: string): void {
  const [act, id, token, verdict] = line.split(' ') as [string, string, string?, string?];
  const task = all.get(id) ?? { status: 'PENDING', tokens: [], begun: new Set() };
  all.set(id, task);
  if (!token) return;
  if (!task.tokens.includes(token)) {
    task.tokens.push(token);
    task.status = 'IN_FLIGHT';
    task.begun.clear();
  }
  if (token !== task.tokens.at(-1)) return;
  if (act === 'settling') task.begun.add(verdict!);
  if (act === 'settle') {
    task.status = ends[verdict!]!;
    task.begun.clear();
  }
}

async function checkSeen(all: Map<string, SeenTask>): Promise<void> {
  const store = await openEmbeddedStore(directory, {
    clock: systemClock,
    random: systemRandom,
    log: silentLog,
  });
  try {
    for (const [id, seen] of all) {
      const status = await statusOf(store, id);
      expect(statusesAfter(seen), `${id}, found ${status}`).toContain(status);
      // What was on its way is decided now: the next round goes on from here.
      seen.status = status;
      seen.begun.clear();
    }
  } finally {
    await store.close();
  }
}

async function statusOf(store: TaskStore, id: string): Promise<string> {
  const found = await store.getTask(id);
  return found ? found.status : 'not there';
}

/** Statuses that a task may have after the last acknowledged result. */
function statusesAfter({ status, begun }: SeenTask): string[] {
  const underWay = [...begun].map((verdict) => ends[verdict]!);
  const may = [status, ...underWay];
  // A claim whose result was lost.
  return may.includes('PENDING') ? [...may, 'IN_FLIGHT'] : may;
}

/** Runs the work in a process, kills it after a number of operations, and returns its output. */
async function workAndKill(afterActs: number): Promise<string[]> {
  const module = fileURLToPath(new URL('./task-store/killed-store.ts', import.meta.url));
  const script = await scriptFrom(`
    import { workUntilKilled } from ${JSON.stringify(module)};
    await workUntilKilled(${JSON.stringify(directory)});
  `);
  const child = spawn(process.execPath, ['--input-type=module', '-'], {
    cwd: fileURLToPath(new URL('.', import.meta.url)),
  });
  child.stdin.end(script);
  const said = { out: '', errors: '' };
  child.stderr.on('data', (text: Buffer) => (said.errors += text.toString()));
  let acts = -1;
  child.stdout.on('data', (text: Buffer) => {
    said.out += text.toString();
    acts += text.filter((byte) => byte === newLine).length;
    if (acts >= afterActs) child.kill('SIGKILL');
  });
  const [, signal] = (await once(child, 'close')) as [number | null, string | null];
  expect({ signal, errors: signal === 'SIGKILL' ? '' : said.errors }).toEqual({
    signal: 'SIGKILL',
    errors: '',
  });
  const lines = said.out.split('\n');
  return lines.slice(lines.indexOf('ready') + 1, -1);
}
