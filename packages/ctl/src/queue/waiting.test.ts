import { Refusal } from '@millrace/kit/errors';
import { expect, test } from 'vitest';
import { rest } from '../base/rest.js';
import { patiently } from './waiting.js';

const never = new AbortController().signal;

function failing(times: number, error: () => unknown): () => Promise<number> {
  let calls = 0;
  return async () => {
    if (++calls <= times) throw error();
    return calls;
  };
}

test('what passes is tried again, when the server says so', async () => {
  const busy = () => new Refusal('RATE_LIMITED', 'busy', { retryAfterMs: 5 });
  expect(await patiently(failing(3, busy), never)).toBe(4);
  const broken = () =>
    new Refusal('UNAVAILABLE', 'broke', {
      cause: Object.assign(new Error('reset'), { code: 'ECONNRESET' }),
      retryAfterMs: 5,
    });
  expect(await patiently(failing(1, broken), never)).toBe(2);
});

test('but not forever', async () => {
  const busy = () => new Refusal('STORAGE_UNAVAILABLE', 'down', { retryAfterMs: 1 });
  await expect(patiently(failing(100, busy), never)).rejects.toThrow('down');
});

test('what does not pass is reported at once', async () => {
  const refused = failing(1, () => new Refusal('FORBIDDEN', 'no'));
  await expect(patiently(refused, never)).rejects.toThrow('no');
  const nobody = Object.assign(new Error('refused'), { code: 'ECONNREFUSED' });
  const absent = failing(1, () => new Refusal('UNAVAILABLE', 'nobody', { cause: nobody }));
  await expect(patiently(absent, never)).rejects.toThrow('nobody');
  await expect(
    patiently(
      failing(1, () => new TypeError('bug')),
      never,
    ),
  ).rejects.toThrow('bug');
});

test('Ctrl-C ends the waiting', async () => {
  const abort = new AbortController();
  const waiting = rest(60_000, abort.signal);
  abort.abort(new Error('stop'));
  await expect(waiting).rejects.toThrow('stop');
});
