import { openEmbeddedSource, openEmbeddedTarget } from './embedded/transfer-end.js';
import type { EmbeddedStoreOptions } from './embedded/open.js';
import type { TaskStore } from './port/task-store.js';
import type { Source, Target } from './transfer/moved.js';
import { transfer, type TransferTally, type TransferWatch } from './transfer/transfer.js';

export interface TransferOptions extends TransferWatch, EmbeddedStoreOptions {
  /** `in`: from the data directory into the database. */
  direction: 'in' | 'out';
  dataDirectory: string;
}

interface TransferStore {
  transferEnd(): Source & Target;
}

/**
 * Moves all queues, tasks and audit records between a PostgreSQL store that was opened with
 * `forTransfer` and the embedded store of a data directory.
 */
export async function transferTasks(
  store: TaskStore,
  { direction, dataDirectory, progress, signal, ...embedded }: TransferOptions,
): Promise<TransferTally> {
  if (!canTransfer(store)) throw new Error('Only a PostgreSQL store can transfer its tasks');
  const database = store.transferEnd();
  const watch = { progress, signal };
  if (direction === 'in') {
    const source = await openEmbeddedSource(dataDirectory, embedded);
    try {
      return await transfer(source, database, 'embedded', watch);
    } finally {
      await source.close();
    }
  }
  const target = await openEmbeddedTarget(dataDirectory, embedded);
  try {
    return await transfer(database, target, 'postgres', watch);
  } finally {
    await target.close();
  }
}

function canTransfer(store: TaskStore): store is TaskStore & TransferStore {
  return 'transferEnd' in store;
}
