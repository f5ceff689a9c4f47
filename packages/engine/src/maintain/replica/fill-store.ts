import { join } from 'node:path';
import { applyBackup } from '../backup/apply.js';
import type { BackupHeader, BackupPart } from '../backup/parts.js';
import { readBackup } from '../backup/reader.js';
import { Core, type CoreOptions } from '../../core/core.js';
import { openFormat } from '../upgrade/format.js';
import { removeStore } from '../../storage/file/directory.js';
import { nodeFiles } from '../../storage/file/files.js';
import { Tables } from '../../storage/file/tables.js';

/**
 * Creates a store from a backup, beside the current store. It keeps the lineage of the backup.
 * Removed again when the backup is incomplete.
 */
export async function fillStore(
  directory: string,
  name: string,
  parts: AsyncIterable<BackupPart>,
  source: string,
  options: CoreOptions,
): Promise<BackupHeader> {
  removeStore(directory, name);
  const tables = new Tables(join(directory, name));
  let core: Core | undefined;
  let isWhole = false;
  try {
    await openFormat(tables, { ...options, files: nodeFiles });
    core = new Core(tables, undefined, options);
    const statements = readBackup(parts, source);
    const header = await applyBackup(core, statements, source, { keepLineage: true });
    isWhole = true;
    return header;
  } finally {
    if (core) await core.close(new Error('The copy is over'));
    else await tables.close();
    if (!isWhole) removeStore(directory, name);
  }
}
