import type { DbAccess } from '@millrace/contract/db';
import {
  Grants,
  type Grant,
  hashSecret,
  sameHash,
  newToken,
  watchFile,
  type WatchedFile,
  bearerToken,
} from '@millrace/kit/tokens';
import { refuse } from '@millrace/engine/value/documents';
import { UsageError } from '@millrace/kit/errors';
import { parseYamlText } from '@millrace/kit/config';
import { parseTimestamp, UnitError } from '@millrace/kit/units';
import { z } from 'zod';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Random } from '@millrace/kit/random';
import { writePrivateFile } from '@millrace/kit/private-files';
import type { Metrics } from '@millrace/kit/metrics';
import type { World } from '@millrace/kit/world';
import type { DatabaseSettings } from '../base/config.js';
import type { Clock } from '@millrace/kit/clock';

const accesses: readonly DbAccess[] = ['read', 'write', 'admin'];

/** All collections together; only a scope on `*` grants access to it. */
export const wholeDatabase = '*';

/** An authenticated caller and its access to collections. */
export class Principal {
  readonly #grants: Grants<DbAccess>;

  constructor(
    /** Identifies the caller in logs; owns its transactions. */
    readonly id: string,
    scopes: readonly { collections: string; access: DbAccess }[],
  ) {
    const grants = scopes.map(({ collections, access }): Grant<DbAccess> => ({
      queue: collections,
      role: access,
    }));
    this.#grants = new Grants(accesses, grants);
  }

  /** Refuses SCOPE unless the caller has this access to the collection. */
  check(collection: string, access: DbAccess): void {
    if (this.#grants.allows(collection, access)) return;
    const where = collection === wholeDatabase ? 'the whole database' : `"${collection}"`;
    throw noScope(this.id, access, where);
  }

  /** Refuses SCOPE unless the caller has this access to at least one collection. */
  checkSomewhere(access: DbAccess): void {
    if (!this.#grants.allowsSomewhere(access)) throw noScope(this.id, access, 'any collection');
  }
}

/** A caller on the Unix socket, or any caller of a server with `auth: none`. */
export const local = new Principal('local', [{ collections: '*', access: 'admin' }]);

function noScope(id: string, access: DbAccess, where: string): Error {
  return refuse('SCOPE', `The API key "${id}" does not give ${access} access to ${where}.`, {
    access,
  });
}

export type KeyLookup =
  | { outcome: 'known'; principal: Principal }
  | { outcome: 'expired'; id: string }
  | { outcome: 'unknown' };

interface Key {
  id: string;
  /** Hex SHA-256 of the secret, lower case. */
  hash: string;
  /** Milliseconds since the epoch; undefined: never. */
  expiresAt: number | undefined;
  principal: Principal;
}

const maxKeyLength = 512;
const nobody = hashSecret('');

/** The keys of one file. */
export class KeySet {
  readonly #byId: ReadonlyMap<string, Key>;

  constructor(keys: readonly Key[]) {
    this.#byId = new Map(keys.map((key) => [key.id, key]));
  }

  get size(): number {
    return this.#byId.size;
  }

  /** Looks up `id.secret`. Both parts may contain dots, so every dot is tried as the separator. */
  find(sent: string, now: number): KeyLookup {
    if (sent.length > maxKeyLength) return unknown;
    for (let dot = sent.indexOf('.'); dot !== -1; dot = sent.indexOf('.', dot + 1)) {
      const key = this.#byId.get(sent.slice(0, dot));
      // An unknown id takes as long as a wrong secret.
      const isRight = sameHash(key?.hash ?? nobody, hashSecret(sent.slice(dot + 1)));
      if (!key || !isRight) continue;
      if (key.expiresAt !== undefined && now >= key.expiresAt) {
        return { outcome: 'expired', id: key.id };
      }
      return { outcome: 'known', principal: key.principal };
    }
    return unknown;
  }
}

const unknown = { outcome: 'unknown' } as const;

/** One key, `id.secret`, with admin access to everything. */
export function adminKeySet(key: string): KeySet {
  const dot = key.indexOf('.');
  const id = key.slice(0, dot);
  const principal = new Principal(id, [{ collections: '*', access: 'admin' }]);
  return new KeySet([
    { id, hash: hashSecret(key.slice(dot + 1)), expiresAt: undefined, principal },
  ]);
}

const textThat = (fits: (given: string) => boolean, error: string) =>
  z.string().refine(fits, { error });

const schema = z.strictObject({
  keys: z.array(
    z.strictObject({
      id: textThat(
        (id) => /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(id),
        'must be 1 to 64 letters, digits, dots, dashes or underscores',
      ),
      secret_sha256: textThat(
        (hash) => /^[0-9a-fA-F]{64}$/.test(hash),
        'must be the 64 hex digits of the SHA-256 of the secret',
      ),
      scopes: z.array(
        z.strictObject({
          collections: textThat(
            (glob) => /^[A-Za-z0-9*][A-Za-z0-9_.*-]{0,127}$/.test(glob),
            'must be the name of a collection, in which * stands for any characters: orders.*',
          ),
          access: z.enum(['read', 'write', 'admin']),
        }),
      ),
      expires_at: textThat(
        isTime,
        'must be an RFC 3339 time such as 2030-01-31T09:30:00Z',
      ).optional(),
    }),
  ),
});

function isTime(text: string): boolean {
  try {
    parseTimestamp(text);
    return true;
  } catch (error) {
    if (error instanceof UnitError) return false;
    throw error;
  }
}

/**
 * Reads `keys: [{id, secret_sha256, scopes: [{collections, access}], expires_at?}]`. Errors give
 * file and line but never a value, because a misplaced value may be a secret.
 */
export function parseKeys(yaml: string, file: string): KeySet {
  const parsed = parseYamlText(file, yaml, schema, { secret: true });
  const ids = new Set<string>();
  const keys = parsed.value.keys.map((entry, index): Key => {
    if (ids.has(entry.id)) {
      throw new UsageError(
        `${parsed.at('keys', index, 'id')}: keys[${index}].id is used twice: ${entry.id}`,
      );
    }
    ids.add(entry.id);
    return {
      id: entry.id,
      hash: entry.secret_sha256.toLowerCase(),
      expiresAt: entry.expires_at === undefined ? undefined : parseTimestamp(entry.expires_at),
      principal: new Principal(entry.id, entry.scopes),
    };
  });
  return new KeySet(keys);
}

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

export interface Access {
  /** Undefined with `auth: none`. */
  readonly keys: WatchedFile<KeySet> | undefined;
  /** The key of the owner, where the server has created one. */
  readonly ownerKey?: () => string;
}

/** Opens the keys file or, without one, the owner's key, which is created on first start. */
export function openAccess(
  settings: Pick<DatabaseSettings, 'auth' | 'keys_file'>,
  directory: string,
  { clock, random, log }: World,
  metrics: Metrics,
): Access {
  if (settings.auth === 'none') {
    log.warn({}, 'authentication is off: every local user has full access');
    return { keys: undefined };
  }
  const watched = { name: 'keys', clock, log, metrics };
  if (settings.keys_file !== undefined) {
    return { keys: watchFile({ ...watched, file: settings.keys_file, parse: parseKeys }) };
  }
  const file = ownerKeyFile(directory);
  if (createOwnerKey(file, random)) log.info({ file }, 'database key created');
  const keys = watchFile({ ...watched, file, parse: parseOwnerKey });
  return { keys, ownerKey: () => readOwnerKey(file) };
}

/** Credentials of a request: two HTTP headers or two gRPC metadata entries. */
export interface Credentials {
  readonly apiKey: string | undefined;
  readonly authorization: string | undefined;
}

/** Authenticates callers. Without keys (`auth: none`) everyone has full access. */
export class Authenticator {
  constructor(
    private readonly keys: { readonly current: KeySet } | undefined,
    private readonly clock: Clock,
  ) {}

  get needsKeys(): boolean {
    return this.keys !== undefined;
  }

  /** Refuses MISSING_KEY, UNKNOWN_KEY or EXPIRED_KEY. */
  identify({ apiKey, authorization }: Credentials): Principal {
    if (!this.keys) return local;
    const sent = apiKey || bearerToken(authorization);
    if (!sent) {
      throw refuse(
        'MISSING_KEY',
        'An API key is required. Send it as x-api-key or as Authorization: Bearer.',
      );
    }
    const found = this.keys.current.find(sent, this.clock.now());
    if (found.outcome === 'known') return found.principal;
    throw found.outcome === 'expired'
      ? refuse('EXPIRED_KEY', `The API key "${found.id}" has expired. Request a new one.`)
      : refuse('UNKNOWN_KEY', 'The API key is unknown or was revoked.');
  }
}
