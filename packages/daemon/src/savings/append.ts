import { open, type FileHandle } from 'node:fs/promises';
import { dirname } from 'node:path';
import { lineOf, type Entry } from './entry.js';
import { ledgerFile, makePrivate } from './files.js';

/**
 * Adds one line to the ledger; it is on disk when this resolves.
 *
 * The daemon and `ctl` append concurrently. O_APPEND writes are atomic, so each entry is one write.
 * A line torn by a crash is terminated first; when two processes do so, there is an empty line.
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

/** A new file is durable only after its directory is synced. */
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
