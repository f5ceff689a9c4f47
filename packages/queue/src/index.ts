/** The queue as a library. See `./serve` for the server process. */
export { type Attempt, type Task, type TaskStatus, type WholeTask } from './core/task.js';
export { type Queue, type QueueConfig, type QueueCounts } from './core/queue.js';
export { auditFault, auditHash, type WireAuditRecord } from './core/audit.js';
export { StorageUnavailable, type TaskStore } from './storage/port/task-store.js';
export { openStore } from './storage/open-store.js';
export { verifyTasks, type TaskVerifyReport } from './storage/embedded/verify.js';
export { transferTasks } from './storage/transfer-tasks.js';
export { openQueue, type OpenQueue, type OpenQueueOptions } from './server/open-queue.js';
