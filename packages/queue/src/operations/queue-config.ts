import type { QueueSchema } from '@millrace/contract/queue';
import type { Queue } from '../core/queue.js';
import { timeText } from './base/envelope.js';

export type WireConfig = QueueSchema<'QueueConfig'>;

/** A queue as the API shows it. */
export function toWireConfig(queue: Queue): WireConfig {
  const { name, paused, version, createdAt, updatedAt, config } = queue;
  return {
    name,
    paused,
    version,
    created_at: timeText(createdAt),
    updated_at: timeText(updatedAt),
    ...config,
    // Absent in configs that 0.1.0 wrote.
    callback: { ...config.callback, keep_result: config.callback.keep_result ?? false },
  };
}
