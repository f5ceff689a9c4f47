import { closeSync, fsyncSync, openSync, readFileSync, renameSync, writeSync } from 'node:fs';
import { systemCode, UsageError } from '@millrace/kit/errors';

export interface PersistentTextOptions {
  file: string;
  /** What the file holds, for messages: "the id of this server". */
  what: string;
  isGood: (text: string) => boolean;
  make: () => string;
}

/** A text that is made once and then stays the same, also over restarts. */
export function persistentText({ file, what, isGood, make }: PersistentTextOptions): string {
  const known = readIfThere(file)?.trim();
  if (known !== undefined) {
    if (isGood(known)) return known;
    throw new UsageError(`${file} does not hold ${what}; remove it to have a new one made`);
  }
  const text = make();
  const fresh = `${file}.new`;
  const handle = openSync(fresh, 'w', 0o600);
  try {
    writeSync(handle, `${text}\n`);
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
  renameSync(fresh, file);
  return text;
}

function readIfThere(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return undefined;
    throw error;
  }
}
