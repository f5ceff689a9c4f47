import { constants } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import { delimiter, isAbsolute, join } from 'node:path';
import { systemCode } from '@millrace/kit/errors';

/**
 * Finds a program the way a shell would, but starts none: the first executable file of this name
 * in the directories of `searchPath`. Relative directories, an empty one included, are passed
 * over: what lies in the current directory must not be taken for an installed program.
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

// Whatever keeps us from looking keeps us from running it, too.
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
