import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { Fetch } from '@millrace/client';
import { messageOf, systemCode } from '@millrace/kit/errors';

/** One request to a server of ours. */
export interface Asked {
  readonly method: string;
  readonly url: string;
  readonly token?: string | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** JSON. */
  readonly body?: string | undefined;
  /** Of Ctrl-C. */
  readonly signal: AbortSignal;
  /** How long the server may be silent. */
  readonly patienceMs?: number | undefined;
}

export interface Answered {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

const usualPatienceMs = 30_000;
const longestAnswerBytes = 64 * 1_048_576;

/** Sends one request and reads the whole answer, whatever its status. */
export async function exchange(asked: Asked): Promise<Answered> {
  const { method, url, signal, patienceMs = usualPatienceMs } = asked;
  const { request } = url.startsWith('https:')
    ? await import('node:https')
    : await import('node:http');
  const options = { method, headers: headersOf(asked), signal, timeout: patienceMs };
  return new Promise((done, fail) => {
    const outgoing = request(url, options, (incoming) => {
      const { statusCode: status = 0, headers } = incoming;
      readAll(incoming).then((text) => done({ status, headers, text }), fail);
    });
    outgoing.on('timeout', () => {
      outgoing.destroy(new Error(`no answer within ${patienceMs / 1000} seconds`));
    });
    outgoing.on('error', fail);
    outgoing.end(asked.body);
  });
}

/** `fetch` for the typed clients: it starts faster than Node's own, and knows why it failed. */
export function fetchOver({ signal, patienceMs }: Pick<Asked, 'signal' | 'patienceMs'>): Fetch {
  return async (url, { method, headers, body }) => {
    const answered = await exchange({ method, url, headers, body, signal, patienceMs });
    return {
      status: answered.status,
      headers: { get: (name) => oneOf(answered.headers[name.toLowerCase()]) },
      text: () => Promise.resolve(answered.text),
    };
  };
}

function oneOf(header: string | string[] | undefined): string | null {
  return (Array.isArray(header) ? header[0] : header) ?? null;
}

function headersOf({ token, headers, body }: Asked) {
  return {
    accept: 'application/json',
    connection: 'close',
    ...headers,
    ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    ...(body === undefined
      ? {}
      : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }),
  };
}

async function readAll(incoming: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of incoming as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > longestAnswerBytes) throw new Error('the answer is too long');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

/** The JSON of an answer, or undefined when it is none. */
export function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

/** Text of a server on its way to a screen: it must not move the cursor. */
export function harmless(text: string): string {
  return text.replaceAll(/\p{Cc}/gu, ' ');
}

/** Why a server could not be reached, in a few words. */
export function reasonOf(error: unknown): string {
  switch (systemCode(error)) {
    case 'ECONNREFUSED':
      return 'nothing listens there';
    case 'ENOTFOUND':
      return 'no such host';
    case 'ECONNRESET':
      return 'the connection broke';
    default:
      return messageOf(error);
  }
}

/** Ctrl-C was pressed: nothing went wrong. */
export function isAbort(error: unknown): boolean {
  return error instanceof Error && error.name === 'AbortError';
}
