/** Typed tasks for the Millrace queue: submit them, work them off, or handle their callbacks. */
export { ApiError } from '@millrace/client';
export { connectQueue, connectTransport, createWorker, type ConnectOptions } from './connect.js';
export { durationMs, type Duration } from './duration.js';
export {
  LeaseLost,
  PermanentError,
  RetryLater,
  StepFailed,
  TaskCancelled,
  TaskFailed,
  ValidationError,
  WaitTimeout,
} from './errors.js';
export type {
  EventOptions,
  EventQuery,
  QueueEvent,
  QueueEvents,
  QueueEventType,
} from './events.js';
export type {
  BatchHandlers,
  HandlerCall,
  Progress,
  TaskDependency,
  TaskHandlers,
} from './handlers.js';
export { Flow, type FlowTaskOptions } from './flow.js';
export type { Listing } from './listing.js';
export { inCallNames } from './names.js';
export { toNodeHandler, type NodeHandler } from './node-handler.js';
export { payloadBytes } from './payload.js';
export { createHandler, type FetchHandler, type HandlerOptions } from './push-handler.js';
export {
  Queue,
  type CancelFilter,
  type FinishedTask,
  type ListOptions,
  type ManyResult,
  type QueueConfig,
  type QueueConfigInput,
  type QueueTask,
  type SubmittedTask,
  type TaskChange,
  type TaskFilter,
} from './queue.js';
export type { DeadFilter, DeadSelection, Schedule, ScheduleInput } from './queue-parts.js';
export type { StandardSchema } from './standard-schema.js';
export type { AgentResult, AgentTask, Step, StepContext, StepOptions } from './steps.js';
export { submitRequestNow, type ManyItem, type SubmitOptions, type WaitOptions } from './submit.js';
export { submitIn, type SqlClient } from './submit-in.js';
export {
  defineTasks,
  queuesOf,
  type Backoff,
  type TaskDefinition,
  type TaskInfo,
  type Tasks,
  type TaskTypes,
} from './tasks.js';
export {
  httpTransport,
  type CallOperation,
  type ClaimedTask,
  type QueueTransport,
  type SubmitRequest,
} from './transport.js';
export {
  startRawWorker,
  type Middleware,
  type RawCall,
  type StopOptions,
  type Worker,
  type WorkerEvents,
  type WorkerOptions,
} from './worker.js';
export {
  decodeMessage,
  encodeMessage,
  MessageWriter,
  sessionPath,
  sessionUpgrade,
  type SentTask,
  type SessionAnswer,
  type SessionError,
  type SessionRequest,
  type SessionResponse,
} from './session-messages.js';
