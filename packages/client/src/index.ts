/** Typed clients of the queue and the daemon, for programs and for pages. */
export { daemonClient, type DaemonClient } from './daemon.js';
export { bodyOf, Problem } from './problem.js';
export { queueClient, type QueueClient, type SubmitOptions, type TaskToSubmit } from './queue.js';
export type { ClientOptions } from './requests.js';
