import { UsageError } from '@millrace/kit/errors';
import { parseYamlText } from '@millrace/kit/config';
import { hashSecret, sameHash } from '@millrace/kit/tokens';
import { parseTimestamp, UnitError } from '@millrace/kit/units';
import { z } from 'zod';
import { Principal } from './principal.js';

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
