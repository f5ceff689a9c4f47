import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openQueue } from '@millrace/queue';
import {
  connectQueue,
  defineTasks,
  PermanentError,
  StepFailed,
  type Queue,
  type Step,
} from '@millrace/worker';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import {
  endWithFile,
  newEmbeddedStore,
  startTestServer,
  tokens,
} from '../packages/queue/test/support/server.js';
import { createDelivery } from '../packages/queue/src/delivery/index.js';

const tasks = defineTasks<{ flow: unknown; child: unknown }>();
type Types = NonNullable<(typeof tasks)['~types']>;
type Handler = (call: {
  step: Step<Types>;
  payload: unknown;
  dependencies: readonly unknown[];
}) => unknown;

const directory = mkdtempSync(join(tmpdir(), 'mr-steps-'));
const onEnd = endWithFile();
onEnd(() => rmSync(directory, { recursive: true, force: true }));

/** The same tests in process and over REST. */
describe.each([
  [
    'in process',
    () =>
      openQueue({ data: join(directory, 'data'), autoCreate: true }, tasks) as Promise<
        Queue<Types>
      >,
  ],
  [
    'remote',
    async () => {
      const store = await newEmbeddedStore(onEnd);
      const { url } = await startTestServer({ onEnd, store, createDelivery });
      return connectQueue({ url, token: tokens.root }, tasks) as unknown as Queue<Types>;
    },
  ],
])('steps %s', (_name, open) => {
  let queue: Queue<Types>;
  let count = 0;
  beforeAll(async () => void (queue = await open()), 60_000);
  afterAll(() => queue.close());

  /** Runs a handler in a queue of its own, and gives what the task returned. */
  const start = async (flow: Handler, child: Handler = ({ payload }) => payload) => {
    const name = `q-${++count}`;
    await queue.configure(name, { retry: { initialBackoffMs: 10, maxAttempts: 3 } });
    const errors: unknown[] = [];
    const options = { queue: name, onError: (error: unknown) => void errors.push(error) };
    const worker = queue.createWorker(options, { flow, child } as never);
    let hasErrors = false;
    onTestFinished(async () => {
      await worker.stop({ timeoutMs: 0 });
      expect(errors.length > 0).toBe(hasErrors);
    });
    return {
      name,
      expectErrors: () => (hasErrors = true),
      run: async (payload: unknown = null) =>
        (await queue.submitAndWait(name, 'flow', payload, { timeoutMs: 40_000 })).result,
    };
  };

  test('run: a recorded step is not run again', async () => {
    const calls: string[] = [];
    const { run } = await start(async ({ step }) => {
      calls.push('handler');
      const one = await step.run('one', ({ attempt, idempotencyKey }) => {
        calls.push('one');
        return { attempt, isKey: idempotencyKey.endsWith(':one') };
      });
      await step.sleep('rest', '50 ms');
      const two = await step.run('two', () => calls.push('two'));
      return { one, two: typeof two };
    });
    expect(await run()).toEqual({ one: { attempt: 1, isKey: true }, two: 'number' });
    expect(calls).toEqual(['handler', 'one', 'handler', 'two']);
  });

  test('run: retries suspend the task, and the last failure can be caught', async () => {
    const attempts: number[] = [];
    const { run } = await start(async ({ step }) => {
      const flaky = await step.run(
        'flaky',
        ({ attempt }) => {
          attempts.push(attempt);
          if (attempt < 3) throw new Error('not yet');
          return 'done';
        },
        { attempts: 3, backoff: { kind: 'fixed', ms: 10 } },
      );
      const caught = await step
        .run('broken', () => Promise.reject(new PermanentError('never')))
        .catch(async (error: unknown) => {
          await step.sleep('then', 10);
          return step.run('undo', () => (error as Error).message);
        });
      return { flaky, caught };
    });
    expect(await run()).toEqual({ flaky: 'done', caught: 'never' });
    expect(attempts).toEqual([1, 2, 3]);
  });

  test('run: an uncaught failure ends the task; a name twice is an error at once', async () => {
    const { run } = await start(async ({ step }) => {
      await step.run('a', () => 1, { attempts: 1 });
      await step.run('a', () => 2);
    });
    await expect(run()).rejects.toThrow('used twice');
    const failing = await start(({ step }) =>
      step.run('a', () => Promise.reject(new Error('no')), { attempts: 1 }),
    );
    await expect(failing.run()).rejects.toThrow('no');
    expect(new StepFailed('a', 'b').errorType).toBe('b');
  });

  test('signal: waits for its payload, or gives up after the timeout', async () => {
    const { name, run } = await start(async ({ step }) => ({
      late: await step.signal('late', { timeout: 30 }),
      yes: await step.signal('yes', { timeout: '1 hour' }),
    }));
    const done = run();
    const listed = async () => (await queue.list({ queue: name }))[0];
    const waits = async () => (await queue.get((await listed())!.id)).waitingFor;
    await expect.poll(() => waits().catch(() => '')).toBe('signal');
    await queue.signal((await listed())!.id, 'yes', { by: 'ada' });
    expect(await done).toEqual({ yes: { by: 'ada' } });
  });

  test('submit: children in parallel, many at once, and one that fails', async () => {
    const { name, run } = await start(
      async ({ step }) => {
        const [a, b] = await Promise.all([
          step.submit('a', name, 'child', 1),
          step.submit('b', name, 'child', { n: 2 }),
        ]);
        const many = await step.submitMany('many', name, 'child', [1, 2, 3, 4, 5]);
        const bad = await step.submit('bad', name, 'child', 'bad').catch((e: Error) => e.name);
        return { a, b, many, bad };
      },
      ({ payload }) => {
        if (payload === 'bad') throw new PermanentError('bad');
        return payload;
      },
    );
    expect(await run()).toEqual({ a: 1, b: { n: 2 }, many: [1, 2, 3, 4, 5], bad: 'StepFailed' });
    const parent = (await queue.list({ queue: name, handlerRef: 'flow' }))[0]!;
    const { root } = await queue.tree(parent.id);
    expect(root.children).toHaveLength(8);
    expect(root.steps).toContain('many');
  });

  test('submitMany: beside another branch, a child that has ended does not run the handler again and again', async () => {
    let runs = 0;
    const { name, run } = await start(
      async ({ step }) => {
        runs++;
        const [many, one] = await Promise.all([
          step.submitMany('many', name, 'child', [0, 700, 1, 350]),
          step.submit('one', name, 'child', 1_000),
          step.sleep('rest', 500),
        ]);
        return { many, one };
      },
      async ({ payload }) => {
        await new Promise((resolve) => setTimeout(resolve, payload as number));
        return payload;
      },
    );
    expect(await run()).toEqual({ many: [0, 700, 1, 350], one: 1_000 });
    expect(runs).toBeLessThan(10);
  });

  test('submitMany: results that are too large for one record are recorded in parts', async () => {
    const seen: number[] = [];
    const { name, run } = await start(
      async ({ step }) => {
        const many = await step.submitMany(
          'many',
          name,
          'child',
          [60_000, 59_999, 1, 60_000, 60_000, 60_000, 7],
        );
        seen.push(many.length);
        await step.sleep('rest', 20);
        return many.map((each: string) => each.length);
      },
      ({ payload }) => 'é'.repeat((payload as number) / 2),
    );
    expect(await run()).toEqual([30_000, 29_999, 0, 30_000, 30_000, 30_000, 3]);
    expect(seen).toEqual([7, 7]);
  });

  test('values: now, random and id are the same in every run', async () => {
    const seen: unknown[] = [];
    const { run } = await start(async ({ step }) => {
      const values = [await step.now(), await step.random(), await step.id()];
      seen.push(values);
      await step.sleep('rest', 20);
      return values;
    });
    const result = await run();
    expect(seen).toEqual([result, result]);
  });

  test('submit: a child may be a task that this program does not define', async () => {
    const { name, run } = await start(({ step }) => step.submit('out', `${name}-out`, 'other', 7));
    await queue.configure(`${name}-out`);
    const other = queue.createWorker({ queue: `${name}-out` }, {
      other: ({ payload }: { payload: unknown }) => ({ got: payload }),
    } as never);
    onTestFinished(() => other.stop({ timeoutMs: 0 }));
    expect(await run()).toEqual({ got: 7 });
  });

  test('run: a result that is too large ends the task', async () => {
    const { run } = await start(({ step }) => step.run('large', () => 'x'.repeat(300_000)));
    await expect(run()).rejects.toThrow('at most 262144');
  });

  test('race: the first branch wins while others wait', async () => {
    const { run } = await start(({ step }) =>
      Promise.race([
        step.sleep('long', '1 hour').then(() => 'long'),
        step.sleep('short', 20).then(() => 'short'),
      ]),
    );
    expect(await run()).toBe('short');
  });

  test('race: who was first stays first in every run', async () => {
    const done: string[] = [];
    const { name, run } = await start(async ({ step }) => {
      const winner = await Promise.race([
        step.sleep('timeout', 30).then(() => 'timeout'),
        step.signal('ok').then(() => 'ok'),
      ]);
      await step.run(`did-${winner}`, () => done.push(winner));
      const recorded = await Promise.race([
        step.run('slow', () => slow.then(() => 'slow')),
        step.run('fast', () => 'fast').finally(() => end('now')),
      ]);
      await step.run(`did-${recorded}`, () => done.push(recorded));
      await step.signal('go');
      await step.sleep('rest', 10);
      return [winner, recorded];
    });
    let end: (value: string) => void = () => undefined;
    const slow = new Promise((resolve) => (end = resolve));
    const result = run();
    const names = async () => {
      const [task] = await queue.list({ queue: name });
      return task ? ((await queue.tree(task.id)).root.steps ?? []) : [];
    };
    await expect.poll(names, { timeout: 30_000 }).toContain('did-fast');
    const { id } = (await queue.list({ queue: name }))[0]!;
    // After the time is over: the branch of the signal lost, and stays the one that lost.
    await queue.signal(id, 'ok', 1);
    await queue.signal(id, 'go', 1);
    expect(await result).toEqual(['timeout', 'fast']);
    expect(done).toEqual(['timeout', 'fast']);
  });

  test('race: a signal stays before a time that has passed since', async () => {
    const done: string[] = [];
    const { name, run } = await start(async ({ step }) => {
      const winner = await Promise.race([
        step.sleep('timeout', 400).then(() => 'timeout'),
        step.signal('ok').then(() => 'ok'),
      ]);
      await step.run(`did-${winner}`, () => done.push(winner));
      await step.sleep('later', 800);
      return winner;
    });
    const result = run();
    const sent = queue
      .list({ queue: name })
      .then(async ([task]) => task && queue.signal(task.id, 'ok', 1));
    await expect.poll(async () => (await queue.list({ queue: name })).length).toBe(1);
    await sent;
    const winner = await result;
    expect(done).toEqual([winner]);
  });

  test('steps: none begins once the task is suspended; the next run begins it', async () => {
    const done: string[] = [];
    let goOn: (value: unknown) => void = () => undefined;
    const { name, run } = await start(async ({ step }) => {
      const elsewhere = new Promise((resolve) => (goOn = resolve));
      await Promise.all([
        step.signal('go'),
        (async () => {
          await step.run('x', () => done.push('x'));
          await elsewhere;
          await step.run('y', () => done.push('y'));
        })(),
      ]);
    });
    const result = run();
    const waitingFor = async () => {
      const [task] = await queue.list({ queue: name });
      return task && (await queue.get(task.id)).waitingFor;
    };
    await expect.poll(waitingFor, { timeout: 30_000 }).toBe('signal');
    goOn(undefined);
    const [task] = await queue.list({ queue: name });
    await queue.signal(task!.id, 'go', 1);
    await expect.poll(() => goOn(undefined) ?? done.length, { timeout: 30_000 }).toBe(2);
    await result;
    expect(done).toEqual(['x', 'y']);
  });

  test('run: what it throws is the same in every run', async () => {
    class Declined extends PermanentError {}
    const caught: unknown[] = [];
    const { run } = await start(async ({ step }) => {
      await step
        .run('charge', () => Promise.reject(new Declined('no money')))
        .catch((error: unknown) => {
          caught.push([error instanceof StepFailed, error instanceof Declined]);
        });
      await step.sleep('then', 10);
    });
    await run();
    expect(caught).toEqual([
      [true, false],
      [true, false],
    ]);
  });

  test('submit: with a unique key that is taken, the task that has it is the child', async () => {
    const { name, run } = await start(
      async ({ step }) => {
        const first = step.submit('first', name, 'child', 'one', { uniqueKey: 'k' });
        const second = step.submit('second', name, 'child', 'two', { uniqueKey: 'k' });
        return Promise.all([first, second]);
      },
      async ({ step, payload }) => {
        await step.signal('end');
        return payload;
      },
    );
    const result = run();
    const waiting = async () => queue.list({ queue: name, handlerRef: 'child' });
    await expect.poll(async () => (await waiting()).length, { timeout: 30_000 }).toBe(1);
    await queue.signal((await waiting())[0]!.id, 'end');
    expect(await result).toEqual(['one', 'one']);
  });

  test('redrive: from a step, it has all its tries again', async () => {
    const done: string[] = [];
    let isFine = false;
    const { name, run } = await start(async ({ step }) => {
      await step.run('a', () => done.push('a'));
      const options = { attempts: 2, backoff: { kind: 'fixed', ms: 5 } } as const;
      await step.run(
        'b',
        () => (done.push('b'), isFine || Promise.reject(new Error('no'))),
        options,
      );
    });
    await expect(run()).rejects.toThrow('no');
    const { id } = (await queue.list({ queue: name }))[0]!;
    await queue.dead.redrive({ queue: name, ids: [id], fromStep: 'b' });
    await expect.poll(() => done.length, { timeout: 30_000 }).toBe(5);
    expect(done).toEqual(['a', 'b', 'b', 'b', 'b']);
    isFine = true;
    await expect.poll(async () => (await queue.get(id)).status, { timeout: 30_000 }).toBe('DEAD');
    await queue.dead.redrive({ queue: name, ids: [id], fromStep: 'b' });
    await expect
      .poll(async () => (await queue.get(id)).status, { timeout: 30_000 })
      .toBe('SUCCEEDED');
  });

  test('sleep: a time without end and a name without text are refused, and fail the task', async () => {
    const long = await start(({ step }) => step.sleep('x', Number.MAX_SAFE_INTEGER));
    await expect(long.run()).rejects.toThrow('at most 36500 days');
    const nameless = await start(({ step }) => step.sleep('', 1));
    await expect(nameless.run()).rejects.toThrow('1 to 200 characters');
    const long200 = 'x'.repeat(199);
    const retried = await start(({ step }) =>
      step.run(long200, () => Promise.reject(new Error('no')), { attempts: 2 }),
    );
    retried.expectErrors();
    await expect(retried.run()).rejects.toThrow('200');
  });

  test('flow: tasks run after each other and see the results', async () => {
    const { name } = await start(({ payload, dependencies }) => ({
      payload,
      from: dependencies.map((each) => (each as { key: string }).key),
    }));
    const flow = queue
      .flow()
      .task('a', 'flow', 1, { queue: name })
      .task('b', 'flow', 2, { queue: name, after: ['a'] })
      .task('c', 'flow', 3, { queue: name })
      .after('a', { key: 'b', on: 'end' });
    const { flowId, ids } = await flow.submit();
    expect(Object.keys(ids)).toEqual(['a', 'b', 'c']);
    expect(await flow.wait({ timeoutMs: 40_000 })).toEqual({
      a: { payload: 1, from: [] },
      b: { payload: 2, from: ['a'] },
      c: { payload: 3, from: ['a', 'b'] },
    });
    expect(flowId).toHaveLength(26);
    const last = await queue.submit(name, 'child', 1, { dependsOn: [ids['a']!] });
    expect((await queue.get(last.id)).dependsOn).toMatchObject([{ id: ids['a'], on: 'success' }]);
  });
});
