import type { Readable, Writable } from 'node:stream';
import { daemonOperations } from '@millrace/contract/daemon';
import { Refusal } from '@millrace/kit/errors';
import type { Log } from '@millrace/kit/log';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { mcpServer } from './server.js';
import type { ToolRequest } from './tools.js';

/** One call of the daemon's REST API. */
export interface ApiRequest {
  method: string;
  /** With path parameters substituted: `/api/v1/backends/claude`. */
  path: string;
  /** To be sent as JSON. */
  body?: object;
}

export interface ApiAnswer {
  status: number;
  /** The parsed JSON: the result, or the problem document. */
  body: unknown;
}

export interface McpStdioOptions {
  /** Calls the daemon. Throw a Refusal or UsageError when it cannot be reached. */
  callApi: (request: ApiRequest) => Promise<ApiAnswer>;
  version: string;
  /** Must not write to stdout, which carries the protocol. */
  log: Log;
  /** Default: stdin and stdout of the process. */
  input?: Readable;
  output?: Writable;
  /** Stops the server. */
  signal?: AbortSignal;
}

/** Serves the tools over stdin and stdout until the client closes stdin. */
export async function runMcpStdio(options: McpStdioOptions): Promise<void> {
  const { callApi, version, log, signal } = options;
  const input = options.input ?? process.stdin;
  const transport = new StdioServerTransport(input, options.output ?? process.stdout);
  const underway = new Set<Promise<unknown>>();
  const server = mcpServer({
    version,
    log,
    call: async (request) => {
      const calling = callApi(apiRequestOf(request));
      underway.add(calling);
      try {
        return resultOf(await calling);
      } finally {
        underway.delete(calling);
      }
    },
  });
  const ended = new Promise<void>((resolve) => {
    // oxlint-disable-next-line unicorn/prefer-add-event-listener -- the SDK has no other way
    server.onclose = resolve;
    // The transport does not handle the end of its input.
    input.once('end', resolve);
    input.once('close', resolve);
    if (signal?.aborted) resolve();
    signal?.addEventListener('abort', () => resolve(), { once: true });
  });
  await server.connect(transport);
  await ended;
  // A client that sends requests and closes stdin still gets the responses.
  do await new Promise((resolve) => setImmediate(() => resolve(Promise.allSettled(underway))));
  while (underway.size > 0 && signal?.aborted !== true);
  await new Promise((resolve) => setImmediate(resolve));
  await server.close();
}

function apiRequestOf({ operation, params = {}, query = {}, body }: ToolRequest): ApiRequest {
  const { method, path } = daemonOperations[operation];
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) =>
    encodeURIComponent(params[name] ?? ''),
  );
  const search = new URLSearchParams(query).toString();
  return { method, path: search ? `${filled}?${search}` : filled, ...(body && { body }) };
}

function resultOf({ status, body }: ApiAnswer): object {
  if (typeof body !== 'object' || body === null) {
    throw new Refusal('INTERNAL', `The daemon answered ${status} without JSON.`);
  }
  if (status < 400) return body;
  const { code, detail } = body as { code?: unknown; detail?: unknown };
  throw new Refusal(
    typeof code === 'string' ? code : 'INTERNAL',
    typeof detail === 'string' ? detail : `The daemon answered ${status}.`,
  );
}
