import type { ClientOptions, Fetch } from '@millrace/client';
import type { BatchHandlers, TaskHandlers } from './handlers.js';
import { nodeFetch } from './node-fetch.js';
import { Queue } from './queue.js';
import { SessionTransport } from './session.js';
import { startWorker } from './task-worker.js';
import type { Tasks, TaskTypes } from './tasks.js';
import { httpTransport, type QueueTransport } from './transport.js';
import type { Worker, WorkerOptions } from './worker.js';

export type ConnectOptions = Omit<ClientOptions, 'url'> & {
  /** Where the server is, such as http://127.0.0.1:8081. */
  url?: string;
  /** Several servers of one queue: the next one is used when one is away. */
  urls?: readonly string[];
  /** False: a request for each call, by REST. It is so anyway outside Node, and with a `fetch`. */
  stream?: boolean;
};

/** Uses the queues of a server. */
export function connectQueue<Types extends TaskTypes>(
  options: ConnectOptions,
  tasks: Tasks<Types>,
): Queue<Types> {
  return new Queue(connectTransport(options), tasks);
}

/** Starts a worker that claims tasks of pull queues on a server and runs their handlers. */
export function createWorker<Types extends TaskTypes>(
  options: ConnectOptions & WorkerOptions & { batch: object },
  tasks: Tasks<Types>,
  handlers: BatchHandlers<Types>,
): Worker;
export function createWorker<Types extends TaskTypes>(
  options: ConnectOptions & WorkerOptions,
  tasks: Tasks<Types>,
  handlers: TaskHandlers<Types> | URL,
): Worker;
export function createWorker<Types extends TaskTypes>(
  { url, urls, stream, token, fetch, ...options }: ConnectOptions & WorkerOptions,
  tasks: Tasks<Types>,
  handlers: TaskHandlers<Types> | BatchHandlers<Types> | URL,
): Worker {
  const transport = connectTransport({ url, urls, stream, token, fetch });
  return startWorker(transport, options, tasks, handlers, () => transport.close());
}

type Given = { [Name in keyof ConnectOptions]?: ConnectOptions[Name] | undefined };

/** The calls of a server's queues, over a session where that is possible. */
export function connectTransport(given: Given): QueueTransport {
  const { url, urls, stream = true, token, fetch } = (given as Given | undefined) ?? {};
  const [first, ...others] = urls ?? (url === undefined ? [] : [url]);
  if (typeof first !== 'string') throw new TypeError('Name the server: { url } or { urls }.');
  const own = fetch ?? nodeFetch();
  const rest = httpTransport({
    url: first,
    urls: [first, ...others],
    token,
    ...(own && { fetch: others.length > 0 ? failingOver(own, [first, ...others]) : own }),
  });
  const canStream = stream && fetch === undefined && nodeFetch() !== undefined;
  return canStream ? new SessionTransport({ urls: [first, ...others], token, rest }) : rest;
}

const unreachable = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'EAI_AGAIN',
]);

/** Uses the next server when one is away. What may have been done is not repeated, except a read. */
function failingOver(fetch: Fetch, given: readonly string[]): Fetch {
  const urls = given.map((url) => url.replace(/\/+$/, ''));
  let current = 0;
  return async (url, init) => {
    const path = url.slice(urls[0]!.length);
    for (let tries = 1; ; tries++) {
      const at = current;
      try {
        return await fetch(urls[at]! + path, init);
      } catch (error) {
        if (current === at) current = (at + 1) % urls.length;
        const isSafe =
          init.method === 'GET' || unreachable.has((error as { code?: string }).code ?? '');
        if (!isSafe || init.signal?.aborted || tries >= urls.length) throw error;
      }
    }
  };
}
