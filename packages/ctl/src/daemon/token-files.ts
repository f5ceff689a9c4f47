import { randomUUID } from 'node:crypto';
import { mkdir, open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { systemRandom } from '@millrace/kit/random';
import { newToken } from '@millrace/kit/tokens';

/**
 * Writes a new token to the file atomically, readable by the owner only; a running daemon reads it
 * at its next request.
 */
export async function writeNewToken(file: string): Promise<string> {
  const { token } = newToken(systemRandom);
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  const unfinished = `${file}.${randomUUID()}`;
  const handle = await open(unfinished, 'wx', 0o600);
  try {
    await handle.writeFile(`${token}\n`);
    await handle.sync();
    await rename(unfinished, file);
  } catch (error) {
    await rm(unfinished, { force: true });
    throw error;
  } finally {
    await handle.close();
  }
  return token;
}
