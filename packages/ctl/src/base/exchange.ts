import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { Fetch } from '@millrace/client';
import { messageOf, systemCode } from '@millrace/kit/errors';

/** One request to a Millrace server. */
export interface HttpRequest {
  readonly method: string;
  readonly url: string;
  readonly token?: string | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** JSON body. */
  readonly body?: string | undefined;
  /** Aborted by Ctrl-C. */
  readonly signal: AbortSignal;
  /** Maximum time without data from the server. */
  readonly patienceMs?: number | undefined;
}

export interface Answered {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

const defaultPatienceMs = 30_000;
const maxAnswerBytes = 64 * 1_048_576;

/** Sends one request and reads the whole response, whatever its status. */
export async function exchange(params: HttpRequest): Promise<Answered> {
  const { method, url, signal, patienceMs = defaultPatienceMs } = params;
  const { request } = url.startsWith('https:')
    ? await import('node:https')
    : await import('node:http');
  const options = { method, headers: headersOf(params), signal, timeout: patienceMs };
  return new Promise((done, fail) => {
    const outgoing = request(url, options, (incoming) => {
      const { statusCode: status = 0, headers } = incoming;
      readAll(incoming).then((text) => done({ status, headers, text }), fail);
    });
    outgoing.on('timeout', () => {
      outgoing.destroy(new Error(`no response within ${patienceMs / 1000} seconds`));
    });
    outgoing.on('error', fail);
    outgoing.end(params.body);
  });
}

/**
 * `fetch` for the typed clients: it starts faster than Node's own and reports why a request failed.
 */
export function fetchOver({
  signal,
  patienceMs,
}: Pick<HttpRequest, 'signal' | 'patienceMs'>): Fetch {
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

function headersOf({ token, headers, body }: HttpRequest) {
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
    if (length > maxAnswerBytes) throw new Error('the response is too large');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

/** Escapes text of a server for a terminal: it must not move the cursor. */
export function harmless(text: string): string {
  return text.replaceAll(/\p{Cc}/gu, ' ');
}

/** A short reason why a server could not be reached. */
export function reasonOf(error: unknown): string {
  const code = systemCode(error);
  switch (code) {
    case 'ECONNREFUSED':
      return 'nothing listens there';
    case 'ENOTFOUND':
      return 'no such host';
    case 'ECONNRESET':
      return 'the connection broke';
    default: {
      const isUntrusted = /_CERT|^CERT_|^UNABLE_TO_/.test(code);
      const advice = isUntrusted ? '; name the authority to trust in NODE_EXTRA_CA_CERTS' : '';
      return messageOf(error) + advice;
    }
  }
}

/** Whether Ctrl-C aborted the request. */
export function isAbort(error: unknown): boolean {
  return error instanceof Error && error.name === 'AbortError';
}
