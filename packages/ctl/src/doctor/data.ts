import { constants } from 'node:fs';
import { access, mkdtemp, rmdir, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { messageOf, systemCode } from '@millrace/kit/errors';
import type { Check, Finding } from './check.js';

/** Whether the data directory can be used, or made, without making it. */
export function dataCheck(path: string): Check {
  return {
    name: 'data directory',
    async look() {
      try {
        return (await existing(path)) ?? (await creatable(path));
      } catch (error) {
        return {
          status: 'fail',
          finding: `${path} cannot be written: ${messageOf(error)}`,
          advice: 'Make it writable for you, or choose another with --data DIR.',
        };
      }
    },
  };
}

async function existing(path: string): Promise<Finding | null> {
  const found = await statOrNull(path);
  if (!found) return null;
  if (!found.isDirectory()) throw new Error('it is not a directory');
  // Asking the permissions is not enough: a full or read-only disk shows only in the attempt.
  await rmdir(await mkdtemp(join(path, '.doctor-')));
  if ((found.mode & 0o077) === 0) return { status: 'ok', finding: `${path} can be written` };
  return {
    status: 'warn',
    finding: `${path} is open to other users of this machine`,
    advice: `Close it: chmod 700 ${path}`,
  };
}

async function creatable(path: string): Promise<Finding> {
  let parent = dirname(path);
  while (!(await statOrNull(parent))) parent = dirname(parent);
  await access(parent, constants.W_OK | constants.X_OK);
  return { status: 'ok', finding: `${path} will be made on the first start` };
}

/** A missing path is null; every other trouble on the way to it is thrown. */
async function statOrNull(path: string) {
  try {
    return await stat(path);
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return null;
    throw error;
  }
}
