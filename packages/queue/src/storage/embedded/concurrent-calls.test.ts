import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { open } from '@millrace/engine';
import { systemClock } from '@millrace/kit/clock';
import { silentLog } from '@millrace/kit/log';
import { seededRandom } from '@millrace/kit/random';
import { expect, test } from 'vitest';
import { noon, settlementOf, someConfig } from '../../../test/task-store/fixture.js';
import type { WholeTask } from '../../core/task.js';
import { MemoryStore } from '../../../test/support/memory-store/index.js';
import type { ClaimRequest, NewTask, TaskStore, Verdict } from '../port/task-store.js';
import { storeProblems } from './verify.js';
import { EmbeddedStore } from './embedded-store.js';

const rounds = 120;

/** The parts of a claim on which both stores must agree. */
const seen = (tasks: readonly WholeTask[]) =>
  tasks.map(({ id, attempt, status, priority, groupKey }) => [
    id,
    attempt,
    status,
    priority,
    groupKey,
  ]);

test.each([false, true])(
  'claim: runs after settlements and inserts that are being written (FIFO: %s)',
  async (fifoGroups) => {
    const directory = mkdtempSync(join(tmpdir(), 'millrace-queue-'));
    const random = seededRandom(fifoGroups ? 11 : 12);
    const database = await open(directory, { clock: systemClock, random, log: silentLog });
    const embedded = new EmbeddedStore(database, random);
    const memory = new MemoryStore();
    const stores: TaskStore[] = [embedded, memory];
    for (const store of stores) {
      await store.putQueue({ queue: 'mail', config: someConfig(), now: noon, by: 'ada' });
    }
    const chance = (share: number) => random.next() < share;
    let [now, taken] = [noon, 0];
    const newTask = (): NewTask => ({
      id: random.ulid(now),
      queue: 'mail',
      handlerRef: 'mail.send',
      payload: Buffer.from('hello'),
      payloadContentType: 'text/plain',
      headers: {},
      priority: random.integer(3, 5),
      groupKey: chance(0.6) ? `group ${random.integer(1, 3)}` : null,
      dueAt: chance(0.3) ? now + random.integer(1, 40) : now,
      expiresAt: chance(0.1) ? now + random.integer(1, 60) : null,
      submittedBy: 'shop',
      maxPending: 0,
    });
    const verdict = (): Verdict =>
      chance(0.3) ? { kind: 'retry', dueAt: now + random.integer(0, 20) } : { kind: 'succeeded' };
    const request = (round: number): ClaimRequest => {
      let made = 0;
      return {
        queue: 'mail',
        limit: 1 + (round % 4),
        now,
        nodeId: 'node-1',
        leaseExpiresAt: now + 45_000,
        newToken: () => `token-${round}-${made++}`,
        maxInFlight: 6,
        dispatchPerSecond: 0,
        fifoGroups,
      };
    };
    let running: WholeTask[] = [];
    for (let round = 0; round < rounds; round++) {
      now += random.integer(0, 15);
      const tasks = Array.from({ length: random.integer(1, 3) }, newTask);
      const ended = running.filter(() => chance(0.6));
      running = running.filter((task) => !ended.includes(task));
      const settlements = ended.map((task) => ({ ...settlementOf(task, verdict()), now }));
      const settled = embedded.settle(settlements);
      const inserted = embedded.insertTasks(tasks, now);
      const claimed = await embedded.claimDue(request(round));
      await Promise.all([settled, inserted]);
      await memory.settle(settlements);
      await memory.insertTasks(tasks, now);
      expect(seen(claimed)).toEqual(seen(await memory.claimDue(request(round))));
      taken += claimed.length;
      running.push(...claimed);
      expect(await embedded.counts('mail')).toEqual(await memory.counts('mail'));
    }
    expect(database.readRows(storeProblems)).toEqual([]);
    expect(taken).toBeGreaterThan(rounds / 2);
    await embedded.close();
    rmSync(directory, { recursive: true, force: true });
  },
);
