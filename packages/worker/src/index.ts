/** Typed tasks for the Millrace queue: submit them, work them off, or handle their callbacks. */
export { PermanentError, RetryLater, TaskFailed, WaitTimeout } from './errors.js';
export type { HandlerCall, Progress, TaskHandlers, TaskInfo } from './handlers.js';
export { toNodeHandler, type NodeHandler } from './node-handler.js';
export { createHandler, type FetchHandler, type HandlerOptions } from './push-handler.js';
export {
  createQueueClient,
  taskQueue,
  type FinishedTask,
  type SubmitOptions,
  type SubmittedTask,
  type TaskQueue,
  type WaitOptions,
} from './queue-client.js';
export type { StandardSchema } from './standard-schema.js';
export { defineTasks, type Tasks, type TaskTypes } from './tasks.js';
export { httpTransport, type ClaimedTask, type QueueTransport } from './transport.js';
export { decodeBase64 } from './payload.js';
export {
  createWorker,
  startRawWorker,
  startWorker,
  type RawCall,
  type StopOptions,
  type Worker,
  type WorkerOptions,
} from './worker.js';
