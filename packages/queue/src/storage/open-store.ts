import { UsageError } from '@millrace/kit/errors';
import { embeddedStoreIn, openEmbeddedStore, type EmbeddedStoreOptions } from './embedded/index.js';
import type { TaskStore } from './task-store.js';

export interface OpenStoreOptions extends EmbeddedStoreOptions {
  /** Where the embedded store has its directory. */
  dataDirectory: string;
}

/** Opens the store that the setting `storage` names: `embedded`, or the URL of a PostgreSQL. */
export async function openStore(setting: string, options: OpenStoreOptions): Promise<TaskStore> {
  if (setting === 'embedded') {
    const { clock, random, log, dataDirectory } = options;
    return openEmbeddedStore(embeddedStoreIn(dataDirectory), { clock, random, log });
  }
  if (/^postgres(ql)?:\/\//.test(setting)) {
    throw new UsageError('storage: PostgreSQL is not supported yet. Use "embedded".');
  }
  // Not shown: it may be a mistyped URL with a password in it.
  throw new UsageError('storage: expected "embedded" or a URL that begins with postgres://.');
}
