import { join } from 'node:path';
import { parseKeys } from '@millrace/db/keys';
import { Refusal, UsageError } from '@millrace/kit/errors';
import { systemRandom } from '@millrace/kit/random';
import { hashSecret, newToken } from '@millrace/kit/tokens';
import { momentAhead } from '../base/arguments.js';
import {
  addEntry,
  checkedId,
  expiry,
  fileOf,
  lister,
  removeEntry,
  type Credentials,
} from '../base/credentials.js';
import type { Flags, Tools } from '../base/tools.js';

export interface KeyEntry {
  id: string;
  secret_sha256: string;
  scopes: { collections: string; access: string }[];
  expires_at?: string;
}

export type KeysFileFlags = Flags<'keysFile config data'>;

export type CreateKeyFlags = KeysFileFlags & Flags<'id expires'> & { scope: string[] };

export const keys: Credentials<KeyEntry> = {
  list: 'keys',
  noun: 'key',
  named: 'id',
  place: {
    flag: 'keysFile',
    setting: 'keys_file',
    config: async () => (await import('@millrace/db/config')).databaseConfig,
    // Settings of the database that `ctl up` runs.
    fallback: (dataDir) => ({ settings: join(dataDir, 'db.yaml') }),
  },
  empty: '# API keys of the database; see `ctl db keys`.\nkeys: []\n',
  check: (text, file) => void parseKeys(text, file),
  columns: [
    { title: 'ID', value: ({ id }) => id },
    { title: 'May', value: ({ scopes }) => scopes.map(scopeText).join(', '), wraps: true },
    { title: 'Expires', value: ({ expires_at: at }) => expiry(at) },
  ],
  json: ({ id, scopes, expires_at: at }) => ({ id, scopes, expires_at: at ?? null }),
};

type Shows = Pick<Tools, 'terminal'>;

export async function createKey(flags: CreateKeyFlags, { terminal }: Shows): Promise<void> {
  const scopes = flags.scope.map(parseScope);
  const expiresAt = momentAhead(flags.expires, '--expires');
  const file = await fileOf(keys, flags, terminal.env);
  const id = checkedId(flags.id ?? newToken(systemRandom).id);
  const secret = newSecret();
  await addEntry(keys, file, {
    id,
    secret_sha256: hashSecret(secret),
    scopes,
    ...(expiresAt !== undefined && { expires_at: expiresAt }),
  });
  const key = `${id}.${secret}`;
  const until = expiresAt === undefined ? '' : ` until ${expiresAt}`;
  terminal.show(
    { id, key, scopes, expires_at: expiresAt ?? null, file },
    () =>
      `The key "${id}" is in ${file}; it may ` +
      `${scopes.map(scopeText).join(', ')}${until}.\nIt is shown only once:\n\n  ` +
      `${key}\n\nSend it as x-api-key, or set MILLRACE_DB_KEY for commands.\n`,
  );
}

export const listKeys = lister(keys);

export async function revokeKey(id: string, flags: KeysFileFlags, tools: Shows): Promise<void> {
  const file = await fileOf(keys, flags, tools.terminal.env);
  const hint = id.includes('.')
    ? ' Give the id of the key, which is the part before its secret.'
    : '';
  await removeEntry(keys, file, id, (message) => new Refusal('UNKNOWN_KEY', `${message}${hint}`));
  tools.terminal.show({ revoked: id, file }, `Removed the key "${id}" from ${file}.\n`);
}

/** Lower-case letters and digits, 256 random bits. */
function newSecret(): string {
  const { id, token } = newToken(systemRandom);
  return token.slice(`mr_${id}_`.length);
}

function parseScope(text: string): KeyEntry['scopes'][number] {
  const match = /^([A-Za-z0-9*][A-Za-z0-9_.*-]{0,127}):(read|write|admin)$/.exec(text);
  if (match) return { collections: match[1]!, access: match[2]! };
  throw new UsageError(
    `--scope must be collections:access such as orders.*:write, not "${text}"; ` +
      'access is read, write or admin.',
  );
}

function scopeText({ collections, access }: KeyEntry['scopes'][number]): string {
  return `${access} ${collections}`;
}
