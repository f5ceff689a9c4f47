import { request as httpRequest } from 'node:http';
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startSample, token } from '../../test/http/sample-server.js';

let server: Awaited<ReturnType<typeof startSample>>;
beforeAll(async () => {
  server = await startSample();
});
afterAll(() => server.close());

const path = '/v1/queues/mail/tasks';
const asJson = { ...token, 'content-type': 'application/json' };

async function post(body: string | Uint8Array, headers: Record<string, string> = asJson) {
  const response = await fetch(server.url + path, { method: 'POST', headers, body });
  const json = (await response.json()) as { code?: string; detail: string };
  return { status: response.status, ...json };
}

/** Sends in pieces, without a Content-Length. */
function postChunks(chunks: (string | Buffer)[], extra: Record<string, string> = {}) {
  return new Promise<{ status: number; text: string }>((resolve, reject) => {
    const headers = { ...asJson, ...extra };
    const request = httpRequest(server.url + path, { method: 'POST', headers }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (part: string) => (text += part));
      response.on('end', () => resolve({ status: response.statusCode!, text }));
    });
    request.on('error', reject);
    for (const chunk of chunks) request.write(chunk);
    request.end();
  });
}

/** Writes raw bytes and returns all that comes back before the connection ends. */
function converse(...parts: string[]): Promise<string> {
  const { hostname, port } = new URL(server.url);
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname, () => {
      for (const part of parts) socket.write(part);
    });
    let text = '';
    socket.setEncoding('utf8').on('data', (part: string) => (text += part));
    socket.on('end', () => resolve(text)).on('error', reject);
  });
}

describe('size', () => {
  test('a body of exactly the limit is taken, one byte more is not', async () => {
    const fill = (bytes: number) => `{"handler_ref":"x"${' '.repeat(bytes - 19)}}`;
    expect(Buffer.byteLength(fill(2048))).toBe(2048);
    expect((await post(fill(2048))).status).toBe(202);
    expect(await post(fill(2049))).toMatchObject({ status: 413, code: 'PAYLOAD_TOO_LARGE' });
  });

  test('is counted in bytes as they stream in, without a Content-Length', async () => {
    expect((await postChunks(['{"handler_ref":', '"x"}'])).status).toBe(202);
    const long = await postChunks(Array.from({ length: 64 }, () => Buffer.alloc(1024, 32)));
    expect(long.status).toBe(413);
  });

  test('a client that sends everything first still reads its 413', async () => {
    const size = 8_000_000;
    const head =
      `POST ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer good\r\n` +
      `Content-Type: application/json\r\nConnection: close\r\nContent-Length: ${size}\r\n\r\n`;
    const { hostname, port } = new URL(server.url);
    const answer = await new Promise<string>((resolve, reject) => {
      const socket = connect(Number(port), hostname);
      let text = '';
      socket.on('error', reject);
      // Nothing is read before the last byte is out, as simple clients do.
      socket.write(head);
      socket.write(Buffer.alloc(size, 32), () => {
        socket.setEncoding('utf8').on('data', (part: string) => (text += part));
        socket.on('end', () => resolve(text));
      });
    });
    expect(answer).toMatch(/^HTTP\/1\.1 413 /);
  });

  test('a Content-Length over the limit is refused before a byte of the body is sent', async () => {
    const head = (length: number) =>
      `POST ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer good\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${length}\r\n\r\n`;
    const { hostname, port } = new URL(server.url);
    const first = await new Promise<string>((resolve, reject) => {
      const socket = connect(Number(port), hostname, () => socket.write(head(10_000_000_000)));
      socket.setEncoding('utf8').once('data', (part: string) => {
        resolve(part);
        socket.destroy();
      });
      socket.on('error', reject);
    });
    expect(first).toMatch(/^HTTP\/1\.1 413 /);
  });

  test('the connection is reused after an early response', async () => {
    const big = 'x'.repeat(5000);
    const head = 'Host: x\r\nAuthorization: Bearer good\r\n';
    const answers = await converse(
      `POST ${path} HTTP/1.1\r\n${head}Content-Length: ${big.length}\r\n\r\n${big}`,
      `GET /healthz HTTP/1.1\r\n${head}Connection: close\r\n\r\n`,
    );
    expect(answers.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 413', 'HTTP/1.1 200']);
  });

  test('a client that disconnects during its body leaves only a log line', async () => {
    const { hostname, port } = new URL(server.url);
    const socket = connect(Number(port), hostname, () => {
      socket.write(
        `POST ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer good\r\n` +
          'X-Request-Id: leaver\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{',
        () => setTimeout(() => socket.destroy(), 20),
      );
    });
    await expect
      .poll(() => server.app.lines.find(({ fields }) => fields['request_id'] === 'leaver')?.fields)
      .toMatchObject({ status: 499, operation: 'submitTask' });
    expect(server.app.lines.filter(({ level }) => level === 'error')).toEqual([]);
  });
});

describe('type', () => {
  test.each([
    ['application/json', 202],
    ['application/json; charset=utf-8', 202],
    ['APPLICATION/JSON;charset="UTF-8"', 202],
    ['application/json; charset=utf-16', 415],
    ['application/x-json', 415],
    ['text/plain', 415],
    ['garbage', 415],
  ])('%s is %i', async (type, status) => {
    expect((await post('{"handler_ref":"x"}', { ...token, 'content-type': type })).status).toBe(
      status,
    );
  });

  test('a body without a media type is rejected', async () => {
    const bytes = new TextEncoder().encode('{"handler_ref":"x"}');
    expect(await post(bytes, token)).toMatchObject({
      status: 415,
      code: 'UNSUPPORTED_MEDIA_TYPE',
      detail: 'The request has no Content-Type: send application/json.',
    });
  });

  test('a compressed body is rejected with the reason', async () => {
    const headers = { ...asJson, 'content-encoding': 'gzip' };
    expect(await post('{"handler_ref":"x"}', headers)).toMatchObject({ status: 415 });
  });

  test('an empty body is missing, not mistyped', async () => {
    expect(await post('', token)).toMatchObject({
      status: 422,
      code: 'INVALID_TASK',
      detail: 'A body is required: send application/json.',
    });
  });
});

describe('syntax', () => {
  test.each([
    ['{"handler_ref":', 'Unexpected end of JSON input'],
    ['{"a":1,}', 'Expected double-quoted property name'],
    ['nonsense', "Unexpected token 'o'"],
    ['{"handler_ref":"x"} x', 'Unexpected non-whitespace character'],
  ])('%s is rejected with the reason', async (body, reason) => {
    const answer = await post(body);
    expect(answer).toMatchObject({ status: 422, code: 'INVALID_TASK' });
    expect(answer.detail).toMatch(/^The body is not valid JSON: .*\.$/);
    expect(answer.detail).toContain(reason);
    expect(answer.detail).not.toContain('is not valid JSON.');
  });

  test('bytes that are not UTF-8 are refused', async () => {
    const bytes = Buffer.concat([Buffer.from('{"handler_ref":"'), Buffer.from([0xff, 0x22, 0x7d])]);
    expect((await post(bytes)).detail).toBe('The body is not valid JSON: the bytes are not UTF-8.');
  });

  test.each([
    '{"handler_ref":"x","__proto__":{"priority":1}}',
    '{"handler_ref":"x","headers":{"\\u005f_proto__":{}}}',
    '{"handler_ref":"x","constructor":{"prototype":{}}}',
  ])('%s does not reach a handler', async (body) => {
    expect(await post(body)).toMatchObject({ status: 422, code: 'INVALID_TASK' });
    expect(({} as Record<string, unknown>)['priority']).toBeUndefined();
  });

  test('a body nested too deep is refused before it is parsed', async () => {
    const nested = (depth: number) =>
      `{"handler_ref":"x","headers":{"a":${'['.repeat(depth)}${']'.repeat(depth)}}}`;
    expect((await post(nested(126))).detail).toBe('/headers/a must be a string, not a list.');
    expect((await post(nested(127))).detail).toBe(
      'The body is not valid JSON: it is nested more than 128 levels deep.',
    );
  });

  test('brackets in strings are not nesting', async () => {
    for (const text of ['['.repeat(200), '\\\\"'.repeat(50) + '['.repeat(200), '\\\\']) {
      const answer = await post(`{"payload":${JSON.stringify(text)}}`);
      expect(answer.detail).toBe('/handler_ref is required (and 1 more).');
    }
  });

  test('an invalid body does not affect the next one', async () => {
    expect((await post('{')).status).toBe(422);
    expect((await post('{"handler_ref":"x"}')).status).toBe(202);
  });
});
