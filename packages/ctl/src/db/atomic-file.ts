import { rmSync } from 'node:fs';
import { open, rename, stat } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { Refusal } from '@millrace/kit/errors';
import { systemClock } from '@millrace/kit/clock';
import { systemRandom } from '@millrace/kit/random';

export interface WriteOptions {
  /** Aborted by Ctrl-C. */
  signal: AbortSignal;
  /** Verifies the finished file before it gets its name. */
  check?: (unfinished: string) => Promise<void>;
}

/**
 * Writes a file atomically: chunks go to a temporary file beside it, which is synced and renamed at
 * the end.
 */
export async function writeWhole(
  file: string,
  pieces: AsyncIterable<Uint8Array | string>,
  { signal, check }: WriteOptions,
): Promise<void> {
  const target = resolve(file);
  await checkTarget(target);
  const unfinished = `${target}.unfinished-${systemRandom.ulid(systemClock.now())}`;
  // Synchronous, because Ctrl-C leaves no time to wait.
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
  if (found && !found.isFile())
    throw new Refusal('NOT_A_FILE', `${target} is not a file. Name a file to write.`);
  const directory = await stat(dirname(target)).catch(() => undefined);
  if (!directory?.isDirectory()) {
    const detail = `There is no directory ${dirname(target)}. Create it first.`;
    throw new Refusal('NO_SUCH_DIRECTORY', detail);
  }
}

/** Makes the new name itself durable. */
async function syncDirectory(directory: string): Promise<void> {
  const handle = await open(directory, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
