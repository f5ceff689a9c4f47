import { hash, timingSafeEqual } from 'node:crypto';
import type { Random, Clock, Timer } from '../base/clock-and-random.js';
import { statSync, watch, type FSWatcher } from 'node:fs';
import { dirname } from 'node:path';
import { readTextFile, parseYamlText, yaml } from '../config/yaml-file.js';
import { UsageError, messageOf, systemCode } from '../base/errors.js';
import type { Log } from '../base/log.js';
import type { Metrics } from '../base/metrics.js';
import { readableByOthers } from '../base/private-files.js';
import { z } from 'zod';
import { isTimestamp } from '../base/units.js';

/**
 * True when the whole name fits the glob. Only `*` is special: it stands for any run of
 * characters, dots included, also for none. Takes time linear in the name for each star.
 */
export function globMatches(glob: string, name: string): boolean {
  const star = glob.indexOf('*');
  if (star === -1) return glob === name;
  if (glob.length === 1) return true;
  const parts = glob.split('*');
  const head = parts[0]!;
  const tail = parts[parts.length - 1]!;
  if (name.length < head.length + tail.length) return false;
  if (!name.startsWith(head) || !name.endsWith(tail)) return false;
  let at = head.length;
  const end = name.length - tail.length;
  for (let i = 1; i < parts.length - 1; i++) {
    const part = parts[i]!;
    const found = name.indexOf(part, at);
    if (found === -1 || found + part.length > end) return false;
    at = found + part.length;
  }
  return true;
}

export interface Grant<Role extends string> {
  /** A name, or a glob such as `payments.*`. */
  queue: string;
  role: Role;
}

/**
 * Levels in ascending order; each role contains all roles of the levels before it. Roles that share
 * a level do not contain each other.
 */
export type RoleLevels<Role extends string> = readonly (Role | readonly Role[])[];

/** What a holder may do where. */
export class Grants<Role extends string> {
  readonly #ranks: ReadonlyMap<Role, number>;
  readonly #grants: readonly { glob: string; role: Role; rank: number }[];

  constructor(levels: RoleLevels<Role>, grants: readonly Grant<Role>[]) {
    const ranks = new Map<Role, number>();
    for (const [rank, level] of levels.entries()) {
      for (const role of typeof level === 'string' ? [level] : level) ranks.set(role, rank);
    }
    this.#ranks = ranks;
    this.#grants = grants.map(({ queue, role }) => ({
      glob: queue,
      role,
      rank: this.#rankOf(role),
    }));
  }

  /** True when some grant on this name has the role or one that contains it. */
  allows(name: string, role: Role): boolean {
    const needed = this.#rankOf(role);
    return this.#grants.some(
      (grant) => (grant.role === role || grant.rank > needed) && globMatches(grant.glob, name),
    );
  }

  /** True when there is any name at all on which the role is held. */
  allowsSomewhere(role: Role): boolean {
    const needed = this.#rankOf(role);
    return this.#grants.some((grant) => grant.role === role || grant.rank > needed);
  }

  #rankOf(role: Role): number {
    const rank = this.#ranks.get(role);
    if (rank !== undefined) return rank;
    throw new Error(`${role} is not a role; roles are ${[...this.#ranks.keys()].join(', ')}`);
  }
}

export interface NewToken {
  /** Names the token in files and logs; no secret. */
  id: string;
  /** What the holder sends. It is shown once and stored nowhere. */
  token: string;
  /** What the server keeps: hex SHA-256 of the token. */
  sha256: string;
}

// Lower case without i, l, o and u: nothing to misread, and a double click selects it whole.
const alphabet = '0123456789abcdefghjkmnpqrstvwxyz';
const maxTokenLength = 512;

/** A new token: `mr_`, an id, and 256 bits of chance. */
export function newToken(random: Random): NewToken {
  const id = encode(random.bytes(8));
  const token = `mr_${id}_${encode(random.bytes(32))}`;
  return { id, token, sha256: hashSecret(token) };
}

/** Hex SHA-256. Enough for secrets that are long and random, which ours are. */
export function hashSecret(secret: string): string {
  return hash('sha256', secret, 'hex');
}

/** Compares two hex hashes in a time that does not tell where they differ. */
export function sameHash(a: string, b: string): boolean {
  const [left, right] = [Buffer.from(a, 'hex'), Buffer.from(b, 'hex')];
  return left.length === 32 && right.length === 32 && timingSafeEqual(left, right);
}

const bearer = /^bearer +([A-Za-z0-9._~+/-]+=*) *$/i;

/** The token of an `Authorization: Bearer` header, or undefined when there is none. */
export function bearerToken(header: string | undefined): string | undefined {
  if (header === undefined || header.length > maxTokenLength + 16) return undefined;
  return bearer.exec(header)?.[1];
}

function encode(bytes: Uint8Array): string {
  let text = '';
  let bits = 0;
  let buffer = 0;
  for (const byte of bytes) {
    buffer = (buffer << 8) | byte;
    bits += 8;
    while (bits >= 5) {
      bits -= 5;
      text += alphabet[(buffer >>> bits) & 31];
    }
    buffer &= (1 << bits) - 1;
  }
  if (bits > 0) text += alphabet[(buffer << (5 - bits)) & 31];
  return text;
}

export interface WatchFileOptions<T> {
  file: string;
  /** What the file holds, for logs and metrics: `tokens`. */
  name: string;
  /** Throws a UsageError that says what is wrong and where. */
  parse: (text: string, file: string) => T;
  clock: Clock;
  log: Log;
  metrics?: Metrics;
  /** False: others may read it, so that no warning is due. */
  isPrivate?: boolean;
  /** Where SIGHUP arrives; the process, or another source in tests. */
  signals?: SignalSource;
}

interface SignalSource {
  on(signal: 'SIGHUP', listener: () => void): unknown;
  removeListener(signal: 'SIGHUP', listener: () => void): unknown;
}

/** A file that is reloaded on change. An invalid version is reported; the last valid one stays. */
export interface WatchedFile<T> {
  readonly current: T;
  /** Why the newest version of the file is not in use; otherwise undefined. */
  readonly lastError: string | undefined;
  /** Reads the file now. */
  reload(): void;
  close(): void;
}

const settleMs = 100;
const pollMs = 5_000;

/** Reads the file, throwing when it is bad, and from then on whenever it changes or on SIGHUP. */
export function watchFile<T>(options: WatchFileOptions<T>): WatchedFile<T> {
  return new FollowedFile(options);
}

class FollowedFile<T> implements WatchedFile<T> {
  readonly #options: WatchFileOptions<T>;
  readonly #onHangup = () => this.#reload('SIGHUP');
  readonly #countFailure: () => void;
  #current: T;
  #lastError: string | undefined;
  /** The text that was read last, valid or not. */
  #text: string | undefined;
  #stamp: string;
  #watcher: FSWatcher | undefined;
  #settling: Timer | undefined;
  #polling: Timer | undefined;
  #closed = false;

  constructor(options: WatchFileOptions<T>) {
    this.#options = options;
    this.#stamp = stampOf(options.file);
    this.#text = this.#read();
    this.#current = options.parse(this.#text, options.file);
    const warning = options.isPrivate === false ? undefined : readableByOthers(options.file);
    if (warning !== undefined) options.log.warn({ file: options.file }, warning);
    this.#countFailure = failureCounter(options, () => (this.#lastError === undefined ? 1 : 0));
    this.#signals().on('SIGHUP', this.#onHangup);
    this.#watchFolder();
    this.#poll();
  }

  get current(): T {
    return this.#current;
  }

  get lastError(): string | undefined {
    return this.#lastError;
  }

  reload(): void {
    this.#reload('request');
  }

  close(): void {
    this.#closed = true;
    this.#signals().removeListener('SIGHUP', this.#onHangup);
    this.#watcher?.close();
    this.#settling?.cancel();
    this.#polling?.cancel();
  }

  #signals(): SignalSource {
    return this.#options.signals ?? process;
  }

  #read(): string {
    const { file } = this.#options;
    const text = readTextFile(file);
    if (text === undefined) throw new UsageError(`${file}: no such file`);
    return text;
  }

  #reload(cause: string): void {
    const { file, name, parse, log } = this.#options;
    try {
      this.#stamp = stampOf(file);
      const text = this.#read();
      if (text === this.#text && this.#lastError === undefined) return;
      this.#text = text;
      this.#current = parse(text, file);
      this.#lastError = undefined;
      log.info({ file, cause }, `${name} reloaded`);
    } catch (error) {
      const message = messageOf(error);
      // The poll and the watcher may both find the same bad file: it is logged once.
      if (message === this.#lastError && cause === 'change') return;
      this.#lastError = message;
      this.#countFailure();
      // A mistake in the file names its line; a stack trace would only hide it.
      const detail = error instanceof UsageError ? {} : { err: error };
      log.error({ file, cause, ...detail }, `failed to reload ${name}: ${message}`);
    }
  }

  /** The folder and not the file: a file that is replaced by a rename is a new one. */
  #watchFolder(): void {
    const { file, log } = this.#options;
    const fail = (error: unknown) => {
      log.warn({ file, err: error }, 'failed to watch file, polling instead');
      this.#watcher?.close();
    };
    try {
      this.#watcher = watch(dirname(file), { persistent: false }, () => this.#settle());
      this.#watcher.on('error', fail);
    } catch (error) {
      fail(error);
    }
  }

  /** A file is often written in several steps: the last one counts. */
  #settle(): void {
    this.#settling?.cancel();
    if (this.#closed) return;
    this.#settling = this.#options.clock.after(settleMs, () => this.#check());
  }

  #check(): void {
    if (stampOf(this.#options.file) !== this.#stamp) this.#reload('change');
  }

  /** For file systems that do not tell, and links whose target lies in another folder. */
  #poll(): void {
    this.#polling = this.#options.clock.after(pollMs, () => {
      this.#check();
      if (!this.#closed) this.#poll();
    });
  }
}

/** Changes whenever the file does. */
function stampOf(file: string): string {
  try {
    const { ino, size, mtimeMs, ctimeMs } = statSync(file);
    return `${ino} ${size} ${mtimeMs} ${ctimeMs}`;
  } catch (error) {
    // Reading the file says what is wrong with it; here it only matters that it changed.
    return `unreadable ${systemCode(error)}`;
  }
}

function failureCounter<T>(
  { name, metrics }: WatchFileOptions<T>,
  isFresh: () => number,
): () => void {
  if (!metrics) return () => undefined;
  metrics.gauge({
    name: `${name}_file_fresh`,
    help: `1 while the newest ${name} file is in use, 0 while it is bad and an older one is.`,
    read: isFresh,
  });
  const failures = metrics.counter({
    name: `${name}_file_failures_total`,
    help: `How often a changed ${name} file could not be used.`,
  });
  return () => failures.inc({});
}

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

/**
 * Bearer tokens, stored as hashes, with their holders and grants, and the token file, which is
 * reloaded when it changes.
 */
