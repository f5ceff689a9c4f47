import { expect, test } from 'vitest';
import { maxResultBytes, resultOfAnswer } from './result.js';

const answer = (body: string | Uint8Array, type?: string, truncated = false) => ({
  ok: true as const,
  status: 200,
  headers: type === undefined ? {} : { 'content-type': type },
  body: typeof body === 'string' ? Buffer.from(body) : body,
  truncated,
  remoteIp: '192.0.2.7',
  durationMs: 1,
});

test('result: is the JSON body of an answer, without white space', () => {
  for (const type of [
    'application/json',
    'application/json; charset=utf-8',
    'application/a+json',
  ]) {
    expect(resultOfAnswer(answer('{ "a": [1] }', type))).toEqual({ result: '{"a":[1]}' });
  }
  expect(resultOfAnswer(answer('null'))).toEqual({ result: 'null' });
});

test('result: a body that is not JSON has none', () => {
  expect(resultOfAnswer(answer('{"a":1}', 'text/plain'))).toEqual({});
  expect(resultOfAnswer(answer('{"a":', 'application/json'))).toEqual({});
  expect(resultOfAnswer(answer('ok'))).toEqual({});
  expect(resultOfAnswer(answer('', 'application/json'))).toEqual({});
  expect(resultOfAnswer(answer(Buffer.of(0x22, 0xff, 0x22)))).toEqual({});
});

test('result: one that is too large is dropped', () => {
  const fits = JSON.stringify('x'.repeat(maxResultBytes - 2));
  expect(resultOfAnswer(answer(fits, 'application/json'))).toEqual({ result: fits });
  const cut = answer(`${fits} `.slice(0, maxResultBytes), 'application/json', true);
  expect(resultOfAnswer(cut)).toEqual({ resultDropped: true });
  // Numbers may become longer when they are written again.
  const longer = JSON.stringify(['x'.repeat(maxResultBytes - 10)]).replace(']', ',1e20]');
  expect(resultOfAnswer(answer(longer, 'application/json'))).toEqual({ resultDropped: true });
});
