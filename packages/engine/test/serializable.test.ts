import { setImmediate as turn } from 'node:timers/promises';
import { Refusal } from '@millrace/kit/errors';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { problemsOf } from './consistency.test-support.js';
import type { Database } from '../src/api/database.js';
import { useScratch } from './scratch.test-support.js';
import {
  serialOrder,
  type History,
  type Model,
  type Operation,
} from './serial-order.test-support.js';
import type { Transaction } from '../src/write/transactions.js';

interface Row {
  n: number;
  badge?: number;
}

const scratch = useScratch();
const transactions = 4;

const collection = fc.constantFrom('old', 'new');
const key = fc.constantFrom('a', 'b', 'c');
const badge = fc.option(fc.constantFrom(1, 2), { nil: undefined });
const n = fc.integer({ min: 0, max: 9 });
const operation: fc.Arbitrary<Operation> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('read' as const), collection, key }) },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant('select' as const), collection, atLeast: n }),
  },
  {
    weight: 6,
    arbitrary: fc
      .record({
        kind: fc.constantFrom('insert' as const, 'update' as const, 'upsert' as const),
        collection,
        key,
        n,
        badge,
      })
      .map(({ badge: given, ...rest }) =>
        // Only the old collection has the unique index.
        given === undefined || rest.collection === 'new' ? rest : { ...rest, badge: given },
      ),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('delete' as const), collection, key }) },
);

/** Who does what next. A step of a transaction that has ended is passed over. */
const step = fc.record({
  who: fc.integer({ min: 0, max: transactions - 1 }),
  what: fc.oneof(
    { weight: 8, arbitrary: operation },
    { weight: 2, arbitrary: fc.constant('commit' as const) },
    { weight: 5, arbitrary: fc.constant('outside' as const) },
  ),
  outside: operation,
  wait: fc.boolean(),
});
/** The same steps with all of them at one record. */
const narrowSteps = fc.array(step, { minLength: 4, maxLength: 30 }).map((steps) => {
  const narrow = (each: Operation): Operation =>
    each.kind === 'select'
      ? { ...each, collection: 'old', atLeast: 0 }
      : { ...each, collection: 'old', key: 'a' };
  return steps.map(({ what, outside, ...rest }) => ({
    ...rest,
    what: typeof what === 'object' ? narrow(what) : what,
    outside: narrow(outside),
  }));
});
const seedRow = fc.record({ key, n });

/** Runs an operation and puts what it answered in few words. */
async function carryOut(
  db: Database,
  operation: Operation,
  newName: string,
  transaction?: Transaction,
): Promise<string> {
  const rows = db.collection<Row>(operation.collection === 'new' ? newName : 'old');
  const inside = { transaction };
  try {
    switch (operation.kind) {
      case 'read':
        return String((await rows.findByKey(operation.key, inside))?.data.n ?? 'none');
      case 'select': {
        const filter = { field: 'n', op: 'gte', value: operation.atLeast } as const;
        const { records } = await rows.find({ filter }, inside);
        return records
          .map((each) => `${each.key}=${each.data.n}`)
          .sort()
          .join(' ');
      }
      case 'insert':
        await rows.insertWithKey(operation.key, rowOf(operation), inside);
        return 'ok';
      case 'update':
        await rows.updateByKey(operation.key, rowOf(operation), inside);
        return 'ok';
      case 'upsert': {
        const { created } = await rows.upsert(operation.key, rowOf(operation), inside);
        return created ? 'created' : 'updated';
      }
      case 'delete':
        await rows.deleteByKey(operation.key, inside);
        return 'ok';
    }
  } catch (error) {
    if (error instanceof Refusal) return error.code;
    throw error;
  }
}

function rowOf({ n: value, badge: given }: { n: number; badge?: number }): Row {
  return given === undefined ? { n: value } : { n: value, badge: given };
}

async function stateOf(db: Database, newName: string): Promise<Model> {
  const model = new Map<string, Row>();
  for (const name of ['old', 'new']) {
    const { records } = await db.collection<Row>(name === 'new' ? newName : name).find();
    for (const each of records) model.set(`${name}/${each.key}`, each.data);
  }
  return model;
}

async function beginAnew(db: Database, seeds: readonly Seed[]): Promise<void> {
  const old = db.collection<Row>('old');
  for (const { id } of (await old.find()).records) await old.delete(id);
  for (const { key: name, n: value } of seeds) await old.upsert(name, { n: value });
}

/** One history being made: its transaction is begun by its first operation. */
class Actor {
  transaction: Transaction | undefined;
  readonly history: History;
  isOver = false;
  outcome: Promise<'committed' | 'refused'> | undefined;

  constructor(name: string) {
    this.history = { name, began: 0, ended: Infinity, observed: [] };
  }

  commit(db: Database, time: () => number): void {
    this.isOver = true;
    if (!this.transaction) return;
    this.outcome = db.transactions.commit(this.transaction.id).then(
      () => {
        this.history.ended = time();
        return 'committed' as const;
      },
      (error: unknown) => {
        expect((error as Refusal).code).toMatch(/^(TX_CONFLICT|UNIQUE_VIOLATION)$/);
        return 'refused' as const;
      },
    );
  }
}

/** Makes the disk slow, so that much happens while a commit is on its way. */
function slowDown(db: Database): void {
  const { tables } = db.core;
  const commit = tables.commit.bind(tables);
  let commits = 0;
  tables.commit = async (writes, onVisible) => {
    const phase = commits++ % 4;
    if (phase % 2 === 1) await new Promise((resolve) => setTimeout(resolve, 3));
    await commit(writes, onVisible);
    if (phase > 1) await new Promise((resolve) => setTimeout(resolve, 3));
  };
}

const tally = { committed: 0, refused: 0, outside: 0 };

async function play(db: Database, newName: string, steps: readonly Step[]) {
  const start = await stateOf(db, newName);
  const actors = Array.from({ length: transactions }, (_, i) => new Actor(`T${i}`));
  const outside: History[] = [];
  let clock = 0;
  const time = () => ++clock;
  for (const { who, what, outside: alone, wait } of steps) {
    const actor = actors[who]!;
    if (what === 'outside') {
      const began = time();
      const saw = await carryOut(db, alone, newName);
      const observed = [{ operation: alone, saw }];
      outside.push({ name: `S${outside.length}`, began, ended: time(), observed });
    } else if (!actor.isOver) {
      if (what === 'commit') actor.commit(db, time);
      else {
        if (!actor.transaction) actor.history.began = time();
        actor.transaction ??= db.transactions.begin();
        const saw = await carryOut(db, what, newName, actor.transaction);
        actor.history.observed.push({ operation: what, saw });
      }
    }
    if (wait) await actor.outcome;
    else await turn();
  }
  for (const actor of actors) if (!actor.isOver) actor.commit(db, time);
  const histories = [...outside];
  for (const actor of actors) {
    const outcome = await actor.outcome;
    if (outcome === 'committed') histories.push(actor.history);
    if (outcome) tally[outcome]++;
  }
  tally.outside += outside.length;
  return { start, histories, end: await stateOf(db, newName) };
}

type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;
type Seed = typeof seedRow extends fc.Arbitrary<infer T> ? T : never;

test('what committed transactions saw and did fits an order, one after the other', async () => {
  const runs = 200;
  let run = 0;
  const indexes = [{ fields: ['badge'], unique: true }, { fields: ['n'] }];
  const db = await scratch.open({ collections: { old: { indexes } } });
  await db.indexesBuilt();
  slowDown(db);
  await fc.assert(
    fc.asyncProperty(
      fc.oneof(fc.array(step, { minLength: 4, maxLength: 30 }), narrowSteps),
      fc.array(seedRow, { maxLength: 3 }),
      async (steps, seeds) => {
        await beginAnew(db, seeds);
        const { start, histories, end } = await play(db, `new${run++}`, steps);
        const order = serialOrder(start, histories, end);
        expect(
          order,
          JSON.stringify({ start: [...start], histories, end: [...end] }),
        ).toBeDefined();
      },
    ),
    { numRuns: runs },
  );
  expect(problemsOf(db.core)).toEqual([]);
  // A run in which nothing ever conflicts or commits would prove nothing.
  expect(tally.committed).toBeGreaterThan(runs);
  expect(tally.refused).toBeGreaterThan(runs / 10);
});

test('the search for an order knows a write skew when it sees one', () => {
  const read = (key: string, saw: string) => ({
    operation: { kind: 'read' as const, collection: 'c', key },
    saw,
  });
  const write = (key: string, value: number) => ({
    operation: { kind: 'upsert' as const, collection: 'c', key, n: value },
    saw: 'updated',
  });
  const start = new Map([
    ['c/a', { n: 1 }],
    ['c/b', { n: 1 }],
  ]);
  const skewed = [
    { name: 'T0', began: 1, ended: 9, observed: [read('a', '1'), write('b', 2)] },
    { name: 'T1', began: 2, ended: 8, observed: [read('b', '1'), write('a', 2)] },
  ];
  const end = new Map([
    ['c/a', { n: 2 }],
    ['c/b', { n: 2 }],
  ]);
  expect(serialOrder(start, skewed, end)).toBeUndefined();
  const late = [skewed[0]!, { ...skewed[1]!, observed: [read('b', '2'), write('a', 2)] }];
  expect(serialOrder(start, late, end)).toEqual(['T0', 'T1']);
  const before = [
    { ...skewed[0]!, began: 9, ended: 10 },
    { ...late[1]!, ended: 3 },
  ];
  expect(serialOrder(start, before, end)).toBeUndefined();
});
