import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  maxRunningJobs,
  newPipeline,
  stepPipeline,
  type Job,
  type PipelineEvent,
  type PipelineState,
} from './pipeline.js';

type Wanted = Partial<Pick<Job, 'depends_on' | 'run_if'>>;

/** A pipeline under test: what it is now and what it asked for, spawns left unanswered. */
class Bench {
  state: PipelineState;
  readonly spawns: string[] = [];
  readonly stops: string[] = [];
  readonly open = new Map<string, number>();

  constructor(jobs: Record<string, Wanted>) {
    const list = Object.entries(jobs).map(([id, job]) => ({ id, prompt: `Do ${id}`, ...job }));
    this.state = newPipeline({ name: 'test', start: true, jobs: list }, { id: 'P', now: 0 });
  }

  send(event: PipelineEvent): this {
    const { runs } = this.state;
    this.#step(event);
    // As the flow does: every job whose dependencies have ended is reached.
    for (const { id } of this.state.pipeline.jobs) {
      this.#step({ kind: 'begin', jobId: id });
      const run = this.state.runs[id];
      if (run === undefined || run === runs[id]) continue;
      this.spawns.push(id);
      this.open.set(id, run);
    }
    return this;
  }

  #step(event: PipelineEvent): void {
    const { state, stops } = stepPipeline(this.state, event, 1);
    this.state = state;
    this.stops.push(...stops);
  }

  /** Its session is there, named after job and run. */
  spawned(jobId: string): this {
    const run = this.open.get(jobId)!;
    this.open.delete(jobId);
    return this.send({ kind: 'spawned', jobId, run, sessionId: `${jobId}${run}` });
  }

  held(jobId: string): this {
    const run = this.open.get(jobId)!;
    this.open.delete(jobId);
    return this.send({ kind: 'held', jobId, run });
  }

  end(jobId: string, isDone = true): this {
    const sessionId = this.job(jobId).session_id!;
    return this.send({ kind: 'ended', jobId, sessionId, isDone, output: `${jobId} said` });
  }

  run(jobId: string, isDone = true): this {
    return this.spawned(jobId).end(jobId, isDone);
  }

  job(id: string): Job {
    return this.state.pipeline.jobs.find((job) => job.id === id)!;
  }

  get summary(): string {
    const { status, jobs } = this.state.pipeline;
    return `${status}: ${jobs.map((job) => `${job.id} ${job.status}`).join(', ')}`;
  }
}

describe('a pipeline', () => {
  test('does nothing before it is started', () => {
    const bench = new Bench({ a: {} });
    expect(bench.summary).toBe('pending: a pending');
    expect(bench.spawns).toEqual([]);
  });

  test('runs a job when all it depends on is done, and is done when every job is', () => {
    const bench = new Bench({ c: { depends_on: ['a', 'b'] }, a: {}, b: {} });
    bench.send({ kind: 'start' });
    expect(bench.spawns).toEqual(['a', 'b']);
    bench.run('a');
    expect(bench.summary).toBe('running: c pending, a done, b running');
    bench.run('b').run('c');
    expect(bench.summary).toBe('done: c done, a done, b done');
    expect(bench.job('a').output).toBe('a said');
  });

  test.each([
    ['success', true, 'done: a done, b done'],
    ['success', false, 'stalled: a failed, b skipped'],
    ['failure', true, 'done: a done, b skipped'],
    ['failure', false, 'stalled: a failed, b done'],
    ['always', true, 'done: a done, b done'],
    ['always', false, 'stalled: a failed, b done'],
  ] as const)('with run_if %s after a job that is done: %s', (run_if, isDone, summary) => {
    const bench = new Bench({ a: {}, b: { depends_on: ['a'], run_if } });
    bench.send({ kind: 'start' }).run('a', isDone);
    if (bench.open.has('b')) bench.run('b');
    expect(bench.summary).toBe(summary);
  });

  test('skips on at once what depends on a job that was skipped', () => {
    const bench = new Bench({
      last: { depends_on: ['next'] },
      next: { depends_on: ['a'] },
      a: {},
      slow: {},
    });
    bench.send({ kind: 'start' }).run('a', false);
    expect(bench.summary).toBe('running: last skipped, next skipped, a failed, slow running');
  });

  test('does not wait for the rest when one failure settles that a job cannot run', () => {
    const bench = new Bench({ a: {}, b: {}, c: { depends_on: ['a', 'b'] } });
    bench.send({ kind: 'start' }).spawned('b').run('a', false);
    expect(bench.job('c').status).toBe('skipped');
  });

  test('counts a skipped dependency as ended and not as failed', () => {
    const bench = new Bench({
      a: {},
      b: { depends_on: ['a'] },
      onFailure: { depends_on: ['b'], run_if: 'failure' },
      always: { depends_on: ['b'], run_if: 'always' },
    });
    bench.send({ kind: 'start' }).run('a', false);
    expect(bench.summary).toBe('running: a failed, b skipped, onFailure skipped, always running');
  });

  test(`has at most ${maxRunningJobs} jobs at work`, () => {
    const jobs = Object.fromEntries(Array.from({ length: 20 }, (_, n) => [`j${n}`, {}]));
    const bench = new Bench(jobs).send({ kind: 'start' });
    expect(bench.spawns.length).toBe(maxRunningJobs);
    bench.run('j3');
    expect(bench.spawns.length).toBe(maxRunningJobs + 1);
  });

  test('that could not start a job has it failed, with the reason', () => {
    const bench = new Bench({ a: {} }).send({ kind: 'start' });
    bench.send({ kind: 'refused', jobId: 'a', run: 1, reason: 'no such backend' });
    expect(bench.summary).toBe('stalled: a failed');
    expect(bench.job('a').output).toBe('no such backend');
  });
});

describe('a pipeline whose agent waits for a person', () => {
  test('needs attention, and runs on when the agent goes on', () => {
    const bench = new Bench({ a: {}, b: { depends_on: ['a'] } });
    bench.send({ kind: 'start' }).spawned('a');
    bench.send({ kind: 'waits', jobId: 'a', sessionId: 'a1' });
    expect(bench.summary).toBe('stalled: a needs_attention, b pending');
    bench.send({ kind: 'works', jobId: 'a', sessionId: 'a1' });
    expect(bench.summary).toBe('running: a running, b pending');
    bench.send({ kind: 'waits', jobId: 'a', sessionId: 'a1' }).end('a');
    expect(bench.summary).toBe('running: a done, b running');
  });

  test('is not stalled as long as another job runs', () => {
    const bench = new Bench({ a: {}, b: {} });
    bench.send({ kind: 'start' }).spawned('a').spawned('b');
    bench.send({ kind: 'waits', jobId: 'a', sessionId: 'a1' });
    expect(bench.summary).toBe('running: a needs_attention, b running');
  });

  test('hears nothing from a session that is no longer the job’s', () => {
    const bench = new Bench({ a: {} }).send({ kind: 'start' }).spawned('a');
    const before = bench.state;
    bench.send({ kind: 'waits', jobId: 'a', sessionId: 'other' });
    bench.send({ kind: 'ended', jobId: 'a', sessionId: 'other', isDone: true, output: '' });
    expect(bench.state).toBe(before);
  });
});

describe('a stalled pipeline that is started', () => {
  test('runs failed jobs again and gives what they had skipped another chance', () => {
    const bench = new Bench({
      a: {},
      b: { depends_on: ['a'] },
      c: { depends_on: ['b'] },
      clean: { depends_on: ['a'], run_if: 'always' },
    });
    bench.send({ kind: 'start' }).run('a', false).run('clean');
    expect(bench.summary).toBe('stalled: a failed, b skipped, c skipped, clean done');
    bench.send({ kind: 'start' });
    expect(bench.summary).toBe('running: a running, b pending, c pending, clean done');
    expect(bench.job('a')).toMatchObject({ session_id: null, output: null });
    bench.run('a').run('b').run('c');
    expect(bench.summary).toBe('done: a done, b done, c done, clean done');
    expect(bench.spawns).toEqual(['a', 'clean', 'a', 'b', 'c']);
  });

  test('stops the session that waited and starts another', () => {
    const bench = new Bench({ a: {} }).send({ kind: 'start' }).spawned('a');
    bench.send({ kind: 'waits', jobId: 'a', sessionId: 'a1' }).send({ kind: 'start' });
    expect(bench.stops).toEqual(['a1']);
    expect(bench.summary).toBe('running: a running');
    bench.spawned('a').send({
      kind: 'ended',
      jobId: 'a',
      sessionId: 'a1',
      isDone: true,
      output: 'the old one',
    });
    expect(bench.summary).toBe('running: a running');
    expect(bench.end('a').job('a').output).toBe('a said');
  });
});

describe('the budget gate', () => {
  test('pauses the pipeline, and what already runs goes on', () => {
    const bench = new Bench({ a: {}, b: {}, c: { depends_on: ['a'] } });
    bench.send({ kind: 'start' }).spawned('a').held('b');
    expect(bench.summary).toBe('paused: a running, b pending, c pending');
    bench.end('a');
    expect(bench.summary).toBe('paused: a done, b pending, c pending');
    expect(bench.spawns).toEqual(['a', 'b']);
    bench.send({ kind: 'start' });
    expect(bench.summary).toBe('running: a done, b running, c running');
    expect(bench.state.force).toBe(true);
    expect(bench.state.runs).toEqual({ a: 1, b: 2, c: 1 });
  });

  test('does not pause again what somebody let go on while it answered', () => {
    const bench = new Bench({ a: {}, b: {} });
    bench.send({ kind: 'start' }).held('a').send({ kind: 'start' }).held('b');
    expect(bench.summary).toBe('running: a running, b running');
    expect(bench.state.runs).toEqual({ a: 2, b: 2 });
  });
});

describe('a pipeline that is canceled', () => {
  test('stops what runs, also what was only being spawned, and skips what is pending', () => {
    const bench = new Bench({ a: {}, b: {}, c: { depends_on: ['a'] } });
    bench.send({ kind: 'start' }).spawned('a').send({ kind: 'cancel' });
    expect(bench.summary).toBe('canceled: a failed, b failed, c skipped');
    expect(bench.stops).toEqual(['a1']);
    bench.spawned('b');
    expect(bench.stops).toEqual(['a1', 'b1']);
    bench.end('a');
    expect(bench.job('a').output).toBe('a said');
    expect(bench.summary).toBe('canceled: a failed, b failed, c skipped');
  });

  test('stays as it is, and cannot be started', () => {
    const bench = new Bench({ a: {} }).send({ kind: 'cancel' });
    const before = bench.state;
    expect(bench.send({ kind: 'cancel' }).state).toBe(before);
    expect(() => bench.send({ kind: 'start' })).toThrow('PIPELINE_STATE');
  });
});

test('what is done can be neither started nor canceled', () => {
  const bench = new Bench({ a: {} }).send({ kind: 'start' }).run('a');
  expect(() => bench.send({ kind: 'start' })).toThrow('PIPELINE_STATE');
  expect(() => bench.send({ kind: 'cancel' })).toThrow('PIPELINE_STATE');
});

test('a running one is left as it is by another start', () => {
  const bench = new Bench({ a: {} }).send({ kind: 'start' });
  const before = bench.state;
  expect(bench.send({ kind: 'start' }).state).toBe(before);
});

/* Any order of jobs, any graph, any outcome. */

interface Plan {
  jobs: { id: string; depends_on: string[]; run_if: Job['run_if'] }[];
  /** Draws that say what happens next. */
  draws: number[];
}

const plans: fc.Arbitrary<Plan> = fc
  .integer({ min: 1, max: 24 })
  .chain((count) =>
    fc.record({
      edges: fc.array(fc.tuple(fc.nat(count - 1), fc.nat(count - 1)), { maxLength: 60 }),
      conditions: fc.array(fc.constantFrom('success', 'failure', 'always'), {
        minLength: count,
        maxLength: count,
      }),
      order: fc.shuffledSubarray(
        Array.from({ length: count }, (_, n) => n),
        { minLength: count },
      ),
      draws: fc.array(fc.nat(), { minLength: 10, maxLength: 400 }),
    }),
  )
  .map(({ edges, conditions, order, draws }) => ({
    jobs: order.map((n) => ({
      id: `j${n}`,
      run_if: conditions[n]! as Job['run_if'],
      // An edge goes from a lower to a higher number only, so there is no cycle.
      depends_on: [
        ...new Set(edges.flatMap(([from, to]) => (to === n && from < n ? [`j${from}`] : []))),
      ],
    })),
    draws,
  }));

/** Plays a plan to its end; restarts, holds and waits happen on the way as the draws have it. */
function play({ jobs, draws }: Plan): { bench: Bench; starts: string[] } {
  const bench = new Bench(Object.fromEntries(jobs.map(({ id, ...rest }) => [id, rest])));
  const starts: string[] = [];
  let at = 0;
  let left = 4_000;
  const draw = (below: number) => draws[at++ % draws.length]! % below;
  bench.send({ kind: 'start' });
  for (;;) {
    if (--left === 0) throw new Error(`it does not end: ${bench.summary}`);
    checkInvariants(bench, jobs);
    const spawning = [...bench.open.keys()];
    const working = bench.state.pipeline.jobs.filter(
      (job) => job.session_id !== null && ['running', 'needs_attention'].includes(job.status),
    );
    if (spawning.length + working.length === 0) {
      if (bench.state.pipeline.status !== 'paused') break;
      bench.send({ kind: 'start' });
      continue;
    }
    const pick = draw(spawning.length + working.length);
    if (pick < spawning.length) {
      const id = spawning[pick]!;
      if (draw(8) === 0 && !bench.state.force) {
        bench.held(id);
        continue;
      }
      if (draw(9) === 0) {
        const run = bench.open.get(id)!;
        bench.open.delete(id);
        starts.push(id);
        bench.send({ kind: 'refused', jobId: id, run, reason: 'it cannot be' });
        continue;
      }
      starts.push(id);
      bench.spawned(id);
      continue;
    }
    const job = working[pick - spawning.length]!;
    const sessionId = job.session_id!;
    // Bounds the number of steps of an agent that alternates between waiting and working.
    const act = left > 2_000 ? draw(6) : 3;
    if (act === 0) bench.send({ kind: 'waits', jobId: job.id, sessionId });
    else if (act === 1) bench.send({ kind: 'works', jobId: job.id, sessionId });
    else bench.end(job.id, act !== 2);
  }
  return { bench, starts };
}

function checkInvariants(bench: Bench, jobs: Plan['jobs']): void {
  const statusOf = new Map(bench.state.pipeline.jobs.map(({ id, status }) => [id, status]));
  for (const { id, depends_on, run_if } of jobs) {
    const status = statusOf.get(id)!;
    const before = depends_on.map((each) => statusOf.get(each)!);
    const hasEnded = before.every((each) => ['done', 'failed', 'skipped'].includes(each));
    const mayRun = {
      success: before.every((each) => each === 'done'),
      failure: hasEnded && before.includes('failed'),
      always: hasEnded,
    }[run_if];
    // Plain, for this is asked very often, and `expect` is slow.
    const fits = status === 'pending' || mayRun === (status !== 'skipped');
    if (!fits) throw new Error(`${id} is ${status}, after ${before.join(', ')} (${run_if})`);
  }
}

test('in any graph every job ends, in order, by its condition, and none runs twice', () => {
  fc.assert(
    fc.property(plans, (plan) => {
      const { bench, starts } = play(plan);
      const { status, jobs } = bench.state.pipeline;
      expect(jobs.every((job) => ['done', 'failed', 'skipped'].includes(job.status))).toBe(true);
      const hasFailed = jobs.some((job) => job.status === 'failed');
      expect(status).toBe(hasFailed ? 'stalled' : 'done');
      expect(new Set(starts).size).toBe(starts.length);
      const ran = jobs.filter((job) => job.status !== 'skipped').map(({ id }) => id);
      expect(new Set(starts)).toEqual(new Set(ran));
    }),
    { numRuns: 300 },
  );
});

test('in any graph a stalled pipeline that is started ends again and runs only what had to', () => {
  fc.assert(
    fc.property(plans, (plan) => {
      const { bench } = play(plan);
      if (bench.state.pipeline.status !== 'stalled') return;
      const done = new Set(
        bench.state.pipeline.jobs.filter((job) => job.status === 'done').map(({ id }) => id),
      );
      const before = bench.spawns.length;
      bench.send({ kind: 'start' });
      while (bench.open.size > 0) bench.run([...bench.open.keys()][0]!);
      expect(bench.state.pipeline.status).toBe('done');
      for (const id of bench.spawns.slice(before)) expect(done.has(id)).toBe(false);
    }),
    { numRuns: 200 },
  );
});
