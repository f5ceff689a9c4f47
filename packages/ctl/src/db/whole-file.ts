import { rmSync } from 'node:fs';
import { open, rename, stat } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { UsageError } from '@millrace/kit/errors';
import { systemClock } from '@millrace/kit/clock';
import { systemRandom } from '@millrace/kit/random';

export interface WriteOptions {
  /** Of Ctrl-C. */
  signal: AbortSignal;
  /** Looks at the finished file before it takes its name. */
  check?: (unfinished: string) => Promise<void>;
}

/**
 * Writes a file that is there once it is whole and on disk: pieces go into another one beside it,
 * which takes the name at the end.
 */
export async function writeWhole(
  file: string,
  pieces: AsyncIterable<Uint8Array | string>,
  { signal, check }: WriteOptions,
): Promise<void> {
  const target = resolve(file);
  await checkTarget(target);
  const unfinished = `${target}.unfinished-${systemRandom.ulid(systemClock.now())}`;
  // Ctrl-C leaves no time for anything that waits.
  const clean = () => rmSync(unfinished, { force: true });
  signal.addEventListener('abort', clean, { once: true });
  try {
    const handle = await open(unfinished, 'wx', 0o600);
    try {
      for await (const piece of pieces) await handle.writeFile(piece);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await check?.(unfinished);
    await rename(unfinished, target);
  } catch (error) {
    clean();
    throw error;
  } finally {
    signal.removeEventListener('abort', clean);
  }
  await syncDirectory(dirname(target));
}

async function checkTarget(target: string): Promise<void> {
  const found = await stat(target).catch(() => undefined);
  if (found && !found.isFile()) throw new UsageError(`${target} is not a file: name one to write.`);
  const directory = await stat(dirname(target)).catch(() => undefined);
  if (!directory?.isDirectory()) {
    throw new UsageError(`There is no directory ${dirname(target)}: make it first.`);
  }
}

/** So that the new name itself survives a crash. */
async function syncDirectory(directory: string): Promise<void> {
  const handle = await open(directory, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
