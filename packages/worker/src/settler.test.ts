import { ApiError } from '@millrace/client';
import { expect, test } from 'vitest';
import { Settler } from './settler.js';
import { ErrorReporter, type QueueTransport } from './transport.js';

test('settle: the error of a cancelled task carries code and reason', async () => {
  const refused = { code: 'LEASE_LOST', status: 409, title: 'Lease lost', reason: 'CANCELLED' };
  const result = { index: 0, status: 409, error: { ...refused, detail: 'Stop the work.' } };
  const transport = { settle: async () => [result] } as unknown as QueueTransport;
  const errors: unknown[] = [];
  const settler = new Settler(transport, 'mail', (error) => errors.push(error));
  const item = { id: '01M7KQ1QMR8ZPGYBF8NGQZGP76', lease_token: 't', outcome: 'complete' } as const;
  await settler.settle(item, () => Infinity);
  expect(errors).toHaveLength(1);
  expect(errors[0]).toBeInstanceOf(Error);
  expect(errors[0]).toMatchObject({ message: 'Stop the work.', ...refused });
});

test('settle: an overloaded server is asked again without an error, unless it stays so', async () => {
  const refusal = { code: 'RATE_LIMITED', detail: 'too many bytes' };
  let refusals = 0;
  const settle = async () => {
    if (++refusals < 3) throw new ApiError(429, refusal, 1);
    return [];
  };
  const errors: unknown[] = [];
  const report = (error: unknown) => errors.push(error);
  const settler = new Settler({ settle } as unknown as QueueTransport, 'mail', report);
  const item = { id: '01M7KQ1QMR8ZPGYBF8NGQZGP76', lease_token: 't', outcome: 'complete' } as const;
  await settler.settle(item, () => Infinity);
  expect([refusals, errors]).toEqual([3, []]);
  const reporter = new ErrorReporter(report);
  const waits = Array.from({ length: 10 }, () => reporter.failed(new ApiError(429, refusal, 250)));
  expect(new Set(waits)).toEqual(new Set([250]));
  expect(errors).toMatchObject([{ code: 'RATE_LIMITED' }]);
  reporter.failed(new Error('no connection'));
  expect(errors).toHaveLength(2);
});
