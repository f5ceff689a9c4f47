import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { UsageError } from '@millrace/kit/errors';
import type { Random } from '@millrace/kit/random';
import { writePrivateFile } from '@millrace/kit/private-files';
import { newToken } from '@millrace/kit/tokens';
import { adminKeySet, type KeySet } from './keys.js';

/** File of the key that a server without a keys file creates for its owner. */
export function ownerKeyFile(directory: string): string {
  return join(directory, 'db.key');
}

/** Creates the owner's key unless there is one; returns whether it did. */
export function createOwnerKey(file: string, random: Random): boolean {
  if (existsSync(file)) return false;
  const { id, token } = newToken(random);
  const secret = token.slice(`mr_${id}_`.length);
  writePrivateFile(file, `${id}.${secret}\n`);
  return true;
}

/** Reads the key. */
export function readOwnerKey(file: string): string {
  return checkedKey(readFileSync(file, 'utf8'), file);
}

/** The file holds one `id.secret`, which has admin access to everything. */
export function parseOwnerKey(text: string, file: string): KeySet {
  return adminKeySet(checkedKey(text, file));
}

/** The message leaves out the file's content, which may still be a secret. */
function checkedKey(text: string, file: string): string {
  const key = text.trim();
  if (/^[A-Za-z0-9][A-Za-z0-9_-]{0,63}\.[A-Za-z0-9._~+/-]{16,400}$/.test(key)) return key;
  throw new UsageError(
    `${file} must hold one API key, id.secret. Delete the file to have a new key created.`,
  );
}
