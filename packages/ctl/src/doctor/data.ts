import { constants } from 'node:fs';
import { access, mkdtemp, rmdir, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { messageOf, systemCode } from '@millrace/kit/errors';
import type { Check, Finding } from './check.js';

/** Checks that the data directory can be used or created, without creating it. */
export function dataCheck(path: string): Check {
  return {
    name: 'data directory',
    async run() {
      try {
        return (await existing(path)) ?? (await creatable(path));
      } catch (error) {
        return {
          status: 'fail',
          finding: `${path} is not writable: ${messageOf(error)}`,
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
  // Write a file: permissions alone do not reveal a full or read-only disk.
  await rmdir(await mkdtemp(join(path, '.doctor-')));
  if ((found.mode & 0o077) === 0) return { status: 'ok', finding: `${path} is writable` };
  return {
    status: 'warn',
    finding: `${path} is accessible to other users of this machine`,
    advice: `Run: chmod 700 ${path}`,
  };
}

async function creatable(path: string): Promise<Finding> {
  let parent = dirname(path);
  while (!(await statOrNull(parent))) parent = dirname(parent);
  await access(parent, constants.W_OK | constants.X_OK);
  return { status: 'ok', finding: `${path} will be created at the first start` };
}

/** Null for a missing path; throws every other error. */
async function statOrNull(path: string) {
  try {
    return await stat(path);
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return null;
    throw error;
  }
}
