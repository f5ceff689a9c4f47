import { Refusal } from '@millrace/kit/errors';
import { expect, test, vi } from 'vitest';
import { LiveData, type Readers } from './live-data.js';

/** Timers that run when the test says so. */
function setUp(readers: Partial<Readers> = {}) {
  const timers: (() => void)[] = [];
  const clock = {
    after: (_ms: number, run: () => void) => ({ cancel: run, at: timers.push(run) }),
  };
  const read = {
    sessions: vi.fn(async () => []),
    questions: vi.fn(async () => []),
    queues: vi.fn(async () => []),
    registry: vi.fn(async () => ({}) as never),
    spend: vi.fn(async () => ({}) as never),
    notes: vi.fn(async () => []),
    ...readers,
  };
  const live = new LiveData(read, clock as never);
  const settle = async (): Promise<void> => {
    await new Promise(setImmediate);
    for (const run of timers.splice(0)) run();
    await new Promise(setImmediate);
  };
  return { live, read, settle };
}

test('live data: an event reads again only what it changes', async () => {
  const { live, read, settle } = setUp();
  live.apply('note.changed');
  live.apply('metrics.sampled');
  await settle();
  expect(read.notes).toHaveBeenCalledTimes(1);
  expect(read.sessions).not.toHaveBeenCalled();
  live.apply('stream.reset');
  await settle();
  expect(read.sessions).toHaveBeenCalledTimes(1);
  expect(read.spend).toHaveBeenCalledTimes(1);
});

test('live data: a burst of events costs one more read', async () => {
  const { live, read, settle } = setUp();
  for (let event = 0; event < 100; event++) live.apply('session.changed');
  expect(read.sessions).toHaveBeenCalledTimes(1);
  await settle();
  await settle();
  expect(read.sessions).toHaveBeenCalledTimes(2);
});

test('live data: a failed read keeps what was read before and says why', async () => {
  const sessions = vi.fn(async () => ['one'] as never);
  const { live, settle } = setUp({ sessions });
  live.read('sessions');
  await settle();
  sessions.mockRejectedValueOnce(new Refusal('UNAVAILABLE', 'no daemon answers'));
  live.read('sessions');
  await settle();
  expect(live.snapshot()).toMatchObject({
    data: { sessions: ['one'] },
    errors: { sessions: 'no daemon answers' },
  });
  live.read('sessions');
  await settle();
  expect(live.snapshot().errors).toEqual({});
});
