import { constants } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import { delimiter, isAbsolute, join } from 'node:path';
import { systemCode } from '@millrace/kit/errors';

/**
 * Finds a program like a shell does: the first executable file of this name in the directories of
 * `searchPath`. Relative and empty entries are skipped, so that a file in the current directory is
 * not taken for an installed program.
 */
export async function findProgram(
  binary: string,
  searchPath: string | undefined,
): Promise<string | undefined> {
  if (isAbsolute(binary)) return (await isExecutable(binary)) ? binary : undefined;
  if (binary.includes('/')) return undefined;
  for (const directory of (searchPath ?? '').split(delimiter)) {
    if (!isAbsolute(directory)) continue;
    const file = join(directory, binary);
    if (await isExecutable(file)) return file;
  }
  return undefined;
}

// A directory that cannot be read cannot be executed from either.
const notThere = new Set(['ENOENT', 'ENOTDIR', 'EACCES', 'EPERM', 'ELOOP', 'ENAMETOOLONG']);

async function isExecutable(file: string): Promise<boolean> {
  try {
    if (!(await stat(file)).isFile()) return false;
    await access(file, constants.X_OK);
    return true;
  } catch (error) {
    if (notThere.has(systemCode(error))) return false;
    throw error;
  }
}
