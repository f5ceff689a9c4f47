import type { TestRequest } from './http-client.js';
import { afterAll, expect, test } from 'vitest';
import { makeQueue, startTestServer, tokens } from './server.js';

/** What is sent, and how it is refused. Without a token of its own it is sent as root. */
export type Case = [name: string, request: Partial<TestRequest>, status: number, code: string];

export const ulid = '01JD3Z8Q4M7X2N5V9RTBKWCH6E';
export const submit = { method: 'POST', path: '/v1/queues/mail/tasks' };
export const batch = { method: 'POST', path: '/v1/queues/mail/tasks:batch' };
export const redrive = { method: 'POST', path: '/v1/queues/mail/dlq:redrive' };
export const purge = { method: 'POST', path: '/v1/queues/mail/dlq:purge' };
export const put = { method: 'PUT', path: '/v1/admin/queues/mail/config' };

export const badBody = (name: string, body: unknown, code: string): Case => [
  name,
  { body },
  422,
  code,
];

/** A server to send bad requests to. */
export async function startRefusing() {
  const server = await startTestServer({ onEnd: afterAll });
  await makeQueue(server);
  await makeQueue(server, 'mail.small', { limits: { max_payload_bytes: 4 } });
  await makeQueue(server, 'other.queue');

  const refusesAll = (usual: Partial<TestRequest>, cases: readonly Case[]): void => {
    test.each(cases)('%s', async (_name, request, status, code) => {
      const answer = await server.send({ token: tokens.root, path: '/', ...usual, ...request });
      const answered = { status: answer.status, code: answer.body?.['code'] ?? answer.text };
      expect(answered).toEqual({ status, code });
      expect(answer.headers['content-type']).toBe('application/problem+json');
      expect(answer.body).toMatchObject({
        type: `urn:millrace:problem:${code.toLowerCase().replaceAll('_', '-')}`,
        status,
        instance: `urn:millrace:request:${answer.headers['x-request-id']}`,
      });
      expect(answer.body['detail']).not.toBe('');
      expect(server.differences).toEqual([]);
    });
  };

  /** Call it last: refused requests must not have changed anything. */
  const leavesNoTrace = (pending = 0): void => {
    test('nothing that was refused has left a trace', async () => {
      const stats = await server.as('root', { path: '/v1/queues/mail/stats' });
      expect(stats.body).toMatchObject({ pending, in_flight: 0, dlq_depth: 0 });
      const config = await server.as('root', { path: put.path });
      expect(config.body['version']).toBe(1);
      const { body } = await server.as('root', { path: '/v1/admin/audit' });
      const actions = (body['records'] as { action: string }[]).map(({ action }) => action);
      expect(actions).toEqual(['config_write', 'config_write', 'config_write']);
    });
  };
  return { server, refusesAll, leavesNoTrace };
}
