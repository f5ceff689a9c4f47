import { daemonCodes } from '@millrace/contract/daemon';
import type { DaemonOperations } from '@millrace/contract/daemon';
import { openApiDocument } from '@millrace/contract/documents';
import { queueCodes } from '@millrace/contract/queue';
import type { QueueOperations } from '@millrace/contract/queue';
import { parse } from 'yaml';
import { describe, expect, expectTypeOf, test } from 'vitest';
import { systemClock, systemRandom } from '../../src/base/clock-and-random.js';
import { Refusal } from '../../src/base/errors.js';
import type { CodeTable } from '../../src/base/errors.js';
import { bindOperations, operationsOf } from '../../src/http/index.js';
import { contractDifferences } from './contract-check.js';
import type { HandlerResponse, Call, Handlers, OpenApiDocument } from '../../src/http/index.js';
import { inject } from './inject.js';
import { listeningLog, token } from './sample-server.js';

/** Serves a whole contract with handlers that answer their own name. */
function serve(document: OpenApiDocument, codes: CodeTable, prefixes: string[], invalid?: string) {
  const handlers = Object.fromEntries(
    operationsOf(document).map(({ id }) => [
      id,
      (call: Call<never, string>) => ({
        status: 200,
        body: { id, params: call.params, query: call.query, headers: call.headers },
      }),
    ]),
  );
  return bindOperations<Record<string, never>, string>({
    world: { clock: systemClock, random: systemRandom, log: listeningLog() },
    document,
    codes,
    handlers: handlers as unknown as Handlers<Record<string, never>, string>,
    protectedPrefixes: prefixes,
    ...(invalid !== undefined && { invalidQueryCode: invalid }),
    bodyParsers: { 'application/yaml': (bytes) => parse(bytes.toString('utf8')) as unknown },
    anonymous: 'anonymous',
    authenticate: ({ headers }) => {
      if (headers.authorization !== token.authorization) {
        throw new Refusal('UNAUTHENTICATED', 'Send a bearer token.');
      }
      return 'ada';
    },
  });
}

describe('the queue contract', () => {
  const document = openApiDocument('queue');
  const app = serve(document, queueCodes, ['/v1'], 'INVALID_QUERY');
  const sendRequest = async (method: 'GET' | 'POST' | 'PUT', url: string, payload?: unknown) => {
    const answer = await inject(app, {
      method,
      url,
      headers: { ...token, ...(payload !== undefined && { 'content-type': 'application/json' }) },
      ...(payload !== undefined && { payload: JSON.stringify(payload) }),
    });
    return answer.json();
  };

  test('can be served as it stands', async () => {
    const roles = ['submitter', 'worker', 'operator', 'admin'];
    expect(await contractDifferences(document, app, { headers: token, roles })).toEqual([]);
  });

  test('tells verbs apart', async () => {
    expect(await sendRequest('POST', '/v1/admin/queues/mail:pause')).toMatchObject({
      id: 'pauseQueue',
    });
    expect(await sendRequest('POST', '/v1/admin/queues/mail:resume')).toMatchObject({
      id: 'resumeQueue',
    });
    expect(await sendRequest('POST', '/v1/queues/mail/tasks:batch', [])).toMatchObject({
      id: 'submitBatch',
    });
    expect(await sendRequest('GET', '/v1/queues/mail/dlq:groups')).toMatchObject({
      id: 'listDlqGroups',
    });
    expect(await sendRequest('GET', '/v1/queues/mail/dlq:group')).toMatchObject({
      code: 'NOT_FOUND',
    });
  });

  test('checks and explains', async () => {
    expect(
      await sendRequest('POST', '/v1/queues/mail/tasks', { handler_ref: 'a', prioritty: 3 }),
    ).toMatchObject({
      code: 'INVALID_TASK',
      errors: [
        { pointer: '/prioritty', message: 'is not a known field; did you mean "priority"?' },
      ],
    });
    expect(await sendRequest('GET', '/v1/queues/mail/dlq?limit=1000')).toMatchObject({
      query: { limit: 500 },
    });
    expect(await sendRequest('GET', '/v1/tasks/nonsense')).toMatchObject({
      code: 'TASK_NOT_FOUND',
    });
    expect(await sendRequest('PUT', '/v1/admin/queues/NO/config', {})).toMatchObject({
      code: 'INVALID_CONFIG',
    });
    expect(await sendRequest('POST', '/v1/queues/mail/dlq:purge', {})).toMatchObject({
      code: 'INVALID_SELECTOR',
    });
  });

  test('types its handlers', () => {
    type Submit = QueueOperations['submitTask'];
    expectTypeOf<Call<Submit, string>['params']>().toExtend<{ queue: string }>();
    expectTypeOf<Call<Submit, string>['body']['handler_ref']>().toEqualTypeOf<string>();
    expectTypeOf<HandlerResponse<Submit>['status']>().toEqualTypeOf<202>();
    expectTypeOf<HandlerResponse<QueueOperations['pauseQueue']>['status']>().toEqualTypeOf<204>();
  });
});

describe('the daemon contract', () => {
  const document = openApiDocument('daemon');
  const app = serve(document, daemonCodes, ['/api/v1', '/mcp']);

  test('can be served as it stands', async () => {
    expect(await contractDifferences(document, app, { headers: token })).toEqual([]);
  });

  test('hands the signed bytes of a callback over as they came', () => {
    type Body = Call<DaemonOperations['receiveQueueTask'], string>['body'];
    expectTypeOf<undefined>().toExtend<Body>();
    const callback = app.operations.find(({ path }) => path === '/api/v1/queue/callback');
    expect(callback).toMatchObject({ takesRawBody: true, extensions: { 'x-access': 'write' } });
  });
});
