import { randomUUID } from 'node:crypto';
import { mkdir, open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { systemRandom } from '@millrace/kit/random';
import { newToken } from '@millrace/kit/tokens';
import { lineOf } from './places.js';

/**
 * Writes a new token to the file atomically, readable by the owner only; a running daemon reads it
 * at its next request.
 */
export async function writeNewToken(file: string): Promise<string> {
  const { token } = newToken(systemRandom);
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  await writePrivate(file, `${token}\n`);
  return token;
}

/**
 * Replaces the daemon's token in the secrets file of the queue, which reloads a changed file.
 * Returns false when the file does not hold the old token.
 */
export async function replaceInSecrets(file: string, old: string, token: string): Promise<boolean> {
  const text = lineOf(file);
  if (text === undefined || !text.includes(JSON.stringify(old))) return false;
  await writePrivate(file, `${text.replaceAll(JSON.stringify(old), JSON.stringify(token))}\n`);
  return true;
}

async function writePrivate(file: string, text: string): Promise<void> {
  const unfinished = `${file}.${randomUUID()}`;
  const handle = await open(unfinished, 'wx', 0o600);
  try {
    await handle.writeFile(text);
    await handle.sync();
    await rename(unfinished, file);
  } catch (error) {
    await rm(unfinished, { force: true });
    throw error;
  } finally {
    await handle.close();
  }
}
