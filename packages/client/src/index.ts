/** Typed clients of the queue and the daemon, for programs and for pages. */
export { ApiError } from './api-error.js';
export { createDaemonClient, type DaemonClient } from './daemon.js';
export { EventParser, type ReceivedEvent } from './event-stream.js';
export type {
  ApiClient,
  ApiResponse,
  ClientOptions,
  Fetch,
  FetchResponse,
  OperationRequest,
  OperationResult,
} from './operations.js';
export { createQueueApi, type QueueApi, type SubmitOptions, type TaskToSubmit } from './queue.js';
export { newUlid } from './ulid.js';
