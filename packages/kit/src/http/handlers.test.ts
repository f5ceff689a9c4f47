import { describe, expect, expectTypeOf, test } from 'vitest';
import { sampleDocument } from '../../test/http/sample-document.js';
import type { operations } from '../../test/http/sample-operations.js';
import { inject } from '../../test/http/inject.js';
import { sampleApp, sampleHandlers, startSample, token } from '../../test/http/sample-server.js';
import type { SamplePrincipal } from '../../test/http/sample-server.js';
import { takenOver, type HandlerResponse, type Call, type Handlers } from './handlers.js';

type CallOf<Id extends keyof operations> = Call<operations[Id], SamplePrincipal>;
type Loose = Record<string, unknown>;
type AllHandlers = Handlers<operations, SamplePrincipal>;

// These hold when the file compiles; `npm run check` compiles it.
describe('the types', () => {
  test('give each handler the parameters and the body of its operation', () => {
    expectTypeOf<CallOf<'submitTask'>['params']>().toEqualTypeOf<{ queue: string }>();
    expectTypeOf<CallOf<'submitTask'>['body']['handler_ref']>().toEqualTypeOf<string>();
    expectTypeOf<CallOf<'submitTask'>['principal']>().toEqualTypeOf<SamplePrincipal>();
    expectTypeOf<CallOf<'listDlq'>['query']['limit']>().toEqualTypeOf<number | undefined>();
    expectTypeOf<CallOf<'listDlq'>['body']>().toEqualTypeOf<undefined>();
    expectTypeOf<CallOf<'completeTask'>['headers']>().toEqualTypeOf<{ 'X-Lease-Token': string }>();
    expectTypeOf<CallOf<'completeTask'>['body']>().toEqualTypeOf<{ note?: string } | undefined>();
    // @ts-expect-error The operation has no such parameter.
    expectTypeOf<CallOf<'submitTask'>['params']['id']>();
    // @ts-expect-error The operation has no query.
    expectTypeOf<CallOf<'submitTask'>['query']['limit']>();
  });

  test('check each response against the documented ones', () => {
    expectTypeOf({ status: 204 as const }).toExtend<HandlerResponse<operations['deleteQueue']>>();
    expectTypeOf({ status: 202 as const, body: { id: 'a', queue: 'b' } }).toExtend<
      HandlerResponse<operations['submitTask']>
    >();
    // A status that is not documented, a body that does not fit, an error as an answer.
    expectTypeOf({ status: 200 as const }).not.toExtend<
      HandlerResponse<operations['deleteQueue']>
    >();
    expectTypeOf({ status: 202 as const, body: { id: 1 } }).not.toExtend<
      HandlerResponse<operations['submitTask']>
    >();
    expectTypeOf({ status: 503 as const, body: { code: 'BUSY' } }).not.toExtend<
      HandlerResponse<operations['submitTask']>
    >();
    expectTypeOf<
      HandlerResponse<operations['watchEvents']>['contentType']
    >().toEqualTypeOf<'text/event-stream'>();
  });

  test('let a map compile only when it is complete and rightly named', () => {
    const { getHealth, ...others } = sampleHandlers();
    // @ts-expect-error getHealth is missing.
    const incomplete: AllHandlers = others;
    // @ts-expect-error getHealht is not an operation.
    const misnamed: AllHandlers = { ...others, getHealth, getHealht: getHealth };
    // @ts-expect-error The answer has the wrong status.
    const mistyped: AllHandlers = { ...others, getHealth: () => ({ status: 201, body: {} }) };
    expect([incomplete, misnamed, mistyped]).toHaveLength(3);
  });
});

describe('at start-up', () => {
  test('an operation without a handler is refused', () => {
    const { getHealth: _missing, ...handlers } = sampleHandlers();
    expect(() => sampleApp({ handlers: handlers as AllHandlers })).toThrow(
      'Operations without a handler: getHealth',
    );
  });

  test('a handler without an operation is refused', () => {
    const handlers = { ...sampleHandlers(), getHealht: () => ({ status: 200, body: {} }) };
    expect(() => sampleApp({ handlers })).toThrow('Handlers without an operation: getHealht');
  });

  test('a code that the table lacks is refused', () => {
    const { BUSY: _busy, ...codes } = sampleDocument['x-error-codes']!;
    expect(() => sampleApp({ codes })).toThrow('submitTask names the code BUSY');
    const { INTERNAL: _internal, ...others } = sampleDocument['x-error-codes']!;
    expect(() => sampleApp({ codes: others })).toThrow('INTERNAL');
    expect(() => sampleApp({ invalidQueryCode: 'NO_SUCH' })).toThrow('NO_SUCH');
  });

  test('a document that cannot be served is refused', () => {
    const submit = '/v1/queues/{queue}/tasks';
    const served = (edit: (path: Loose, post: Loose, paths: Record<string, Loose>) => void) => {
      const document = structuredClone(sampleDocument);
      const paths = document.paths as Record<string, Loose>;
      const { [submit]: path = {} } = paths;
      edit(path, path['post'] as Loose, paths);
      return () => sampleApp({ document });
    };
    expect(served((_path, post) => delete post['x-invalid-code'])).toThrow(
      'submitTask takes a body and needs an x-invalid-code',
    );
    expect(served((_path, post) => delete post['operationId'])).toThrow('has no operationId');
    expect(served((path, _post, paths) => (paths['/v1/queues/{other}/tasks'] = path))).toThrow(
      'operationId submitTask is used by POST',
    );
    expect(
      served((_path, post) => (post['requestBody'] = { content: { 'text/csv': {} } })),
    ).toThrow('submitTask takes text/csv, which has no body parser');
    expect(served((path) => (path['parameters'] = [{ $ref: 'other.yaml#/x' }]))).toThrow(
      'points outside the document',
    );
  });
});

describe('responses', () => {
  const appWith = (handlers: Partial<AllHandlers>) =>
    sampleApp({ handlers: { ...sampleHandlers(), ...handlers } });

  test('may be text, bytes or a stream of a documented type', async () => {
    async function* parts() {
      yield 'data: 1\n\n';
      await Promise.resolve();
      yield Buffer.from('data: 2\n\n');
    }
    for (const content of [
      'data: 1\n\ndata: 2\n\n',
      Buffer.from('data: 1\n\ndata: 2\n\n'),
      parts(),
    ]) {
      const app = appWith({
        watchEvents: () => ({ status: 200, contentType: 'text/event-stream', content }),
      });
      const answer = await inject(app, { url: '/v1/events', headers: token });
      expect(answer.headers['content-type']).toBe('text/event-stream');
      expect(answer.body).toBe('data: 1\n\ndata: 2\n\n');
    }
  });

  test('HEAD of a stream does not start it', async () => {
    let started = false;
    async function* parts() {
      started = true;
      yield await Promise.resolve('data: 1\n\n');
    }
    const app = appWith({
      watchEvents: () => ({ status: 200, contentType: 'text/event-stream', content: parts() }),
    });
    const answer = await inject(app, { method: 'HEAD', url: '/v1/events', headers: token });
    expect([answer.statusCode, answer.body, started]).toEqual([200, '', false]);
  });

  test('that cannot be serialized are bugs, and their headers are not sent', async () => {
    const circular: Record<string, unknown> = {};
    circular['self'] = circular;
    for (const answer of [
      { status: 200 as const, body: circular, headers: { etag: '"1"' } },
      { status: 200 as const, body: {}, headers: { etag: '"1"', 'x-bad': 'a\r\nb: c' } },
    ]) {
      const sent = await inject(appWith({ getHealth: () => answer }), { url: '/healthz' });
      expect(sent.json()).toMatchObject({ status: 500, code: 'INTERNAL' });
      expect(sent.headers).not.toHaveProperty('etag');
    }
  });

  test('may be written by other code', async () => {
    const app = appWith({
      getHealth: (call) => {
        call.takeOver().writeHead(200, { 'x-own': 'yes' }).end('own');
        return takenOver;
      },
    });
    const answer = await inject(app, { url: '/healthz' });
    expect(answer.body).toBe('own');
    expect(answer.headers).toMatchObject({
      'x-own': 'yes',
      'x-request-id': expect.any(String) as string,
    });
  });
});

describe('the signal of a call', () => {
  test('is aborted when the client disconnects, and only then', async () => {
    const signals: AbortSignal[] = [];
    const server = await startSample({
      handlers: {
        ...sampleHandlers(),
        getHealth: async ({ signal }) => {
          signals.push(signal);
          if (signals.length === 1) {
            await new Promise((resolve) => signal.addEventListener('abort', resolve));
          }
          return { status: 200, body: {} };
        },
      },
    });
    const leaving = new AbortController();
    const left = fetch(`${server.url}/healthz`, { signal: leaving.signal });
    await expect.poll(() => signals.length).toBe(1);
    leaving.abort();
    await expect(left).rejects.toThrow();
    await expect.poll(() => signals[0]?.aborted).toBe(true);
    await (await fetch(`${server.url}/healthz`)).text();
    expect(signals[1]?.aborted).toBe(false);
    expect(server.app.lines.filter(({ level }) => level === 'error')).toEqual([]);
    await server.close();
  });

  test('a failed stream is logged and its connection closed', async () => {
    async function* parts() {
      yield 'data: 1\n\n';
      await new Promise((resolve) => setTimeout(resolve, 20));
      throw new Error('source dried up');
    }
    const server = await startSample({
      handlers: {
        ...sampleHandlers(),
        watchEvents: () => ({ status: 200, contentType: 'text/event-stream', content: parts() }),
      },
    });
    const response = await fetch(`${server.url}/v1/events`, { headers: token });
    await expect(response.text()).rejects.toThrow();
    expect(server.app.lines.map(({ message }) => message)).toContain('response stream failed');
    await server.close();
  });
});
