import type { IncomingHttpHeaders } from 'node:http';
import {
  queueOperations,
  type QueueOperations,
  type QueueOperationId,
} from '@millrace/contract/queue';
import { Refusal, type FieldError } from '@millrace/kit/errors';
import type { CtlCommand } from '../command.js';
import { exchange, harmless, isAbort, jsonOf, reasonOf } from '../http/exchange.js';
import type { Tools } from '../registry.js';
import { locateQueue, type QueueFlags, type QueuePlace } from './locate.js';

export type { QueueFlags } from './locate.js';

type SuccessBody<Responses> = {
  [Status in keyof Responses & (200 | 202 | 207)]: Responses[Status] extends {
    content: { 'application/json': infer Body };
  }
    ? Body
    : undefined;
}[keyof Responses & (200 | 202 | 207)];

/** The JSON of an operation's success. */
export type Success<Id extends QueueOperationId> = SuccessBody<QueueOperations[Id]['responses']>;

export interface Call {
  /** The queue in the path. */
  readonly queue?: string;
  /** The task in the path. */
  readonly id?: string;
  readonly query?: Readonly<Record<string, string | undefined>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: object;
  readonly patienceMs?: number;
}

export interface Answer<Body> {
  readonly body: Body;
  readonly headers: IncomingHttpHeaders;
}

/** A queue server that can be asked. */
export interface QueueApi {
  readonly url: string;
  /** Carries an operation out. Whatever is not a success is thrown as a Refusal. */
  call<Id extends QueueOperationId>(operation: Id, call?: Call): Promise<Answer<Success<Id>>>;
}

export function withQueue(command: CtlCommand): CtlCommand {
  return command
    .option('--url <url>', 'Talk to this server (default: $MILLRACE_QUEUE_URL, or 127.0.0.1:8081)')
    .option('--token-file <file>', 'File with the bearer token (default: $MILLRACE_QUEUE_TOKEN)');
}

type Here = Pick<Tools, 'terminal' | 'lifecycle'>;

export function queueApi(flags: QueueFlags, { terminal, lifecycle }: Here): QueueApi {
  const place = locateQueue(flags, terminal.env);
  const api: QueueApi = {
    url: place.url,
    async call(operation, call = {}) {
      const { status, headers, text } = await exchange({
        method: queueOperations[operation].method,
        url: `${place.url}${pathOf(operation, call)}`,
        token: place.token,
        headers: call.headers,
        body: call.body,
        signal: lifecycle.interrupted,
        patienceMs: call.patienceMs,
      }).catch((error: unknown) => {
        throw unreachable(place.url, error);
      });
      const body = jsonOf(text);
      if (status >= 200 && status < 300 && (body !== undefined || status === 204)) {
        // The server holds itself to the contract, and its tests hold it to that.
        return { body: body as never, headers };
      }
      throw await refusalOf(api, place, { status, headers, body, queue: call.queue });
    },
  };
  return api;
}

function pathOf(operation: QueueOperationId, { queue, id, query = {} }: Call): string {
  const given: Record<string, string | undefined> = { queue, id };
  const path = queueOperations[operation].path.replaceAll(/\{(\w+)\}/g, (_, name: string) =>
    encodeURIComponent(given[name]!),
  );
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined) search.set(name, value);
  }
  return search.size === 0 ? path : `${path}?${search.toString()}`;
}

interface Refused {
  status: number;
  headers: IncomingHttpHeaders;
  body: unknown;
  queue: string | undefined;
}

/** What the server said no to, in its own words. */
async function refusalOf(api: QueueApi, place: QueuePlace, refused: Refused): Promise<Refusal> {
  const { code, detail, errors } = (refused.body ?? {}) as {
    code?: unknown;
    detail?: unknown;
    errors?: FieldError[];
  };
  if (typeof code !== 'string' || typeof detail !== 'string') {
    return new Refusal(
      'UNAVAILABLE',
      `${place.url} answers (${refused.status}), but not as a Millrace queue does. ` +
        'Name another with --url.',
    );
  }
  const said = harmless(detail);
  if (code === 'UNAUTHENTICATED') return new Refusal(code, `${said} ${tokenAdvice(place)}`);
  const seconds = Number(refused.headers['retry-after']);
  const hint = code === 'QUEUE_NOT_FOUND' ? await nearestQueue(api, refused.queue) : '';
  return new Refusal(code, `${said}${hint}`, {
    ...(Array.isArray(errors) ? { errors } : {}),
    ...(seconds > 0 ? { retryAfterMs: seconds * 1000 } : {}),
  });
}

function tokenAdvice({ url, token }: QueuePlace): string {
  const lead = token === undefined ? `${url} asks for a token: set` : 'Set';
  return (
    `${lead} MILLRACE_QUEUE_TOKEN or name a file with --token-file; ` +
    '`ctl queue token new` makes one.'
  );
}

/** Only an admin may know what queues there are; for others there is no hint. */
async function nearestQueue(api: QueueApi, name: string | undefined): Promise<string> {
  if (name === undefined) return '';
  try {
    const [{ nearest }, { body: queues }] = await Promise.all([
      import('@millrace/kit/nearest'),
      api.call('listQueues'),
    ]);
    const names = queues.map((queue) => queue.name);
    const meant = nearest(name, names);
    return meant === undefined
      ? ` \`ctl queue config set ${name} FILE\` makes it.`
      : ` Did you mean ${meant}?`;
  } catch (error) {
    if (error instanceof Refusal) return '';
    throw error;
  }
}

function unreachable(url: string, error: unknown): Error {
  if (isAbort(error)) return error as Error;
  return new Refusal(
    'UNAVAILABLE',
    `no queue server answers at ${url} (${reasonOf(error)}). ` +
      'Start one with `ctl queue serve` or `ctl up`, or name another with --url.',
    { cause: error },
  );
}
