import { writeSync } from 'node:fs';
import { systemClock } from '@millrace/kit/clock';
import { silentLog } from '@millrace/kit/log';
import { systemRandom } from '@millrace/kit/random';
import { openEmbeddedStore } from '../../src/storage/embedded/open.js';
import type { WholeTask } from '../../src/core/task.js';
import type { TaskStore, Verdict } from '../../src/storage/port/task-store.js';
import { settlementOf, someConfig } from './fixture.js';

/**
 * Uses a store until the process is killed, and writes a line for each acknowledged call: `insert
 * ID`, `claim ID TOKEN`, `settle ID TOKEN VERDICT`; before a settlement, `settling ID TOKEN
 * VERDICT`. Calls of one commit are acknowledged together, so a claim may be printed before the
 * settlement that freed its capacity: the token identifies the claim.
 */
export async function workUntilKilled(directory: string): Promise<void> {
  const store = await openEmbeddedStore(directory, {
    clock: systemClock,
    random: systemRandom,
    log: silentLog,
  });
  const now = systemClock.now();
  if (!(await store.getQueue('mail'))) {
    await store.putQueue({ queue: 'mail', config: someConfig(), now, by: 'ada' });
  }
  writeSync(1, 'ready\n');
  await Promise.all([submitter(store), submitter(store), worker(store), worker(store)]);
}

function say(lines: readonly string[]): void {
  writeSync(1, lines.map((line) => `${line}\n`).join(''));
}

async function submitter(store: TaskStore): Promise<void> {
  for (;;) {
    const now = systemClock.now();
    const tasks = Array.from({ length: systemRandom.integer(1, 20) }, () => ({
      id: systemRandom.ulid(now),
      queue: 'mail',
      handlerRef: 'mail.send',
      payload: Buffer.alloc(systemRandom.integer(0, 2_000)),
      payloadContentType: 'text/plain',
      headers: {},
      priority: systemRandom.integer(3, 5),
      groupKey: [null, 'a', 'b'][systemRandom.integer(0, 2)]!,
      dueAt: now + systemRandom.integer(-5, 5),
      expiresAt: null,
      submittedBy: 'shop',
      maxPending: 0,
    }));
    await store.insertTasks(tasks, now);
    say(tasks.map(({ id }) => `insert ${id}`));
  }
}

async function worker(store: TaskStore): Promise<void> {
  for (;;) {
    const now = systemClock.now();
    const tasks = await store.claimDue({
      queue: 'mail',
      limit: 20,
      now,
      nodeId: 'node-1',
      leaseExpiresAt: now + 1_000,
      newToken: () => Buffer.from(systemRandom.bytes(8)).toString('hex'),
      maxInFlight: 1_000,
      dispatchPerSecond: 0,
      fifoGroups: true,
    });
    say(tasks.map(({ id, lease }) => `claim ${id} ${lease!.token}`));
    await settle(store, tasks, now);
    // What the process before this one had in its hands.
    const ended = await store.endedLeases({ now, limit: 20 });
    await settle(store, ended, now);
    if (tasks.length === 0) await systemClock.sleep(1);
  }
}

async function settle(store: TaskStore, tasks: readonly WholeTask[], now: number): Promise<void> {
  const settlements = tasks.map((task) => settlementOf(task, someVerdict(now), { now }));
  say(settlements.map(({ id, token, verdict }) => `settling ${id} ${token} ${verdict.kind}`));
  const results = await store.settle(settlements);
  const settled = settlements.filter((_, i) => results[i]!.kind === 'settled');
  say(settled.map(({ id, token, verdict }) => `settle ${id} ${token} ${verdict.kind}`));
}

function someVerdict(now: number): Verdict {
  const draw = systemRandom.integer(1, 10);
  if (draw <= 6) return { kind: 'succeeded' };
  if (draw <= 8) return { kind: 'retry', dueAt: now + systemRandom.integer(0, 3) };
  if (draw === 9) return { kind: 'dead', reason: 'PERMANENT' };
  return { kind: 'handed_back', dueAt: now };
}
