import { readFileSync } from 'node:fs';
import { isIPv6 } from 'node:net';
import type { Clock } from '@millrace/kit/clock';
import { messageOf, systemCode } from '@millrace/kit/errors';
import type { Log } from '@millrace/kit/log';
import { writePrivateFile } from '@millrace/kit/private-files';
import type { Random } from '@millrace/kit/random';
import { hashSecret, newToken } from '@millrace/kit/tokens';
import { z } from 'zod';

export const codeLifetimeMs = 5 * 60_000;
export const loginLifetimeMs = 30 * 24 * 60 * 60_000;
const maxCodes = 20;
const maxLogins = 100;

const fileSchema = z.object({
  logins: z.array(
    z.object({ sha256: z.string(), token_sha256: z.string(), expires_at: z.number() }),
  ),
});
type Login = z.output<typeof fileSchema>['logins'][number];

export interface LoginsParts {
  /** Stores logins across restarts; holds hashes only. */
  file: string;
  clock: Clock;
  random: Random;
  log: Log;
  /** Hash of the token in force: replacing the token ends every login. */
  tokenHash: () => string | undefined;
}

/** Logins of browsers: one-time codes, and the sessions that they were exchanged for. */
export class Logins {
  /** Monotonic time of expiry, by the hash of the code. */
  readonly #codes = new Map<string, number>();
  #logins: Login[];

  constructor(private readonly parts: LoginsParts) {
    this.#logins = read(parts);
  }

  newCode(): { code: string; expiresAt: number } {
    const { clock, random } = this.parts;
    const { token: code } = newToken(random);
    this.#codes.set(hashSecret(code), clock.monotonic() + codeLifetimeMs);
    const [oldest] = this.#codes.keys();
    if (this.#codes.size > maxCodes) this.#codes.delete(oldest!);
    return { code, expiresAt: clock.now() + codeLifetimeMs };
  }

  /** Exchanges a code, once, for the secret of a login; undefined when the code is not valid. */
  redeem(code: string): { secret: string; expiresAt: number } | undefined {
    const { clock, random, tokenHash } = this.parts;
    const hash = hashSecret(code);
    const expiry = this.#codes.get(hash);
    this.#codes.delete(hash);
    if (expiry === undefined || expiry <= clock.monotonic()) return undefined;
    const { token: secret } = newToken(random);
    const expiresAt = clock.now() + loginLifetimeMs;
    const login = {
      sha256: hashSecret(secret),
      token_sha256: boundTo(tokenHash()),
      expires_at: expiresAt,
    };
    this.#write([...this.#logins.filter((each) => this.#isValid(each)), login].slice(-maxLogins));
    return { secret, expiresAt };
  }

  has(secret: string): boolean {
    const sha256 = hashSecret(secret);
    return this.#logins.some((login) => login.sha256 === sha256 && this.#isValid(login));
  }

  end(secret: string): void {
    const sha256 = hashSecret(secret);
    const rest = this.#logins.filter((login) => login.sha256 !== sha256);
    if (rest.length < this.#logins.length) this.#write(rest);
  }

  #isValid({ token_sha256: token, expires_at: expiry }: Login): boolean {
    const { clock, tokenHash } = this.parts;
    return expiry > clock.now() && token === boundTo(tokenHash());
  }

  #write(logins: Login[]): void {
    writePrivateFile(this.parts.file, `${JSON.stringify({ logins })}\n`);
    this.#logins = logins;
  }
}

/** Binds a login to the token without storing the token's hash, which verifies tokens. */
function boundTo(tokenHash: string | undefined): string {
  return hashSecret(`login:${tokenHash ?? ''}`);
}

function read({ file, log }: LoginsParts): Login[] {
  try {
    return fileSchema.parse(JSON.parse(readFileSync(file, 'utf8'))).logins;
  } catch (error) {
    if (systemCode(error) !== 'ENOENT') {
      log.warn({ file, reason: messageOf(error) }, 'failed to read logins');
    }
    return [];
  }
}

const burst = 10;
const refillMs = 6_000;
const maxAddresses = 10_000;

interface Bucket {
  left: number;
  at: number;
}

/**
 * Token bucket per client address against token guessing: a burst of ten wrong tokens, then one
 * every six seconds. Valid tokens are not counted.
 */
export class Throttle {
  readonly #buckets = new Map<string, Bucket>();

  constructor(private readonly clock: Clock) {}

  /** How long this address has to wait; 0 when it may try now. */
  waitMs(address: string): number {
    const bucket = this.#buckets.get(keyOf(address));
    if (!bucket) return 0;
    this.#refill(bucket);
    if (bucket.left >= 1) return 0;
    return Math.max(1, Math.ceil(bucket.at + refillMs - this.clock.monotonic()));
  }

  /** Records a wrong token from this address. */
  failed(address: string): void {
    const key = keyOf(address);
    const bucket = this.#buckets.get(key) ?? { left: burst, at: this.clock.monotonic() };
    this.#refill(bucket);
    bucket.left = Math.max(0, bucket.left - 1);
    // Reinserting keeps the map ordered by last failure, so the first entry is the oldest.
    this.#buckets.delete(key);
    this.#buckets.set(key, bucket);
    const [oldest] = this.#buckets.keys();
    if (this.#buckets.size > maxAddresses) this.#buckets.delete(oldest!);
  }

  #refill(bucket: Bucket): void {
    const now = this.clock.monotonic();
    const refills = Math.floor((now - bucket.at) / refillMs);
    if (refills <= 0) return;
    bucket.left = Math.min(burst, bucket.left + refills);
    bucket.at += refills * refillMs;
  }
}

/** IPv6 addresses share a bucket per /64, because one subscriber owns a whole /64. */
function keyOf(address: string): string {
  const plain = address.replace(/^::ffff:/i, '');
  if (!isIPv6(plain)) return plain;
  const [head = '', tail] = plain.replace(/%.*$/, '').split('::');
  const groups = head === '' ? [] : head.split(':');
  const rest = tail === undefined || tail === '' ? [] : tail.split(':');
  const zeros = Array<string>(Math.max(0, 8 - groups.length - rest.length)).fill('0');
  const all = tail === undefined ? groups : [...groups, ...zeros, ...rest];
  return `${all.slice(0, 4).join(':')}::/64`;
}
