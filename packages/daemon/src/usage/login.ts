import { readFile } from 'node:fs/promises';
import { systemCode } from '@millrace/kit/errors';
import { failed, type Failed } from './adapter.js';
import { textOf } from './figures.js';

/** Directories of login files. */
export interface Logins {
  readonly home: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly codexEnvironment?: Readonly<Record<string, string>> | undefined;
}

export type LoginFile =
  | { readonly found: true; readonly value: unknown }
  | { readonly found: false; readonly isUnreadable: boolean };

/**
 * The first existing file, as JSON. Files of other programs are never written: renewing an expired
 * login is up to them.
 */
export async function readLogin(files: readonly string[]): Promise<LoginFile> {
  let isUnreadable = false;
  for (const file of files) {
    try {
      const text = await readFile(file, 'utf8');
      return { found: true, value: parsed(text) };
    } catch (error) {
      if (!['ENOENT', 'ENOTDIR'].includes(systemCode(error))) isUnreadable = true;
    }
  }
  return { found: false, isUnreadable };
}

/** Some logins are the bare token. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text.trim();
  }
}

/** A token that can go into a header, or null: a file may hold anything. */
export function tokenOf(value: unknown): string | null {
  const token = textOf(value);
  return token !== null && /^[\u0021-\u007E]{1,8192}$/.test(token) ? token : null;
}

/** The failure without a token: says how to log in, but not which files were read. */
export function noLogin(login: LoginFile, command: string): Failed {
  const why = login.found
    ? 'the login holds no token that can be used'
    : login.isUnreadable
      ? 'the login cannot be read'
      : 'there is no login';
  return failed('unauthenticated', `${why}; log in with \`${command}\``, { wasRequested: false });
}
