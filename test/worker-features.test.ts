import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { openQueue } from '@millrace/queue';
import { defineTasks, LeaseLost, TaskCancelled, type Queue } from '@millrace/worker';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';

const tasks = defineTasks<{ a: unknown; b: unknown }>();
type Types = NonNullable<(typeof tasks)['~types']>;

const soon = { timeout: 60_000, interval: 10 };
const directory = mkdtempSync(join(tmpdir(), 'mr-worker-'));
let queue: Queue<Types>;
let count = 0;

beforeAll(async () => {
  queue = await openQueue({ data: join(directory, 'data'), autoCreate: true }, tasks);
});
afterAll(async () => {
  await queue.close();
  rmSync(directory, { recursive: true, force: true });
});

/** The name of a queue of the test's own. */
async function fresh(retry: object = { initialBackoffMs: 10 }): Promise<string> {
  const name = `q-${++count}`;
  await queue.configure(name, { retry });
  return name;
}

type Options = Parameters<typeof queue.createWorker>[0];
type Handlers = Extract<Parameters<typeof queue.createWorker>[1], { a: unknown }>;

function work(options: Options, handlers: Partial<Handlers> | URL, errors: unknown[] = []) {
  const all = handlers instanceof URL ? handlers : { a: () => 1, b: () => 2, ...handlers };
  const worker = queue.createWorker({ onError: (e) => errors.push(e), ...options }, all as never);
  onTestFinished(() => worker.stop({ timeoutMs: 0 }));
  return worker;
}

test('worker: shares its slots between queues by their weights', async () => {
  const [heavy, light] = [await fresh(), await fresh()];
  const payloads = Array.from({ length: 60 }, (_, i) => ({ ref: 'a' as const, payload: i }));
  await queue.submitMany(payloads, { queue: heavy });
  await queue.submitMany(payloads, { queue: light });
  const seen: string[] = [];
  work(
    { queues: { [heavy]: 3, [light]: 1 }, concurrency: 1 },
    {
      a: ({ task }) => {
        seen.push(task.queue);
      },
    },
  );
  await expect.poll(() => seen.length, soon).toBe(120);
  const first = seen.slice(0, 60).filter((name) => name === heavy).length;
  expect(first).toBeGreaterThan(36);
  expect(first).toBeLessThan(54);
});

test('worker: pauses and resumes', async () => {
  const name = await fresh();
  const worker = work({ queue: name }, {});
  worker.pause();
  const { id } = await queue.submit(name, 'a', 1);
  expect(worker.isPaused).toBe(true);
  await expect(queue.submitAndWait(name, 'b', 1, { timeoutMs: 100 })).rejects.toThrow(
    'did not end',
  );
  expect((await queue.get(id)).status).toBe('PENDING');
  worker.resume();
  await expect.poll(async () => (await queue.get(id)).status, soon).toBe('SUCCEEDED');
});

test('worker: gives a batch handler several tasks, and takes a result or an error for each', async () => {
  const name = await fresh({ maxAttempts: 1 });
  const sizes: number[] = [];
  const handle = ({ tasks: batch }: { tasks: readonly { payload: unknown }[] }) => {
    sizes.push(batch.length);
    return batch.map(({ payload }) => (payload === 3 ? new RangeError('three') : payload));
  };
  work({ queue: name, batch: { size: 5, waitMs: 50 } }, { a: handle as never });
  const waits = Array.from({ length: 12 }, (_, i) =>
    queue.submitAndWait(name, 'a', i).then(
      ({ result }) => result,
      (error: unknown) => (error as { errorType: string }).errorType,
    ),
  );
  const expected = Array.from({ length: 12 }, (_, i) => (i === 3 ? 'RangeError' : i));
  expect(await Promise.all(waits)).toEqual(expected);
  expect(Math.max(...sizes)).toBeLessThanOrEqual(5);
  expect(sizes.length).toBeLessThan(12);
  expect(() => queue.createWorker({ queue: name, batch: { size: 0 } }, {} as never)).toThrow();
});

test('worker: a batch handler has no steps, and says so', async () => {
  const name = await fresh({ maxAttempts: 1 });
  const handle = async ({ tasks: batch }: { tasks: readonly { step: any }[] }) => {
    for (const { step } of batch) await step.sleep('a', 1);
  };
  work({ queue: name, batch: { size: 2, waitMs: 5 } }, { a: handle as never });
  await expect(queue.submitAndWait(name, 'a', 1)).rejects.toThrow('no steps');
});

test('worker: middleware surrounds every handler, the first one outermost', async () => {
  const name = await fresh();
  const seen: string[] = [];
  const worker = work({ queue: name }, { a: () => void seen.push('handler') });
  worker.use(async ({ task, payload }, next) => {
    seen.push(`1 ${task.handlerRef} ${String(payload)}`);
    await next();
    seen.push('1 after');
    return 'replaced';
  });
  worker.use(async (_, next) => {
    seen.push('2');
    return next();
  });
  const { result } = await queue.submitAndWait(name, 'a', 'x');
  expect([result, seen]).toEqual(['replaced', ['1 a x', '2', 'handler', '1 after']]);
});

test('worker: reports active, succeeded, failed and drained', async () => {
  const name = await fresh({ maxAttempts: 1 });
  const seen: unknown[] = [];
  const worker = work(
    { queue: name, concurrency: 1 },
    {
      b: () => {
        throw new Error('no');
      },
    },
  );
  worker.on('active', ({ handlerRef }) => seen.push(['active', handlerRef]));
  worker.on('succeeded', ({ handlerRef }, result) => seen.push(['succeeded', handlerRef, result]));
  worker.on('failed', ({ handlerRef }, error) => seen.push(['failed', handlerRef, String(error)]));
  const drained = new Promise<void>((resolve) => worker.on('drained', resolve));
  await queue.submitAndWait(name, 'a', 1);
  await expect(queue.submitAndWait(name, 'b', 1)).rejects.toThrow('no');
  expect(seen).toEqual([
    ['active', 'a'],
    ['succeeded', 'a', 1],
    ['active', 'b'],
    ['failed', 'b', 'Error: no'],
  ]);
  await drained;
});

test('worker: decides by `retry` what follows a failure', async () => {
  const name = await fresh({ maxAttempts: 5, initialBackoffMs: 10 });
  const attempts: number[] = [];
  const fail = ({ payload }: { payload: unknown }) => {
    throw new TypeError(String(payload));
  };
  const retry = (_error: unknown, attempt: number) => {
    attempts.push(attempt);
    return attempt === 2 ? 'dead' : 20;
  };
  work({ queue: name, retry }, { a: fail });
  await expect(queue.submitAndWait(name, 'a', 'x')).rejects.toMatchObject({
    errorType: 'TypeError',
  });
  expect(attempts).toEqual([1, 2]);
});

test('worker: a delay that no queue takes is the longest or none', async () => {
  const name = await fresh({ maxAttempts: 3, initialBackoffMs: 10 });
  const delays: Record<string, number> = { long: Infinity, past: -1, none: Number.NaN };
  const errors: unknown[] = [];
  const fail = ({ payload }: { payload: unknown }) => {
    throw new Error(String(payload));
  };
  work(
    { queue: name, retry: (error) => delays[(error as Error).message] as number },
    { a: fail },
    errors,
  );
  const { id } = await queue.submit(name, 'a', 'long');
  await expect.poll(async () => (await queue.get(id)).attempt, soon).toBe(1);
  await expect.poll(async () => (await queue.get(id)).status, soon).toBe('PENDING');
  for (const payload of ['past', 'none']) {
    await expect(queue.submitAndWait(name, 'a', payload)).rejects.toMatchObject({
      errorType: 'Error',
    });
  }
  expect(errors).toMatchObject(
    Array.from({ length: 3 }, () => ({ message: 'retry returned NaN' })),
  );
});

test('worker: a cancel reaches the handler at once, as a TaskCancelled', async () => {
  const name = await fresh();
  let reason: unknown;
  const worker = work(
    { queue: name },
    {
      a: async ({ signal }) => {
        await new Promise((resolve) => signal.addEventListener('abort', resolve));
        reason = signal.reason;
      },
    },
  );
  const { id } = await queue.submit(name, 'a', 1);
  await expect.poll(() => worker.running, soon).toBe(1);
  await queue.cancel(id);
  await expect.poll(() => reason, soon).toBeInstanceOf(TaskCancelled);
  expect(reason).not.toBeInstanceOf(LeaseLost);
  expect((await queue.get(id)).status).toBe('DEAD');
});

const hosts = [
  { kind: 'threads', crashed: 'ThreadCrashed' },
  { kind: 'processes', crashed: 'ProcessCrashed' },
] as const;

test.each(hosts)('worker: runs a file in $kind; a crash fails its task alone', async (host) => {
  const name = await fresh({ maxAttempts: 1 });
  const file = join(directory, 'handlers.mjs');
  writeFileSync(
    file,
    `import { threadId } from 'node:worker_threads';
    const { pid } = process;
    export default {
      a: async ({ payload, task, signal, progress }) => {
        if (payload === 'crash') process.exit(3);
        if (payload === 'kill') process.kill(pid, 'SIGKILL');
        if (payload === 'throw') throw new RangeError('thrown');
        const aborted = new Promise((resolve) => signal.addEventListener('abort', resolve));
        await progress({ percent: 50 });
        if (payload === 'abort') return aborted;
        return { threadId, pid, attempt: task.attempt };
      },
    };`,
  );
  const errors: unknown[] = [];
  const worker = work({ queue: name, [host.kind]: 2 }, pathToFileURL(file), errors);
  const { result, task } = await queue.submitAndWait(name, 'a', 'fine');
  const { threadId, pid, ...rest } = result as { threadId: number; pid: number };
  expect(rest).toEqual({ attempt: 1 });
  expect([threadId > 0, pid === process.pid]).toEqual(Array(2).fill(host.kind === 'threads'));
  expect(task.progress).toMatchObject({ percent: 50 });
  const thrown = queue.submitAndWait(name, 'a', 'throw');
  await expect(thrown).rejects.toMatchObject({ errorType: 'RangeError' });
  const crash = queue.submitAndWait(name, 'a', 'crash');
  await expect(crash).rejects.toMatchObject({ errorType: host.crashed });
  await expect(crash).rejects.toThrow('ended with exit code 3');
  if (host.kind === 'processes') {
    await expect(queue.submitAndWait(name, 'a', 'kill')).rejects.toThrow('ended by SIGKILL');
  }
  const { id } = await queue.submit(name, 'a', 'abort');
  await expect.poll(async () => (await queue.get(id)).progress?.percent, soon).toBe(50);
  await queue.cancel(id);
  await expect.poll(() => worker.running, soon).toBe(0);
  const more = await Promise.all(
    ['x', 'y', 'z'].map((each) => queue.submitAndWait(name, 'a', each)),
  );
  expect(more.map((each) => each.task.status)).toEqual(['SUCCEEDED', 'SUCCEEDED', 'SUCCEEDED']);
  expect(errors).toEqual([]);
});

test.each(hosts)('worker: handlers in $kind have steps; a wait frees the place', async (host) => {
  const name = await fresh({ maxAttempts: 2 });
  const file = join(directory, 'steps.mjs');
  writeFileSync(
    file,
    `let aborted;
    export default {
      a: async ({ payload, step }) => {
        if (payload !== 'flow') return payload;
        let runs = 0;
        const one = await step.run('one', ({ attempt }) => ({ attempt, runs: ++runs }));
        const first = await Promise.race([step.sleep('long', '1 hour'), step.run('fast', () => 'fast')]);
        const caught = await step.run('bad', () => { throw new TypeError('no'); }, { attempts: 1 }).catch((error) => [error.name, error.errorType]);
        const child = await step.submit('child', '${name}', 'a', 7);
        const answer = await step.signal('go');
        const plain = await step.run('plain', () => ({ at: new URL('http://a.b/'), save() {} }));
        const late = await step.run('late', ({ signal }) => new Promise((_, reject) => {
          signal.addEventListener('abort', () => { aborted = signal.reason.name; reject(signal.reason); });
        }), { timeoutMs: 20, attempts: 1 }).catch(() => aborted);
        return { one, first, caught, child, answer, plain, late };
      },
    };`,
  );
  const errors: unknown[] = [];
  work({ queue: name, [host.kind]: 1 }, pathToFileURL(file), errors);
  const { id } = await queue.submit(name, 'a', 'flow');
  await expect.poll(async () => (await queue.get(id)).waitingFor, soon).toBe('signal');
  await queue.signal(id, 'go', 'yes');
  expect((await queue.submitAndWait(name, 'a', 'flow', { id })).result).toEqual({
    one: { attempt: 1, runs: 1 },
    first: 'fast',
    caught: ['StepFailed', 'TypeError'],
    child: 7,
    answer: 'yes',
    plain: { at: 'http://a.b/' },
    late: 'TIMEOUT',
  });
  expect(errors).toEqual([]);
});

test('worker: ends an attempt that takes longer than `timeoutMs` of the definition', async () => {
  const slow = defineTasks({ a: { queue: 'slow', timeoutMs: 50 } });
  const own = await openQueue({ data: join(directory, 'slow') }, slow);
  onTestFinished(() => own.close());
  await own.configure('slow', { retry: { maxAttempts: 1 } });
  let reason: unknown;
  own.createWorker(
    { queue: 'slow' },
    {
      a: async ({ signal }) => {
        await new Promise((resolve) => signal.addEventListener('abort', resolve));
        reason = signal.reason;
      },
    },
  );
  await expect(own.submitAndWait('a', 1)).rejects.toMatchObject({ errorType: 'TIMEOUT' });
  expect(String(reason)).toContain('longer than 50 ms');
});

test('worker: refuses to start without handlers or without a queue', () => {
  expect(() => queue.createWorker({ queue: 'q' }, {} as never)).toThrow('needs handlers');
  const handlers = { a: () => 1, b: () => 1 };
  const refused = [
    [{}, 'needs either { queue } or { queues }'],
    [{ queue: 'q', queues: { q: 1 } }, 'needs either { queue } or { queues }'],
    [{ queue: 'q', concurency: 3 }, 'concurency is not an option of a worker; use queue'],
  ] as const;
  for (const [options, message] of refused) {
    expect(() => queue.createWorker(options as never, handlers)).toThrow(message);
  }
  const url = new URL('file:///handlers.js');
  const batch = { queue: 'q', batch: { size: 2 } };
  expect(() => queue.createWorker(batch, url as never)).toThrow('cannot run in threads');
  const both = { queue: 'q', threads: 2, processes: 2 };
  expect(() => queue.createWorker(both, url)).toThrow('either in threads or in processes');
  expect(() => queue.createWorker({ queue: 'q', processes: 0 }, url)).toThrow('at least 1');
  expect(() => queue.createWorker({ queue: 'q', threads: 2 }, handlers)).toThrow('need the URL');
});
