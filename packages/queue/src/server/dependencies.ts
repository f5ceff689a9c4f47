import type { World } from '@millrace/kit/world';
import { createDelivery } from '../delivery/index.js';
import { openStore } from '../storage/open-store.js';
import { StorageUnavailable, type TaskStore } from '../storage/port/task-store.js';
import type { QueueSettings } from './config.js';
import type { ServerDependencies } from './server.js';

const firstPauseMs = 250;
const maxPauseMs = 5_000;

/** The real store and the real delivery. */
export const serverDependencies = {
  openStore: ({ storage, data, upgrade }: QueueSettings, world: World, stopping?: AbortSignal) =>
    retryUntilOpen(
      world,
      () => openStore(storage, { ...world, dataDirectory: data, upgrade }),
      stopping,
    ),
  createDelivery,
} satisfies ServerDependencies;

/** Waits for the database, because it may start after this server. */
async function retryUntilOpen(
  { clock, log }: World,
  open: () => Promise<TaskStore>,
  stopping: AbortSignal | undefined,
): Promise<TaskStore> {
  for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(pauseMs * 2, maxPauseMs)) {
    try {
      return await open();
    } catch (error) {
      if (!(error instanceof StorageUnavailable)) throw error;
      log.warn({ retry_ms: pauseMs }, `waits for its storage: ${error.message}`);
      await clock.sleep(pauseMs, stopping);
    }
  }
}
