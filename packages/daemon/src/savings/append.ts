import { open, type FileHandle } from 'node:fs/promises';
import { dirname } from 'node:path';
import { lineOf, type Entry } from './entry.js';
import { ledgerFile, makePrivate } from './files.js';

/**
 * Adds one line to the ledger; it is on disk when this resolves.
 *
 * Daemon and command lines append at the same time. The system appends one write as a whole, so
 * there is exactly one. A line that a crash cut short is ended first, so that ours is not glued to
 * it; when two see the same torn line, the ledger has an empty line more.
 */
export async function appendEntry(dataDir: string, entry: Entry): Promise<void> {
  const file = ledgerFile(dataDir);
  await makePrivate(dirname(file));
  const handle = await open(file, 'a+', 0o600);
  try {
    const { size } = await handle.stat();
    const isTorn = size > 0 && (await lastByte(handle, size)) !== lineBreak;
    const bytes = Buffer.from(`${isTorn ? '\n' : ''}${lineOf(entry)}\n`);
    const { bytesWritten } = await handle.write(bytes);
    if (bytesWritten !== bytes.length) {
      throw new Error(`${file}: only ${bytesWritten} of ${bytes.length} bytes were written`);
    }
    await handle.sync();
    if (size === 0) await syncFolder(dirname(file));
  } finally {
    await handle.close();
  }
}

const lineBreak = 0x0a;

async function lastByte(handle: FileHandle, size: number): Promise<number | undefined> {
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(1), 0, 1, size - 1);
  return bytesRead === 1 ? buffer[0] : undefined;
}

/** A new file is only there for good when its folder is on disk as well. */
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
