import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ManualClock } from '../../test/manual-clock.test-support.js';
import { MemoryTables, rowsIn } from './memory-tables.test-support.js';
import type { PutRow } from './file/tables.js';
import { Writer, type WriterOptions } from './writer.js';

interface Counted {
  count: number;
}

const countRow = Buffer.from('count');
const key = (name: string) => Buffer.from(name);

function writerOn(tables: MemoryTables, options: Partial<WriterOptions<Counted>> = {}) {
  const flushed: { count: number; jobs: number }[] = [];
  const failures: unknown[] = [];
  const writer = new Writer<Counted>(tables.asStore(), {
    clock: new ManualClock(),
    load: () => ({ count: Number(tables.get('meta', countRow)?.toString() ?? 0) }),
    beforeFlush: ({ count }, _isCut, put) => {
      put('meta', countRow, Buffer.from(String(count)));
      return { epoch: 1, start: { firstSeq: 1, chain: { high: 0, low: 0 } } };
    },
    onVisible: () => undefined,
    afterFlush: ({ count }, jobs) => void flushed.push({ count, jobs }),
    failed: (reason) => void failures.push(reason),
    explain: (error) => new Error('explained', { cause: error }),
    maxJobs: 100,
    maxBytes: 1_000_000,
    sliceMs: 3,
    maxResolvedPerTurn: 64,
    relaxed: false,
    ...options,
  });
  const put = (name: string, value: string) => {
    writer.put('records', key(name), Buffer.from(value));
    writer.state = { count: writer.state.count + 1 };
  };
  return { writer, put, flushed, failures };
}

/** As many turns of the event loop as the writer needs for whatever it can do by itself. */
async function turns(): Promise<void> {
  for (let i = 0; i < 5; i++) await new Promise((resolve) => setImmediate(resolve));
}

const onDisk = (tables: MemoryTables, name: string) => tables.get('records', key(name))?.toString();

describe('the writer', () => {
  test('jobs that a job makes its caller submit at once share its flush', async () => {
    const tables = new MemoryTables();
    const { writer, put, flushed } = writerOn(tables);
    let second: Promise<void> | undefined;
    await writer.submit(() => {
      put('a', '1');
      writer.expectJobs();
      void Promise.resolve()
        .then(() => undefined)
        .then(() => (second = writer.submit(() => put('b', '2'))));
    });
    await second;
    expect(flushed).toEqual([{ count: 2, jobs: 2 }]);
    await writer.submit(() => {
      put('c', '3');
      writer.expectJobs();
    });
    await writer.drained();
    expect(flushed).toEqual([
      { count: 2, jobs: 2 },
      { count: 3, jobs: 1 },
    ]);
  });

  test('runs jobs in order; each sees what those before it wrote', async () => {
    const tables = new MemoryTables();
    const { writer, put } = writerOn(tables);
    const seen = await Promise.all(
      Array.from({ length: 20 }, (_, i) =>
        writer.submit(() => {
          const before = writer.get('records', key('k'))?.toString();
          put('k', String(i));
          return before;
        }),
      ),
    );
    expect(seen).toEqual([undefined, ...Array.from({ length: 19 }, (_, i) => String(i))]);
    expect(tables.commits).toBe(1);
    expect(onDisk(tables, 'k')).toBe('19');
  });

  test('startQueued: runs the jobs of this turn at once, as one batch', async () => {
    const tables = new MemoryTables();
    const { writer, put, flushed } = writerOn(tables);
    const ran: string[] = [];
    const jobs = ['a', 'b'].map((name) =>
      writer.submit(() => {
        ran.push(name);
        put(name, name);
      }),
    );
    expect(ran).toEqual([]);
    writer.startQueued();
    expect(ran).toEqual(['a', 'b']);
    writer.startQueued();
    await Promise.all(jobs);
    expect(flushed).toEqual([{ count: 2, jobs: 2 }]);
    await writer.submit(() => ran.push('c'));
    expect(ran).toEqual(['a', 'b', 'c']);
  });

  test('reports how long each job waited for its turn', async () => {
    const clock = new ManualClock();
    const { writer } = writerOn(new MemoryTables(), { clock });
    const waited: number[] = [];
    writer.onWaited = (delayMs) => waited.push(delayMs);
    const first = writer.submit(() => clock.advance(2));
    clock.advance(5);
    await Promise.all([first, writer.submit(() => undefined)]);
    expect(waited).toEqual([5, 2]);
  });

  test('resolves a job only when its batch is on disk', async () => {
    const tables = new MemoryTables();
    let release!: () => void;
    tables.onCommit = () => new Promise((resolve) => (release = resolve));
    const { writer, put } = writerOn(tables);
    let resolved = false;
    const job = writer.submit(() => put('k', 'v')).then(() => (resolved = true));
    await turns();
    expect(tables.commits).toBe(1);
    expect(resolved).toBe(false);
    expect(onDisk(tables, 'k')).toBeUndefined();
    release();
    await job;
    expect(onDisk(tables, 'k')).toBe('v');
  });

  test('fills the next batch while one is being flushed, and flushes one at a time', async () => {
    const tables = new MemoryTables();
    const releases: (() => void)[] = [];
    tables.onCommit = () => new Promise((resolve) => releases.push(resolve));
    const { writer, put } = writerOn(tables);
    const first = writer.submit(() => put('a', '1'));
    await turns();
    let ran = false;
    const second = writer.submit(() => {
      ran = true;
      expect(writer.get('records', key('a'))?.toString()).toBe('1');
      put('b', '2');
    });
    await turns();
    expect(ran).toBe(true);
    expect(releases).toHaveLength(1);
    releases[0]!();
    await first;
    await turns();
    releases[1]!();
    await second;
    expect(onDisk(tables, 'b')).toBe('2');
  });

  test('lets a job that throws leave no trace, neither rows nor state', async () => {
    const tables = new MemoryTables();
    const { writer, put } = writerOn(tables);
    const good = writer.submit(() => put('a', '1'));
    const bad = writer.submit(() => {
      put('a', 'spoiled');
      put('b', 'spoiled');
      writer.remove('records', key('a'));
      throw new Error('no');
    });
    const late = writer.submit(() =>
      Array.from(writer.range('records', {}), (row) => row.key.toString()),
    );
    await expect(bad).rejects.toThrow('no');
    await good;
    expect(await late).toEqual(['a']);
    expect(onDisk(tables, 'a')).toBe('1');
    expect(writer.state).toEqual({ count: 1 });
  });

  test('lets a job that throws speak only when what it saw is on disk', async () => {
    const tables = new MemoryTables();
    const releases: (() => void)[] = [];
    tables.onCommit = () => new Promise((resolve) => releases.push(resolve));
    const { writer, put } = writerOn(tables);
    const refuse = (): never => {
      throw new Error(`k is ${writer.get('records', key('k'))?.toString()}`);
    };
    const settled: string[] = [];
    const note = (job: Promise<unknown>, name: string) =>
      job.then(
        () => settled.push(name),
        (error: Error) => settled.push(`${name}: ${error.message}`),
      );
    const jobs = [
      note(
        writer.submit(() => put('k', '1')),
        'put',
      ),
    ];
    jobs.push(note(writer.submit(refuse), 'same batch'));
    await turns();
    jobs.push(note(writer.submit(refuse), 'next batch'));
    await turns();
    expect(settled).toEqual([]);
    releases[0]!();
    await Promise.all(jobs);
    expect(settled).toEqual(['put', 'same batch: k is 1', 'next batch: k is 1']);
    expect(tables.commits).toBe(1);
    await expect(writer.submit(refuse)).rejects.toThrow('k is 1');
    await writer.close(new Error('closed'));
  });

  test('commits nothing when every job of a batch threw', async () => {
    const tables = new MemoryTables();
    const { writer } = writerOn(tables);
    const bad = writer.submit(() => {
      writer.put('records', key('a'), Buffer.alloc(9));
      throw new Error('no');
    });
    await expect(bad).rejects.toThrow('no');
    await writer.drained();
    expect(tables.commits).toBe(0);
  });

  test('cuts batches by jobs and by bytes', async () => {
    const tables = new MemoryTables();
    const byJobs = writerOn(tables, { maxJobs: 10 });
    await Promise.all(
      Array.from({ length: 25 }, (_, i) => byJobs.writer.submit(() => byJobs.put(`k${i}`, 'v'))),
    );
    expect(byJobs.flushed.map(({ jobs }) => jobs)).toEqual([10, 10, 5]);
    const byBytes = writerOn(new MemoryTables(), { maxBytes: 1_000 });
    await Promise.all(
      Array.from({ length: 6 }, (_, i) =>
        byBytes.writer.submit(() => byBytes.put(`k${i}`, 'v'.repeat(500))),
      ),
    );
    expect(byBytes.flushed.map(({ jobs }) => jobs)).toEqual([2, 2, 2]);
  });

  test('gives the event loop back when a slice is over', async () => {
    const tables = new MemoryTables();
    const clock = new ManualClock();
    tables.onCommit = () => new Promise((resolve) => setTimeout(resolve, 5));
    const { writer, put } = writerOn(tables, { clock });
    let turns = 0;
    const count = () => {
      turns++;
      if (turns < 1_000) setImmediate(count);
    };
    setImmediate(count);
    const turnOf = await Promise.all(
      Array.from({ length: 9 }, (_, i) =>
        writer.submit(() => {
          clock.skip(2);
          put(`k${i}`, 'v');
          return turns;
        }),
      ),
    );
    turns = 1_000;
    expect(new Set(turnOf).size).toBeGreaterThanOrEqual(4);
  });
});

describe('a failed flush', () => {
  test('rejects its batch and runs the jobs after it again from what the file holds', async () => {
    const tables = new MemoryTables();
    const { writer, put, failures, flushed } = writerOn(tables);
    await writer.submit(() => put('k', 'first'));
    let fail!: (error: Error) => void;
    tables.onCommit = (commit) =>
      commit === 2 ? new Promise((_, reject) => (fail = reject)) : Promise.resolve();
    const lost = writer.submit(() => put('k', 'lost'));
    const lostToo = writer.submit(() => put('l', 'lost'));
    await turns();
    const seen: (string | undefined)[] = [];
    const next = writer.submit(() => {
      seen.push(writer.get('records', key('k'))?.toString());
      put('m', 'kept');
      return writer.state.count;
    });
    await turns();
    fail(new Error('disk'));
    await expect(lost).rejects.toThrow('explained');
    await expect(lostToo).rejects.toThrow('explained');
    expect(await next).toBe(2);
    expect(seen).toEqual(['lost', 'first']);
    expect([onDisk(tables, 'k'), onDisk(tables, 'l'), onDisk(tables, 'm')]).toEqual([
      'first',
      undefined,
      'kept',
    ]);
    expect(failures).toHaveLength(1);
    expect(flushed.map(({ count }) => count)).toEqual([1, 2]);
    expect(writer.get('records', key('l'))).toBeUndefined();
  });

  test('asks a job again that had thrown because of what is lost now', async () => {
    const tables = new MemoryTables();
    const { writer, put } = writerOn(tables);
    let fail!: (error: Error) => void;
    tables.onCommit = (commit) =>
      commit === 1 ? new Promise((_, reject) => (fail = reject)) : Promise.resolve();
    const take = (value: string) => () => {
      if (writer.get('records', key('k'))) throw new Error('k is taken');
      put('k', value);
    };
    const lost = writer.submit(take('lost'));
    const sameBatch = writer.submit(take('same batch'));
    await turns();
    const nextBatch = writer.submit(take('next batch'));
    await turns();
    fail(new Error('disk'));
    await expect(lost).rejects.toThrow('explained');
    await sameBatch;
    await expect(nextBatch).rejects.toThrow('k is taken');
    expect(onDisk(tables, 'k')).toBe('same batch');
  });

  test('that reached the disk after all leaves the writer with what is there', async () => {
    const tables = new MemoryTables();
    const { writer, put } = writerOn(tables);
    const commit = tables.commit.bind(tables);
    tables.commit = async (batch, onVisible) => {
      await commit(batch, onVisible);
      if (tables.commits === 1) throw new Error('fsync failed');
    };
    await expect(writer.submit(() => put('k', 'unsure'))).rejects.toThrow('explained');
    expect(writer.state).toEqual({ count: 1 });
    await writer.submit(() => put('l', 'sure'));
    expect(tables.get('meta', countRow)?.toString()).toBe('2');
  });

  test('does not keep close from ending', async () => {
    const tables = new MemoryTables();
    tables.onCommit = () => Promise.reject(new Error('disk'));
    const { writer, put } = writerOn(tables, { maxJobs: 1 });
    const jobs = Array.from({ length: 5 }, (_, i) => writer.submit(() => put(`k${i}`, 'v')));
    const closing = writer.close(new Error('closed'));
    const ended = await Promise.allSettled(jobs);
    expect(ended.map(({ status }) => status)).toEqual(Array(5).fill('rejected'));
    await closing;
  });
});

describe('derived rows', () => {
  const rows = (names: string[]) => (put: PutRow) => {
    for (const name of names) put('index', key(name), Buffer.from('v'));
  };

  test('are touched while they are written, by whoever asks when', async () => {
    const tables = new MemoryTables();
    let release!: () => void;
    tables.onCommit = () => new Promise((resolve) => (release = resolve));
    const { writer } = writerOn(tables);
    const written = writer.submitDerived(rows(['a', 'b']));
    await turns();
    expect(writer.takeTouched().size).toBe(0);
    release();
    await written;
    expect([...writer.takeTouched().rows()]).toHaveLength(2);
    const more = writer.submitDerived(rows(['c']));
    await turns();
    expect([...writer.takeTouched().rows()]).toEqual([{ table: 'index', key: key('c') }]);
    release();
    await more;
    expect([...writer.takeTouched().rows()]).toEqual([{ table: 'index', key: key('c') }]);
    expect(writer.touched?.size).toBe(0);
  });

  test('are made after the jobs before them, and do not move the state', async () => {
    const tables = new MemoryTables();
    const { writer, put, flushed } = writerOn(tables);
    const seen: (string | undefined)[] = [];
    const read = () => void seen.push(writer.get('records', key('k'))?.toString());
    const jobs = [
      writer.submit(() => put('k', '1')),
      writer.submitDerived(read),
      writer.submit(() => put('k', '2')),
    ];
    await Promise.all(jobs);
    expect(seen).toEqual(['1']);
    expect(flushed.map(({ count }) => count)).toEqual([1, 1, 2]);
  });

  test('that cannot be made refuse their job alone', async () => {
    const { writer, put } = writerOn(new MemoryTables());
    const bad = writer.submitDerived(() => {
      throw new Error('damaged');
    });
    const good = writer.submit(() => put('k', '1'));
    await expect(bad).rejects.toThrow('explained');
    await good;
    expect(writer.get('records', key('k'))?.toString()).toBe('1');
  });
});

test('relaxed durability resolves a job when readers can see it', async () => {
  const tables = new MemoryTables();
  let release!: () => void;
  tables.onFlush = () => new Promise((resolve) => (release = resolve));
  const { writer, put, flushed } = writerOn(tables, { relaxed: true });
  await writer.submit(() => put('k', 'v'));
  expect(onDisk(tables, 'k')).toBe('v');
  expect(flushed).toEqual([]);
  release();
  await writer.drained();
  expect(flushed).toEqual([{ count: 1, jobs: 1 }]);
});

describe('close', () => {
  test('lets queued jobs finish and refuses new ones', async () => {
    const tables = new MemoryTables();
    tables.onCommit = () => new Promise((resolve) => setTimeout(resolve, 2));
    const { writer, put } = writerOn(tables, { maxJobs: 3 });
    const jobs = Array.from({ length: 10 }, (_, i) => writer.submit(() => put(`k${i}`, 'v')));
    const closing = writer.close(new Error('closed'));
    await expect(writer.submit(() => put('late', 'v'))).rejects.toThrow('closed');
    await closing;
    expect(tables.commits).toBe(4);
    await Promise.all(jobs);
    expect(onDisk(tables, 'late')).toBeUndefined();
  });

  test('is at once over when there is nothing to do', async () => {
    const { writer } = writerOn(new MemoryTables());
    await writer.close(new Error('closed'));
  });
});

const names = fc.constantFrom('a', 'b', 'c', 'd', 'e');
const step = fc.oneof(
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('put' as const), name: names }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('remove' as const), name: names }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('get' as const), name: names }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('range' as const),
      start: fc.option(names, { nil: undefined }),
      end: fc.option(names, { nil: undefined }),
      reverse: fc.boolean(),
      limit: fc.option(fc.integer({ min: 0, max: 4 }), { nil: undefined }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('throw' as const) }) },
);
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

interface Store {
  get(name: string): string | undefined;
  range(range: Extract<Step, { kind: 'range' }>): string[];
  put(name: string, value: string): void;
  remove(name: string): void;
}

/** Does what a job's steps say and returns all that it saw. */
function perform(steps: readonly Step[], job: number, store: Store): string[] {
  const seen: string[] = [];
  for (const [at, each] of steps.entries()) {
    if (each.kind === 'put') store.put(each.name, `${job}.${at}`);
    else if (each.kind === 'remove') store.remove(each.name);
    else if (each.kind === 'get') seen.push(store.get(each.name) ?? 'none');
    else if (each.kind === 'range') seen.push(store.range(each).join(' '));
    else throw new Refused(seen);
  }
  return seen;
}

/** What a job that threw had seen until then. */
class Refused extends Error {
  constructor(readonly seen: string[]) {
    super('a job that throws');
  }
}

function rangeOf({ start, end, reverse, limit }: Extract<Step, { kind: 'range' }>) {
  return {
    ...(start && { start: key(start) }),
    ...(end && { end: key(end) }),
    ...(limit !== undefined && { limit }),
    reverse,
  };
}

test('whatever fails, the jobs that were answered ran one after the other on what the file holds', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.record({ steps: fc.array(step, { maxLength: 6 }), pause: fc.boolean() }), {
        maxLength: 40,
      }),
      fc.array(fc.boolean(), { minLength: 1, maxLength: 12 }),
      fc.integer({ min: 1, max: 6 }),
      async (jobs, outcomes, maxJobs) => {
        const tables = new MemoryTables();
        tables.onCommit = async (commit) => {
          await new Promise((resolve) => setImmediate(resolve));
          if (outcomes[commit % outcomes.length]) throw new Error('disk');
        };
        const { writer } = writerOn(tables, { maxJobs });
        const store: Store = {
          get: (name) => writer.get('records', key(name))?.toString(),
          range: (range) =>
            Array.from(writer.range('records', rangeOf(range)), (row) => `${row.key}=${row.value}`),
          put: (name, value) => writer.put('records', key(name), Buffer.from(value)),
          remove: (name) => writer.remove('records', key(name)),
        };
        const answered: { job: number; seen: string[]; count: number }[] = [];
        const running: Promise<unknown>[] = [];
        for (const [job, { steps, pause }] of jobs.entries()) {
          const submitted = writer.submit(() => {
            writer.state = { count: writer.state.count + 1 };
            return { seen: perform(steps, job, store), count: writer.state.count };
          });
          running.push(
            submitted.then(
              (result) => answered.push({ job, ...result }),
              (error: unknown) => {
                // The others were in a batch that did not reach the disk.
                if (error instanceof Refused) answered.push({ job, seen: error.seen, count: -1 });
              },
            ),
          );
          if (pause) await new Promise((resolve) => setImmediate(resolve));
        }
        await Promise.all(running);
        await writer.drained();

        const model = new Map<string, Buffer>();
        const naive: Store = {
          get: (name) => model.get(name)?.toString(),
          range: (range) => rowsIn(model, rangeOf(range)).map((row) => `${row.key}=${row.value}`),
          put: (name, value) => void model.set(name, Buffer.from(value)),
          remove: (name) => void model.delete(name),
        };
        let count = 0;
        for (const { job, ...answer } of answered) {
          const before = new Map(model);
          try {
            const seen = perform(jobs[job]!.steps, job, naive);
            expect({ job, ...answer }).toEqual({ job, seen, count: ++count });
          } catch (error) {
            if (!(error instanceof Refused)) throw error;
            expect({ job, ...answer }).toEqual({ job, seen: error.seen, count: -1 });
            model.clear();
            for (const [name, value] of before) model.set(name, value);
          }
        }
        const text = (rows: Iterable<{ key: Buffer; value: Buffer }>) =>
          Array.from(rows, (row) => `${row.key}=${row.value}`);
        expect(text(tables.range('records', {}))).toEqual(text(rowsIn(model, {})));
        expect(text(writer.range('records', {}))).toEqual(text(rowsIn(model, {})));
        expect(writer.state.count).toBe(count);
      },
    ),
    { numRuns: 150 },
  );
});
