import { expect, test } from 'vitest';
import { useScratch } from '../../../../engine/test/scratch.test-support.js';
import { checkAggregate } from '@millrace/engine/query/aggregate-query';
import { checkFind } from '@millrace/engine/query/query';
import { RecordList } from '@millrace/engine/query/page';
import { systemClock } from '@millrace/kit/clock';
import { stoppableAggregate, stoppableFind } from './queries.js';

const scratch = useScratch();

async function largeCollection() {
  const database = await scratch.open({ clock: systemClock });
  for (let round = 0; round < 20; round++) {
    const inserts = Array.from({ length: 1_000 }, (_, n) =>
      database.writes.insert('c', { n, text: 'y'.repeat(100) }),
    );
    await Promise.all(inserts);
  }
  return database;
}

test('stoppable query: a signal stops a scan and releases its snapshot', async () => {
  const { core } = await largeCollection();
  const query = checkFind({ filter: { field: 'text', op: 'regex', value: 'x$' } });
  const reason = new Error('enough');
  const abort = new AbortController();
  const place = { collection: 'c', transaction: undefined, caller: abort.signal };
  const found = stoppableFind(core, place, query, new RecordList(undefined)).next();
  abort.abort(reason);
  await expect(found).rejects.toBe(reason);
  expect(core.snapshots.size).toBe(0);

  const counting = new AbortController();
  const aggregate = checkAggregate({ groupBy: ['n'] });
  const groups = stoppableAggregate(core, { ...place, caller: counting.signal }, aggregate);
  counting.abort(reason);
  await expect(groups).rejects.toBe(reason);
  expect(core.snapshots.size).toBe(0);
});

test('stoppable query: completes without a signal', async () => {
  const { core } = await largeCollection();
  const { signal } = new AbortController();
  const place = { collection: 'c', transaction: undefined, caller: signal };
  const batches = [];
  const sink = new RecordList(undefined);
  for await (const batch of stoppableFind(core, place, checkFind({ countOnly: true }), sink)) {
    batches.push(batch);
  }
  expect(batches).toMatchObject([{ readSeq: 20_000, end: { count: 20_000 } }]);
  const { groups } = await stoppableAggregate(core, place, checkAggregate({ groupBy: ['n'] }));
  expect(groups).toHaveLength(1_000);
});
