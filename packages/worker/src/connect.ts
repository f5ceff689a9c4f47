import type { ClientOptions } from '@millrace/client';
import type { BatchHandlers, TaskHandlers } from './handlers.js';
import { Queue } from './queue.js';
import { startWorker } from './task-worker.js';
import type { Tasks, TaskTypes } from './tasks.js';
import { httpTransport, type QueueTransport } from './transport.js';
import type { Worker, WorkerOptions } from './worker.js';

export type ConnectOptions = Omit<ClientOptions, 'url'> & {
  /** Where the server is, such as http://127.0.0.1:8081. */
  url?: string;
};

/** Uses the queues of a server. */
export function connectQueue<Types extends TaskTypes>(
  options: ConnectOptions,
  tasks: Tasks<Types>,
): Queue<Types> {
  return new Queue(connect(options), tasks);
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
  { url, token, fetch, ...options }: ConnectOptions & WorkerOptions,
  tasks: Tasks<Types>,
  handlers: TaskHandlers<Types> | BatchHandlers<Types> | URL,
): Worker {
  const transport = connect({ ...(url !== undefined && { url }), token, ...(fetch && { fetch }) });
  return startWorker(transport, options, tasks, handlers, () => transport.close());
}

function connect({ url, ...options }: ConnectOptions): QueueTransport {
  if (url === undefined) throw new TypeError('Name the server: { url }.');
  return httpTransport({ ...options, url });
}
