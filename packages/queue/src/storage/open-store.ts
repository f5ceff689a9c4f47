import { existsSync } from 'node:fs';
import { UsageError } from '@millrace/kit/errors';
import {
  embeddedPartIn,
  embeddedStoreIn,
  openEmbeddedStore,
  type EmbeddedStoreOptions,
} from './embedded/open.js';
import type { TaskStore } from './port/task-store.js';

export interface OpenStoreOptions extends EmbeddedStoreOptions {
  /** Data directory of the embedded store. */
  dataDirectory: string;
  /** PostgreSQL alone: to move tasks in or out, see `transfer` of its store. */
  forTransfer?: boolean | undefined;
}

/** Opens the store that the setting `storage` names: `embedded`, or the URL of a PostgreSQL. */
export async function openStore(setting: string, options: OpenStoreOptions): Promise<TaskStore> {
  const { clock, random, log, dataDirectory, forTransfer, upgrade, logArchive } = options;
  if (setting === 'embedded') {
    refusePart(dataDirectory);
    const given = { clock, random, log, upgrade, logArchive };
    return openEmbeddedStore(embeddedStoreIn(dataDirectory), given);
  }
  if (logArchive) {
    throw new UsageError('log_archive is for the embedded store. PostgreSQL has its own archives.');
  }
  if (/^postgres(ql)?:\/\//.test(setting)) {
    // Loads the driver only if it is used.
    const { openPostgresStore } = await import('./postgres/open.js');
    return openPostgresStore(setting, { clock, random, log, forTransfer, upgrade });
  }
  // Not shown: it may be a mistyped URL with a password in it.
  throw new UsageError('storage: expected "embedded" or a URL that begins with postgres://.');
}

/** Refuses an unfinished transfer. */
function refusePart(dataDirectory: string): void {
  if (!existsSync(embeddedPartIn(dataDirectory))) return;
  throw new UsageError(
    `storage: an unfinished transfer of tasks is in ${dataDirectory}. ` +
      'Run `ctl queue migrate` again to resume it, or delete ' +
      `${embeddedPartIn(dataDirectory)} to start without tasks.`,
  );
}
