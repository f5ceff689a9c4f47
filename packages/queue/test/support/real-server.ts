import { systemClock } from '@millrace/kit/clock';
import { memoryLog } from '@millrace/kit/log';
import { systemRandom } from '@millrace/kit/random';
import { expect, onTestFinished } from 'vitest';
import { serverDependencies } from '../../src/server/serve.js';
import { startServer } from '../../src/server/server.js';
import { httpClient, type TestRequest } from './http-client.js';
import { testSettings, tokens, type Who } from './server.js';

/** The whole server on its embedded store, in this process. */
export async function startReal(directory: string) {
  const differences: string[] = [];
  const log = memoryLog();
  const world = { clock: systemClock, random: systemRandom, log };
  const running = await startServer(testSettings(directory), world, {
    ...serverDependencies,
    onUndocumentedResponse: (difference) => differences.push(difference),
  });
  const send = httpClient(running.listeners[0]!.url);
  const stop = async () => {
    send.close();
    await running.stop();
  };
  onTestFinished(stop);
  const as = (who: Who, request: TestRequest) => send({ ...request, token: tokens[who] });
  return {
    as,
    stop,
    running,
    differences,
    log,
    metricsUrl: running.listeners[1]!.url,
    configure: async (body: unknown) => {
      const answer = await as('admin', {
        method: 'PUT',
        path: '/v1/admin/queues/mail/config',
        body,
      });
      expect(answer.status, answer.text).toBe(200);
    },
    submit: async (body: Record<string, unknown> = {}) => {
      const task = { handler_ref: 'mail.send', ...body };
      const path = '/v1/queues/mail/tasks';
      const answer = await as('submitter', { method: 'POST', path, body: task });
      expect(answer.status, answer.text).toBe(202);
      return String(answer.body['id']);
    },
    task: async (id: string) => (await as('submitter', { path: `/v1/tasks/${id}` })).body,
  };
}

export type Real = Awaited<ReturnType<typeof startReal>>;

export const statusOf = (server: Real, id: string) => async () => (await server.task(id))['status'];
export const soon = { timeout: 60_000, interval: 25 };
