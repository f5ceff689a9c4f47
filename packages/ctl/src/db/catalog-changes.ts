import { Refusal, UsageError } from '@millrace/kit/errors';
import type { RemoteDatabase } from '@millrace/db/client';
import { confirmed } from '../base/confirming.js';
import type { Tools } from '../base/tools.js';
import { named, readCollections } from './catalog.js';
import type { DatabaseTools } from './connection.js';
import { counted } from '@millrace/contract/lists';

type Shows = Pick<Tools, 'terminal'>;

export async function dropCollection(
  database: RemoteDatabase,
  { collection, isConfirmed }: { collection: string; isConfirmed: boolean },
  { terminal, database: shell }: Pick<DatabaseTools, 'terminal' | 'database'>,
): Promise<void> {
  const { records } = named(await readCollections(database), collection);
  const { out, json } = terminal;
  if (!isConfirmed && terminal.in.isScreen) {
    // The shell reads the terminal itself.
    if (shell) throw new UsageError(`Add --yes to delete ${counted(records, 'record')}.`);
    const question = `Delete "${collection}" with ${counted(records, 'record')}? [y/N] `;
    if (!(await confirmed(question, terminal))) {
      throw new Refusal('NOT_CONFIRMED', 'Nothing was deleted.');
    }
  }
  const { deleted, seq } = await database.catalog.drop(collection);
  if (json) out.write(`${JSON.stringify({ deleted, seq })}\n`);
  else out.write(`Dropped "${collection}" with ${counted(deleted, 'record')}.\n`);
}

export async function renameCollection(
  database: RemoteDatabase,
  { collection, newName }: { collection: string; newName: string },
  { terminal }: Shows,
): Promise<void> {
  named(await readCollections(database), collection);
  const { moved, seq } = await database.catalog.rename(collection, newName);
  const { out, json } = terminal;
  if (json) out.write(`${JSON.stringify({ moved, seq })}\n`);
  else out.write(`Renamed "${collection}" to "${newName}" with ${counted(moved, 'record')}.\n`);
}
