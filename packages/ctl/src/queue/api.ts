import {
  ApiError,
  createQueueApi,
  type OperationResult,
  type QueueApi as Client,
} from '@millrace/client';
import type { QueueOperationId, QueueOperations } from '@millrace/contract/queue';
import { Refusal, type FieldError } from '@millrace/kit/errors';
import type { CtlCommand } from '../base/command.js';
import { fetchOver, harmless, isAbort, reasonOf } from '../base/exchange.js';
import type { Tools } from '../base/tools.js';
import { locateQueue, type QueueFlags, type QueuePlace } from './locate.js';

export type { QueueFlags } from './locate.js';

/** JSON of a successful response. */
export type Success<Id extends QueueOperationId> = OperationResult<QueueOperations[Id]>;

export interface Call {
  /** Queue in the path. */
  readonly queue?: string;
  /** Task in the path. */
  readonly id?: string;
  /** Schedule in the path. */
  readonly schedule?: string;
  readonly query?: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: object;
  readonly patienceMs?: number;
}

export interface Answer<Body> {
  readonly body: Body;
  /** A response header, by its lower-case name. */
  header(name: string): string | undefined;
}

/** Client of a queue server. */
export interface QueueApi {
  readonly url: string;
  /** Calls an operation. Throws a Refusal for every error response. */
  call<Id extends QueueOperationId>(operation: Id, call?: Call): Promise<Answer<Success<Id>>>;
}

export function withQueue(command: CtlCommand): CtlCommand {
  return withServer(command).option(
    '--data <dir>',
    'Data directory of the server on this machine (default: $MILLRACE_DATA)',
  );
}

/** Without `--data`, for a command that reads a data directory itself. */
export function withServer(command: CtlCommand): CtlCommand {
  return command
    .option(
      '--url <url>',
      'Address of the server (default: $MILLRACE_QUEUE_URL, or 127.0.0.1:8081)',
    )
    .option('--token-file <file>', 'File with the bearer token (default: $MILLRACE_QUEUE_TOKEN)');
}

type Here = Pick<Tools, 'terminal' | 'lifecycle'>;

export function queueApi(flags: QueueFlags, { terminal, lifecycle }: Here): QueueApi {
  const place = locateQueue(flags, terminal.env);
  const api: QueueApi = {
    url: place.url,
    async call(operation, { queue, id, schedule, patienceMs, ...request } = {}) {
      const fetch = fetchOver({ signal: lifecycle.interrupted, patienceMs });
      // Each operation uses those that its path names.
      const send = createQueueApi({ ...place, fetch }).send as SendAny;
      try {
        const { body, headers } = await send(operation, {
          ...request,
          path: { queue, id, schedule },
        });
        return { body: body as never, header: (name) => headers.get(name) ?? undefined };
      } catch (error) {
        throw error instanceof ApiError
          ? await refusalOf(api, place, error, queue)
          : unreachable(place.url, error);
      }
    },
  };
  return api;
}

type SendAny = (operation: QueueOperationId, request: object) => ReturnType<Client['send']>;

/** The server's error. */
async function refusalOf(
  api: QueueApi,
  place: QueuePlace,
  { code, detail, status, body, retryAfterMs = 0 }: ApiError,
  queue: string | undefined,
): Promise<Refusal> {
  if (code === '') {
    return new Refusal(
      'UNAVAILABLE',
      `the server at ${place.url} (${status}) is not a Millrace queue. Name another with --url.`,
    );
  }
  // The second half is for API users; the command has its own advice.
  const said = harmless(detail).replace(/; an admin can create it with PUT [^ ]+$/, '.');
  if (code === 'UNAUTHENTICATED') return new Refusal(code, `${said} ${tokenAdvice(place)}`);
  const { errors } = body as { errors?: FieldError[] };
  const hint = code === 'QUEUE_NOT_FOUND' ? await nearestQueue(api, queue) : '';
  return new Refusal(code, `${said}${hint}`, {
    ...(Array.isArray(errors) ? { errors } : {}),
    ...(retryAfterMs > 0 ? { retryAfterMs } : {}),
  });
}

function tokenAdvice({ url, token }: QueuePlace): string {
  const lead = token === undefined ? `${url} requires a token. Set` : 'Set';
  return (
    `${lead} MILLRACE_QUEUE_TOKEN or name a file with --token-file. Create a token with ` +
    '`ctl queue token new`.'
  );
}

/** Only an admin may list queues; others get no suggestion. */
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
      ? ` Create it with: ctl queue create ${name} --pull`
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
