import { systemClock } from '@millrace/kit/clock';
import { silentLog } from '@millrace/kit/log';
import { systemRandom } from '@millrace/kit/random';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { campaignSize } from '../../../../test/support/campaign.js';
import { MemoryStore } from '../support/memory-store/index.js';
import { openPostgresStore } from '../../src/storage/postgres/open.js';
import { flowOperations, ModelRun, type Operation } from '../task-store/model-run.js';
import { tableProblems } from './consistency.js';
import { emptyTables, startPostgres, type PostgresServer } from './postgres-server.js';

const runs = Number(process.env['MILLRACE_RUNS'] ?? campaignSize({ quick: 8, full: 25 }));

/** A claim raises the low-water mark past a task that expired a day ago. */
const expiredIsPassed: Operation[] = [
  ['insert', 0, 0, 2, 10, 12],
  ['wait', 0, 0, 0, 0, 0],
  ['insert', 0, 0, 2, 10, 2],
  ['claim', 0, 1, 1_000, 1, 0],
];

/** A task with a unique key fills the queue for the one behind it. */
const keyedFillsQueue: Operation[] = [
  ['insert', 0, 3, 6, 1, 2],
  ['insert', 0, 1, 21, 4, 3],
];

const examples: [Operation[]][] = [[expiredIsPassed], [keyedFillsQueue]];

let postgres: PostgresServer;
beforeAll(async () => void (postgres = await startPostgres()));
afterAll(() => postgres.remove());

test('model: the PostgreSQL store returns the same as the memory store', async () => {
  const url = await postgres.database('queue');
  const store = await openPostgresStore(url, {
    clock: systemClock,
    random: systemRandom,
    log: silentLog,
  });
  try {
    await fc.assert(
      fc.asyncProperty(flowOperations, async (list) => {
        await postgres.sql(url, emptyTables);
        await new ModelRun(new MemoryStore(), store).run(list);
        expect(await tableProblems(postgres, url)).toEqual([]);
      }),
      // Before the test times out, so that a failure is reported with its counterexample.
      { numRuns: runs + examples.length, interruptAfterTimeLimit: 120_000, examples },
    );
  } finally {
    await store.close();
  }
});
