import { systemClock } from '@millrace/kit/clock';
import { systemRandom } from '@millrace/kit/random';
import { expect, onTestFinished, test } from 'vitest';
import { Client } from '../../src/storage/postgres/connections.js';
import { recorded } from '../../src/storage/postgres/events.js';
import { someConfig, someTask } from '../task-store/fixture.js';
import { openOn } from './fresh-store.js';
import { startPostgres } from './postgres-server.js';

test('a task that is submitted after a claim took its lock has events in their order', async () => {
  const postgres = await startPostgres();
  onTestFinished(() => postgres.remove());
  const url = await postgres.database('order');
  const store = await openOn(url);
  const now = systemClock.now();
  await store.putQueue({ queue: 'mail', config: someConfig(), now, by: 'ada' });
  const start = await store.startEvents(now);
  const claim = new Client({ connectionString: url });
  await claim.connect();
  // As a claim does: the lock gives its transaction a number before it looks for tasks.
  await claim.query('BEGIN');
  await claim.query('SELECT queue_no FROM millrace.queue_locks FOR UPDATE');
  await store.insertTasks([someTask({ id: systemRandom.ulid(now), dueAt: now })], now);
  const started = recorded({ type: 'started', from: 'claimed', at: String(now) });
  await claim.query(
    `WITH claimed AS (SELECT queue_no, id, 1 AS attempt FROM millrace.live), ${started} SELECT 1`,
  );
  await claim.query('COMMIT');
  await claim.end();

  const read = async () => {
    const page = await store.readEvents({ after: start, limit: 10 });
    return page === 'stale' ? page : page.events.map(({ event }) => event.type);
  };
  await expect.poll(read).toHaveLength(2);
  expect(await read()).toEqual(['submitted', 'started']);
});
