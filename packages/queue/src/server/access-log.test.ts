import { memoryLog } from '@millrace/kit/log';
import { expect, test } from 'vitest';
import { accessLogOf, type AccessLog } from './app.js';

function linesOf(mode: AccessLog): string[] {
  const memory = memoryLog();
  const log = accessLogOf(memory, mode).child({ request_id: 'r' });
  for (const status of [200, 404, 422, 429, 401, 403, 499, 500, 503]) {
    log.info({ status }, 'request');
  }
  log.info({}, 'draining');
  log.error({}, 'internal error');
  return memory.lines.map(({ message, fields }) => `${message} ${fields['status'] ?? ''}`.trim());
}

test('all, only failures or no requests are logged, and everything else always', () => {
  const others = ['draining', 'internal error'];
  expect(linesOf('all')).toHaveLength(11);
  expect(linesOf('failures')).toEqual([
    ...[401, 403, 499, 500, 503].map((status) => `request ${status}`),
    ...others,
  ]);
  expect(linesOf('off')).toEqual(others);
});
