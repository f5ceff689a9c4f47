import { z } from 'zod';
import { parseYamlText } from '../config/yaml-file.js';
import { yaml } from '../config/yaml-library.js';
import { UsageError } from '../base/errors.js';
import { isTimestamp } from '../http/formats.js';
import { Grants } from './grants.js';
import type { Grant, RoleLevels } from './grants.js';
import { hashSecret, sameHash } from './secret.js';
import { watchFile } from './watched-file.js';
import type { WatchedFile, WatchFileOptions } from './watched-file.js';

/** Who sends a token and what they may do. */
export interface TokenHolder<Role extends string> {
  /** The token's id, not its secret. */
  id: string;
  principal: string;
  grants: Grants<Role>;
  /** Milliseconds since the epoch; undefined for a token that does not expire. */
  expiresAt: number | undefined;
}

export type TokenLookup<Role extends string> =
  | { outcome: 'known'; holder: TokenHolder<Role> }
  | { outcome: 'expired'; holder: TokenHolder<Role> }
  | { outcome: 'unknown' };

interface Known<Role extends string> {
  /** Hex SHA-256 of the token, lower case. */
  hash: string;
  holder: TokenHolder<Role>;
}

/** The tokens of one file. */
export class TokenSet<Role extends string> {
  readonly #byHash: ReadonlyMap<string, Known<Role>>;
  /**
   * Valid tokens that were used, so at most as many as there are. An unknown token does not match:
   * string hashing is seeded per process, so lookups do not leak timing.
   */
  readonly #sent = new Map<string, Known<Role>>();
  /** Warnings for the operator. */
  readonly warnings: readonly string[];

  constructor(known: readonly Known<Role>[], warnings: readonly string[] = []) {
    this.#byHash = new Map(known.map((entry) => [entry.hash, entry]));
    this.warnings = warnings;
  }

  get size(): number {
    return this.#byHash.size;
  }

  /** Looks up a token by its hash, so that timing reveals nothing about other tokens. */
  find(token: string, now: number): TokenLookup<Role> {
    const entry = this.#sent.get(token) ?? this.#findByHash(token);
    if (!entry) return unknown;
    const { holder } = entry;
    if (holder.expiresAt !== undefined && now >= holder.expiresAt) {
      return { outcome: 'expired', holder };
    }
    return { outcome: 'known', holder };
  }

  #findByHash(token: string): Known<Role> | undefined {
    const hash = hashSecret(token);
    const entry = this.#byHash.get(hash);
    if (!entry || !sameHash(entry.hash, hash)) return undefined;
    this.#sent.set(token, entry);
    return entry;
  }
}

const unknown = { outcome: 'unknown' } as const;

const textThat = (fits: (given: string) => boolean, error: string) =>
  z.string().refine(fits, { error });

const idText = textThat(
  (id) => /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(id),
  'must be 1 to 64 letters, digits, dots, dashes or underscores',
);
const hashText = textThat(
  (hash) => /^[0-9a-fA-F]{64}$/.test(hash),
  'must be the 64 hex digits of the SHA-256 of the token',
);
const globText = textThat(
  (glob) => /^[a-z0-9*][a-z0-9._*-]{0,127}$/.test(glob),
  'must be a queue name, in which * stands for any characters: payments.*',
);
const timeText = textThat(
  isTimestamp,
  'must be an RFC 3339 timestamp such as 2030-01-31T09:30:00Z',
);

function schemaOf(roles: readonly string[]) {
  return z.strictObject({
    tokens: z.array(
      z.strictObject({
        id: idText,
        principal: z.string().min(1).max(256),
        token_sha256: hashText.optional(),
        token: z.string().min(1).max(512).optional(),
        grants: z.array(
          z.strictObject({ queue: globText, role: z.enum(roles as [string, ...string[]]) }),
        ),
        expires_at: timeText.optional(),
      }),
    ),
  });
}

/**
 * Reads `tokens: [{id, principal, token_sha256, grants: [{queue, role}], expires_at?}]`. `roles`
 * are in ascending order. Errors name file and line.
 */
export function parseTokens<Role extends string>(
  yaml: string,
  file: string,
  roles: RoleLevels<Role>,
): TokenSet<Role> {
  // No value appears in messages: a secret in the wrong place is still a secret.
  const parsed = parseYamlText(file, yaml, schemaOf(roles.flat()), { secret: true });
  const known: Known<Role>[] = [];
  const ids = new Set<string>();
  const hashes = new Set<string>();
  const warnings: string[] = [];
  for (const [index, entry] of parsed.value.tokens.entries()) {
    const fail = (key: string, message: string) =>
      new UsageError(`${parsed.at('tokens', index, key)}: tokens[${index}].${key} ${message}`);
    const { id, token, token_sha256: given } = entry;
    if ((token === undefined) === (given === undefined)) {
      throw fail('id', 'needs either token_sha256 or, for development, token beside it');
    }
    if (ids.has(id)) throw fail('id', `is used twice: ${id}`);
    ids.add(id);
    if (token !== undefined) {
      warnings.push(
        `${parsed.at('tokens', index, 'token')}: token ${id} is stored in clear text; ` +
          'replace it with its SHA-256 as token_sha256',
      );
    }
    const hash = given?.toLowerCase() ?? hashSecret(token!);
    if (hashes.has(hash)) {
      throw fail(given === undefined ? 'token' : 'token_sha256', 'is the token of another entry');
    }
    hashes.add(hash);
    known.push({
      hash,
      holder: {
        id,
        principal: entry.principal,
        grants: new Grants(roles, entry.grants as Grant<Role>[]),
        expiresAt: entry.expires_at === undefined ? undefined : Date.parse(entry.expires_at),
      },
    });
  }
  return new TokenSet(known, warnings);
}

export type WatchTokensOptions<Role extends string> = Omit<
  WatchFileOptions<TokenSet<Role>>,
  'name' | 'parse'
> & { roles: RoleLevels<Role> };

/** The tokens of a file that is followed as it changes. Clear tokens are warned about. */
export function watchTokens<Role extends string>(
  options: WatchTokensOptions<Role>,
): WatchedFile<TokenSet<Role>> {
  const { roles, ...rest } = options;
  return watchFile({
    ...rest,
    name: 'tokens',
    parse: (text, file) => {
      const tokens = parseTokens(text, file, roles);
      for (const warning of tokens.warnings) options.log.warn({ file }, warning);
      return tokens;
    },
  });
}

/** An entry of the file, as it is written there. */
export interface TokenEntry {
  id: string;
  principal: string;
  token_sha256: string;
  grants: readonly Grant<string>[];
  expires_at?: string;
}

/** The entry as YAML, to be put under `tokens:`. */
export function tokenEntryYaml(entry: TokenEntry): string {
  return yaml().stringify([entry], { indent: 2, lineWidth: 0 }).replaceAll(/^/gm, '  ').trimEnd();
}
