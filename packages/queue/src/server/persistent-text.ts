import { closeSync, fsyncSync, openSync, readFileSync, renameSync, writeSync } from 'node:fs';
import { systemCode, UsageError } from '@millrace/kit/errors';

export interface PersistentTextOptions {
  file: string;
  /** Description of the content for messages: "the id of this server". */
  what: string;
  isGood: (text: string) => boolean;
  make: () => string;
}

/** Reads a text from a file; creates it on the first start. */
export function persistentText({ file, what, isGood, make }: PersistentTextOptions): string {
  const known = readIfThere(file)?.trim();
  if (known !== undefined) {
    if (isGood(known)) return known;
    throw new UsageError(`${file} does not hold ${what}; delete it to create a new one.`);
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
