import { resolve } from 'node:path';
import { systemClock } from '@millrace/kit/clock';
import { Refusal, UsageError } from '@millrace/kit/errors';
import { systemRandom } from '@millrace/kit/random';
import { hashSecret, newToken } from '@millrace/kit/tokens';
import { parseDuration, parseTimestamp, UnitError } from '@millrace/kit/units';
import type { Tools } from '../base/tools.js';
import { renderTable } from '../render/table.js';
import { editKeys, indexOfKey, readKeys, type KeyEntry } from './keys-file.js';

interface FileFlags {
  keysFile?: string;
  config?: string;
}

type Shows = Pick<Tools, 'terminal'>;

export async function createKey(
  flags: FileFlags & { id?: string; scope: readonly string[]; expires?: string },
  { terminal }: Shows,
): Promise<void> {
  const scopes = flags.scope.map(parseScope);
  const expiresAt = flags.expires === undefined ? undefined : parseExpiry(flags.expires);
  const file = await keysFileOf(flags, { terminal });
  const { id = newToken(systemRandom).id } = flags;
  if (!/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(id)) {
    throw new UsageError('--id must be 1 to 64 letters, digits, dots, dashes or underscores.');
  }
  const secret = newSecret();
  const entry: KeyEntry = { id, secret_sha256: hashSecret(secret), scopes };
  if (expiresAt !== undefined) entry.expires_at = expiresAt;
  await editKeys(file, (keys, document) => {
    if (indexOfKey(keys, id) >= 0) {
      throw new Refusal('DUPLICATE_ID', `${file} already has a key "${id}". Choose another --id.`);
    }
    keys.add(document.createNode(entry));
  });
  const key = `${id}.${secret}`;
  const { out, json } = terminal;
  if (json) {
    const shown = { id, key, scopes, expires_at: expiresAt ?? null, file };
    out.write(`${JSON.stringify(shown, null, 2)}\n`);
    return;
  }
  const until = expiresAt === undefined ? '' : ` until ${expiresAt}`;
  out.write(
    `The key "${id}" is in ${file}; it may ` +
      `${scopes.map(scopeText).join(', ')}${until}.\nIt is shown only once:\n\n  ` +
      `${key}\n\nSend it as x-api-key, or set MILLRACE_DB_KEY for commands.\n`,
  );
}

export async function listKeys(flags: FileFlags, { terminal }: Shows): Promise<void> {
  const file = await keysFileOf(flags, { terminal });
  const keys = await readKeys(file);
  const { out, json } = terminal;
  if (json) {
    const shown = keys.map(({ id, scopes, expires_at: at }) => ({
      id,
      scopes,
      expires_at: at ?? null,
    }));
    out.write(`${JSON.stringify({ keys: shown }, null, 2)}\n`);
    return;
  }
  const now = systemClock.now();
  const columns = [
    { title: 'ID' },
    { title: 'MAY', overflow: 'wrap' as const },
    { title: 'EXPIRES' },
  ];
  const rows = keys.map(({ id, scopes, expires_at: at }) => [
    id,
    scopes.map(scopeText).join(', '),
    at === undefined
      ? 'never'
      : parseTimestamp(at) <= now
        ? { text: `expired ${at}`, tone: 'bad' as const }
        : at,
  ]);
  out.write(keys.length === 0 ? `${file} has no keys.\n` : renderTable(columns, rows, out));
}

export async function revokeKey(id: string, flags: FileFlags, { terminal }: Shows): Promise<void> {
  const file = await keysFileOf(flags, { terminal });
  // Editing would create a missing file.
  await readKeys(file);
  await editKeys(file, (keys) => {
    const at = indexOfKey(keys, id);
    if (at < 0) {
      const hint = id.includes('.')
        ? ' Give the id of the key, which is the part before its secret.'
        : '';
      throw new Refusal('UNKNOWN_KEY', `${file} has no key "${id}".${hint}`);
    }
    keys.delete(at);
  });
  const { out, json } = terminal;
  out.write(
    json
      ? `${JSON.stringify({ revoked: id, file }, null, 2)}\n`
      : `Removed the key "${id}" from ${file}.\n`,
  );
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

/** Parses `90d` from now, or a time. */
function parseExpiry(text: string): string {
  const now = systemClock.now();
  try {
    const at = /^\d{4}-/.test(text) ? parseTimestamp(text) : now + parseDuration(text);
    if (at > now) return new Date(at).toISOString();
  } catch (error) {
    if (error instanceof UnitError) throw new UsageError(`--expires ${error.message}.`);
    throw error;
  }
  throw new UsageError(`--expires must be in the future, and ${text} is not.`);
}

async function keysFileOf(flags: FileFlags, { terminal }: Shows): Promise<string> {
  if (flags.keysFile !== undefined) return resolve(flags.keysFile);
  const [{ databaseConfig }, { loadConfig }] = await Promise.all([
    import('@millrace/db/config'),
    import('@millrace/kit/config'),
  ]);
  const { values } = loadConfig(databaseConfig, {
    environment: terminal.env,
    flags: flags.config === undefined ? {} : { config: flags.config },
  });
  if (values.keys_file !== undefined) return values.keys_file;
  throw new UsageError('Name the keys file: --keys-file FILE, or --config with its keys_file.');
}
