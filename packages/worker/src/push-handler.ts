import type { ClientOptions, Fetch } from '@millrace/client';
import { failureOf, PermanentError, Suspended, type Failure } from './errors.js';
import { runHandler, type RunRequest, type AnyHandlers, type TaskHandlers } from './handlers.js';
import { fromWire } from './names.js';
import { importKeys, isSigned } from './signature.js';
import { Steps } from './steps.js';
import type { TaskInfo, Tasks, TaskTypes } from './tasks.js';
import { codeOf, httpTransport, type QueueTransport } from './transport.js';

export interface HandlerOptions {
  /**
   * The secret that the queue signs with (`whsec_...`), or several during a rotation. Null accepts
   * unsigned callbacks: only for a port that nobody else can reach.
   */
  secret: string | readonly string[] | null;
  /**
   * Address of the queue and a token with the role worker or submitter, for `progress`. Without a
   * URL, `progress` of a callback reports nothing.
   */
  url?: string;
  token?: ClientOptions['token'];
  /** Replaces the platform's own. */
  fetch?: Fetch;
}

/** A handler of callbacks for any runtime with `Request` and `Response`. */
export type FetchHandler = (request: Request) => Promise<Response>;

/** Handles the callbacks of a push queue: checks the signature and runs the handler of the task. */
export function createHandler<Types extends TaskTypes>(
  { secret, url, token, fetch }: HandlerOptions,
  tasks: Tasks<Types>,
  handlers: TaskHandlers<Types>,
): FetchHandler {
  const keys = secret === null ? undefined : importKeys([secret].flat());
  // Reported with the first request.
  keys?.catch(() => undefined);
  const transport =
    url === undefined ? undefined : httpTransport({ url, token, ...(fetch && { fetch }) });
  return async (request) => {
    if (request.method !== 'POST') return refusal(405, 'Use POST', { allow: 'POST' });
    const bytes = new Uint8Array(await request.arrayBuffer());
    if (keys && !(await isSigned(request.headers, bytes, await keys))) {
      return refusal(401, 'The signature is missing or wrong');
    }
    if (request.headers.get('x-queue-probe') === 'true') return new Response(null, { status: 204 });
    const task = infoOf(request.headers);
    if (!task) return refusal(400, 'This is not a callback of a queue');
    if (!Object.hasOwn(handlers, task.handlerRef)) {
      const message = `There is no handler for ${task.handlerRef}`;
      return refusal(404, message, errorHeaders('UNKNOWN_HANDLER', message));
    }
    return run(request, bytes, task, { tasks, handlers, transport });
  };
}

interface Handling {
  tasks: Tasks<TaskTypes>;
  handlers: AnyHandlers;
  transport: QueueTransport | undefined;
}

/** A callback holds its lease by itself, so a report need not extend it. */
const extendMs = 1_000;

async function run(
  request: Request,
  bytes: Uint8Array,
  task: TaskInfo,
  { tasks, handlers, transport }: Handling,
): Promise<Response> {
  const deadline = Date.parse(request.headers.get('x-queue-deadline') ?? '');
  const abort = new AbortController();
  const stop = () => abort.abort(new Error('The callback was cut off'));
  const timer = Number.isNaN(deadline) ? undefined : setTimeout(stop, deadline - Date.now());
  request.signal.addEventListener('abort', stop);
  const leaseToken = request.headers.get('x-queue-lease-token') ?? '';
  let steps: Steps | undefined;
  let suspend: (reason: unknown) => void = () => undefined;
  const stepsOf = () => {
    if (!transport) throw new PermanentError('Steps need the url of the queue in createHandler.');
    const headers = { 'x-queue-lease-token': leaseToken };
    return new Steps({
      transport,
      tasks,
      task,
      leaseToken,
      run: () => transport.call('getTaskRun', { path: { id: task.id }, headers }),
      signal: () => abort.signal,
      isAborted: () => abort.signal.aborted,
      onLost: (error) => abort.abort(error),
    });
  };
  try {
    const suspended = new Promise<never>((_, reject) => (suspend = reject));
    suspended.catch(() => undefined);
    const running = runHandler(tasks, handlers, {
      bytes,
      contentType: request.headers.get('content-type') ?? '',
      task,
      signal: abort.signal,
      progress: async (progress) => {
        if (!transport || leaseToken === '') return;
        try {
          await transport.extend(task.id, leaseToken, { extend_ms: extendMs, progress });
        } catch (error) {
          if (codeOf(error) === 'LEASE_LOST') abort.abort(error);
          throw error;
        }
      },
      dependencies: dependenciesIn(request.headers),
      get step() {
        if (!steps) {
          steps = stepsOf();
          steps.suspended.catch(suspend);
        }
        return steps;
      },
    });
    const result = await Promise.race([running, suspended]);
    await steps?.save();
    return result === undefined ? new Response(null, { status: 204 }) : Response.json(result);
  } catch (error) {
    if (error instanceof Suspended) {
      await steps?.save();
      return Response.json(error.suspend, { headers: { 'content-type': suspendType } });
    }
    return failure(failureOf(error));
  } finally {
    clearTimeout(timer);
    request.signal.removeEventListener('abort', stop);
  }
}

const suspendType = 'application/vnd.millrace.suspend+json';

function dependenciesIn(headers: Headers): RunRequest['dependencies'] {
  const text = headers.get('x-queue-dependencies');
  return text === null ? [] : (fromWire(JSON.parse(text)) as RunRequest['dependencies']);
}

function infoOf(headers: Headers): TaskInfo | undefined {
  const id = headers.get('x-queue-task-id');
  const queue = headers.get('x-queue-name');
  const handlerRef = headers.get('x-queue-handler-ref');
  if (!id || !queue || !handlerRef) return undefined;
  const number = (name: string) => Number(headers.get(name) ?? 0);
  return {
    id,
    queue,
    handlerRef,
    attempt: number('x-queue-attempt'),
    maxAttempts: number('x-queue-max-attempts'),
    redriveCount: number('x-queue-redrive-count'),
    headers: Object.fromEntries(headers),
  };
}

function failure({ errorType, message, stack, isPermanent, retryAfterMs }: Failure): Response {
  const headers = errorHeaders(errorType, message);
  if (isPermanent) return refusal(422, stack, { ...headers, 'x-queue-retry': 'never' });
  if (retryAfterMs === undefined) return refusal(500, stack, headers);
  return refusal(503, stack, { ...headers, 'retry-after': String(Math.ceil(retryAfterMs / 1000)) });
}

function errorHeaders(errorType: string, message: string): Record<string, string> {
  return {
    'x-queue-error-type': errorType,
    'x-queue-error-message': encodeURIComponent(message),
  };
}

/** The queue keeps the first 2 KiB of the text in the attempt. */
function refusal(status: number, text: string, headers: Record<string, string> = {}): Response {
  return new Response(text, {
    status,
    headers: { 'content-type': 'text/plain; charset=utf-8', ...headers },
  });
}
