import { request, type OutgoingHttpHeaders } from 'node:http';
import type { DaemonSchema } from '@millrace/contract/daemon';
import { openApiDocument } from '@millrace/contract/documents';
import { schemasOf, type OpenApiDocument } from '@millrace/kit/http';
import { expect } from 'vitest';

export interface Reply {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  text: string;
  json: any;
}

export interface ApiRequest {
  method?: string;
  path: string;
  headers?: OutgoingHttpHeaders;
  /** Sent as JSON, unless it is text. */
  body?: unknown;
}

const schemas = schemasOf(openApiDocument('daemon') as unknown as OpenApiDocument);

/** Holds a value against a schema of the contract. */
export function expectSchema(name: string, value: unknown): void {
  const check = schemas.named(name);
  expect(check.accepts(value) ? [] : check.faults(value)).toEqual([]);
}

/** A plain client that sends any header, also those that fetch keeps to itself. */
export class ApiClient {
  constructor(
    readonly url: string,
    readonly headers: OutgoingHttpHeaders = {},
  ) {}

  withHeaders(headers: OutgoingHttpHeaders): ApiClient {
    return new ApiClient(this.url, { ...this.headers, ...headers });
  }

  send({ method = 'GET', path, headers, body }: ApiRequest): Promise<Reply> {
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    const { hostname, port } = new URL(this.url);
    const all = {
      ...(typeof body === 'object' && { 'content-type': 'application/json' }),
      ...(text !== undefined && { 'content-length': Buffer.byteLength(text) }),
      ...this.headers,
      ...headers,
    };
    return new Promise((resolve, reject) => {
      const outgoing = request({ host: hostname, port, method, path, headers: all }, (answer) => {
        const chunks: Buffer[] = [];
        answer.on('data', (chunk: Buffer) => chunks.push(chunk));
        answer.on('error', reject);
        // A stream of events has no end: its beginning is the answer.
        const isEndless = /event-stream/.test(answer.headers['content-type'] ?? '');
        if (isEndless && method === 'GET') {
          answer.once('data', (chunk: Buffer) => {
            const { statusCode: status = 0, headers } = answer;
            resolve({ status, headers, text: chunk.toString(), json: undefined });
            outgoing.destroy();
          });
        }
        answer.on('end', () => {
          const received = Buffer.concat(chunks).toString();
          const isJson = /\bjson\b/.test(answer.headers['content-type'] ?? '');
          resolve({
            status: answer.statusCode!,
            headers: answer.headers,
            text: received,
            json: isJson && received !== '' ? JSON.parse(received) : undefined,
          });
        });
      });
      outgoing.on('error', reject);
      outgoing.end(text);
    });
  }

  /** The body of an answer that must be 200. */
  async ok(method: string, path: string, body?: unknown): Promise<any> {
    const reply = await this.send({ method, path, ...(body !== undefined && { body }) });
    expect([reply.status, reply.text]).toEqual([200, reply.text]);
    return reply.json;
  }

  /** The problem of an answer that must be this one. */
  async refused(
    request: ApiRequest,
    status: number,
    code: string,
  ): Promise<DaemonSchema<'Problem'>> {
    const reply = await this.send(request);
    expect([reply.status, reply.json?.code, reply.text]).toEqual([status, code, reply.text]);
    expectProblem(reply);
    return reply.json;
  }

  /**
   * Sends wrong tokens until they are no longer looked at; says how many were, and returns the
   * refusal. Another guess may be looked at again: one is allowed every six seconds.
   */
  async guessTokens(
    request: ApiRequest = { path: '/api/v1/backends' },
  ): Promise<{ guesses: number; reply: Reply }> {
    for (let guesses = 0; guesses < 100; guesses++) {
      const headers = { ...request.headers, authorization: `Bearer guess-${guesses}` };
      const reply = await this.send({ ...request, headers });
      if (reply.status === 429) return { guesses, reply };
      expect(reply.status).toBe(401);
    }
    throw new Error('Nobody stopped the guessing');
  }

  registry(): Promise<DaemonSchema<'Registry'>> {
    return this.ok('GET', '/api/v1/backends');
  }

  async row(id: string): Promise<DaemonSchema<'BackendRow'>> {
    const { backends } = await this.registry();
    return backends.find((each) => each.id === id)!;
  }
}

export function expectProblem({ status, headers, json }: Reply): void {
  expect(headers['content-type']).toBe('application/problem+json');
  expectSchema('Problem', json);
  expect(json).toMatchObject({ status, error: json.detail });
  expect(json).not.toHaveProperty('instance');
}
