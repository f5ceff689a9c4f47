import type { IncomingMessage, ServerResponse } from 'node:http';
import type { FetchHandler } from './push-handler.js';

export type NodeHandler = (request: IncomingMessage, response: ServerResponse) => void;

/** The largest payload of a queue. */
const maxBodyBytes = 8 * 2 ** 20;

/** A fetch handler for node:http, Express (before any body parser) and Fastify (`request.raw`). */
export function toNodeHandler(handler: FetchHandler): NodeHandler {
  return (request, response) => {
    const abort = new AbortController();
    response.on('close', () => abort.abort());
    respond(handler, request, response, abort.signal).catch((error: unknown) => {
      if (response.headersSent) return void response.destroy();
      response.writeHead(500, { 'content-type': 'text/plain' });
      response.end(error instanceof Error ? error.message : 'The handler failed');
    });
  };
}

async function respond(
  handler: FetchHandler,
  request: IncomingMessage,
  response: ServerResponse,
  signal: AbortSignal,
): Promise<void> {
  const body = await readBody(request);
  if (!body) {
    response.writeHead(413, { connection: 'close' });
    response.end();
    return;
  }
  const { method = 'GET' } = request;
  const hasBody = method !== 'GET' && method !== 'HEAD';
  const url = new URL(request.url ?? '/', 'http://localhost');
  const init = { method, headers: headersOf(request), signal };
  const answer = await handler(new Request(url, { ...init, ...(hasBody && { body }) }));
  response.writeHead(answer.status, Object.fromEntries(answer.headers));
  response.end(new Uint8Array(await answer.arrayBuffer()));
}

/** Undefined: it is too large. */
async function readBody(request: IncomingMessage): Promise<Uint8Array<ArrayBuffer> | undefined> {
  const { body } = request as { body?: unknown };
  // Left there by a body parser for raw bytes.
  if (body instanceof Uint8Array) return new Uint8Array(body);
  if (body !== undefined && request.readableEnded) {
    throw new Error('A body parser consumed the request: mount the handler before it');
  }
  const parts: Uint8Array[] = [];
  let length = 0;
  for await (const part of request) {
    const bytes = part as Uint8Array;
    length += bytes.length;
    if (length > maxBodyBytes) return undefined;
    parts.push(bytes);
  }
  const whole = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

function headersOf({ rawHeaders }: IncomingMessage): Headers {
  const headers = new Headers();
  for (let i = 0; i < rawHeaders.length; i += 2) headers.append(rawHeaders[i]!, rawHeaders[i + 1]!);
  return headers;
}
