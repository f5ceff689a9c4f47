import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { open } from '@millrace/db';
import { systemClock } from '@millrace/kit/clock';
import { silentLog } from '@millrace/kit/log';
import { systemRandom } from '@millrace/kit/random';
import { afterAll, expect, test } from 'vitest';
import { storeProblems } from '../src/storage/embedded/consistency.test-support.js';
import { openEmbeddedStore } from '../src/storage/embedded/index.js';
import type { TaskStore } from '../src/storage/task-store.js';

const rounds = 5;
const directory = mkdtempSync(join(tmpdir(), 'millrace-queue-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

test(`a store killed ${rounds} times has all that it acknowledged, whole`, async () => {
  const told = new Map<string, string>();
  const begun = new Map<string, Set<string>>();
  let acts = 0;
  for (let round = 0; round < rounds; round++) {
    for (const line of await workAndKill(systemRandom.integer(50, 400))) {
      const [act, id, ...rest] = line.split(' ');
      acts++;
      // Two workers may both be at a task whose lease has ended; one of them will have it.
      if (act === 'settling') begun.set(id!, (begun.get(id!) ?? new Set()).add(rest[0]!));
      else told.set(id!, act === 'insert' ? act : `${act} ${rest[0]}`);
      if (act === 'settle') begun.delete(id!);
    }
    const database = await open(directory);
    expect(database.readRows(storeProblems)).toEqual([]);
    await database.close();
    await checkTold(told, begun);
  }
  // Kills that met no work would prove nothing.
  expect(acts).toBeGreaterThan(100 * rounds);
}, 180_000);

async function checkTold(
  told: Map<string, string>,
  begun: Map<string, Set<string>>,
): Promise<void> {
  const store = await openEmbeddedStore(directory, {
    clock: systemClock,
    random: systemRandom,
    log: silentLog,
  });
  try {
    for (const [id, act] of told) {
      const status = await statusOf(store, id);
      const allowed = statusesAfter(act, begun.get(id));
      expect({ id, act, status, fits: allowed.includes(status) }).toMatchObject({ fits: true });
      // What was on its way is decided now: the next round goes on from here.
      told.set(id, `found ${status}`);
    }
    begun.clear();
  } finally {
    await store.close();
  }
}

async function statusOf(store: TaskStore, id: string): Promise<string> {
  const found = await store.getTask(id);
  if (!found) return 'not there';
  return found.status;
}

/** How a task may stand if this was the last that its user heard of it. */
function statusesAfter(act: string, begun: ReadonlySet<string> = new Set()): string[] {
  const ends: Record<string, string> = {
    succeeded: 'SUCCEEDED',
    dead: 'DEAD',
    retry: 'PENDING',
    handed_back: 'PENDING',
  };
  const [kind, detail] = act.split(' ');
  const lasts: Record<string, string> = { insert: 'PENDING', claim: 'IN_FLIGHT', found: detail! };
  const last = lasts[kind!] ?? ends[detail!]!;
  // A claim that nobody was told of, and the settlement that was on its way.
  const next = last === 'PENDING' ? ['IN_FLIGHT'] : [];
  const underWay = [...begun].map((verdict) => ends[verdict]!);
  return [last, ...next, ...underWay, ...(begun.size > 0 ? ['IN_FLIGHT'] : [])];
}

/** Runs the work in a process of its own for a while, kills it, and returns what it said. */
async function workAndKill(afterMs: number): Promise<string[]> {
  const module = fileURLToPath(new URL('./task-store/killed-store.ts', import.meta.url));
  // Node 20 cannot read TypeScript, so the child loads the module the way vitest does.
  const script = `
    import { createViteServer } from 'vitest/node';
    const conditions = ['millrace-source', 'node', 'module', 'import', 'default'];
    const server = await createViteServer({
      configFile: false,
      logLevel: 'error',
      server: { middlewareMode: true, watch: null, ws: false },
      optimizeDeps: { noDiscovery: true },
      resolve: { conditions },
      ssr: { resolve: { conditions, externalConditions: conditions } },
    });
    const loaded = await server.ssrLoadModule(${JSON.stringify(module)});
    await loaded.workUntilKilled(${JSON.stringify(directory)});
  `;
  const child = spawn(process.execPath, ['--input-type=module', '--eval', script], {
    cwd: fileURLToPath(new URL('.', import.meta.url)),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const said = { out: '', errors: '' };
  child.stderr.on('data', (text: Buffer) => (said.errors += text.toString()));
  let timer: NodeJS.Timeout | undefined;
  child.stdout.on('data', (text: Buffer) => {
    said.out += text.toString();
    if (said.out.includes('ready\n')) timer ??= setTimeout(() => child.kill('SIGKILL'), afterMs);
  });
  const [, signal] = (await once(child, 'close')) as [number | null, string | null];
  expect({ signal, errors: signal === 'SIGKILL' ? '' : said.errors }).toEqual({
    signal: 'SIGKILL',
    errors: '',
  });
  const lines = said.out.split('\n');
  return lines.slice(lines.indexOf('ready') + 1, -1);
}
