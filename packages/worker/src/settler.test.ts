import { expect, test } from 'vitest';
import { Settler } from './settler.js';
import type { QueueTransport } from './transport.js';

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
