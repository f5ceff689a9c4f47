import type { NewTask } from '../../port/task-store.js';

/** A task to store. */
export interface Insert {
  task: NewTask;
  now: number;
}
