import { readFileSync, statSync } from 'node:fs';
import { messageOf, systemCode, UsageError } from '../base/errors.js';

const maxFileBytes = 4 * 2 ** 20;

/** The text of a file, or `undefined` when it does not exist. Other errors are UsageErrors. */
export function readTextFile(file: string): string | undefined {
  let bytes: Buffer;
  try {
    const { size } = statSync(file);
    if (size > maxFileBytes) throw new UsageError(`${file}: is larger than 4 MiB`);
    bytes = readFileSync(file);
  } catch (error) {
    if (error instanceof UsageError) throw error;
    if (systemCode(error) === 'ENOENT') return undefined;
    throw new UsageError(`${file}: ${reason(error)}`);
  }
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new UsageError(`${file}: is not UTF-8 text; save it as UTF-8`);
  }
}

function reason(error: unknown): string {
  switch (systemCode(error)) {
    case 'EISDIR':
      return 'is a directory, not a file';
    case 'ENOTDIR':
      return 'a part of this path is not a directory';
    case 'EACCES':
    case 'EPERM':
      return `cannot be read by uid ${process.getuid?.() ?? '?'}: permission denied`;
    default:
      return `cannot be read: ${messageOf(error)}`;
  }
}
