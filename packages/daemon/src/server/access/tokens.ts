import { readFileSync, statSync } from 'node:fs';
import { messageOf, UsageError } from '@millrace/kit/errors';
import type { Log } from '@millrace/kit/log';
import { hashSecret, sameHash } from '@millrace/kit/tokens';
import type { Caller } from '../../core/caller.js';

export type Access = Caller['access'];

export interface TokenSources {
  /** False under `auth: none`: nobody needs a token then. */
  areRequired: boolean;
  token: TokenSource;
  readOnly: TokenSource;
  log: Log;
}

export interface TokenSource {
  /** From a flag, a variable or the config file: it beats the token file. */
  given: string | undefined;
  file: string;
}

/** The daemon's tokens. A token file that changes counts from the next request on. */
export class Tokens {
  readonly areRequired: boolean;
  readonly #full: FollowedToken;
  readonly #readOnly: FollowedToken;

  constructor({ areRequired, token, readOnly, log }: TokenSources) {
    this.areRequired = areRequired;
    this.#full = new FollowedToken(token, 'token', log);
    this.#readOnly = new FollowedToken(readOnly, 'read_only_token', log);
    const [full, reading] = [this.#full.hash, this.#readOnly.hash];
    if (full !== undefined && reading !== undefined && sameHash(full, reading)) {
      throw new UsageError(
        'the read-only token is the same as the token, which may do everything: make another one',
      );
    }
  }

  /** Hash of the token that may do everything. */
  get fullHash(): string | undefined {
    return this.#full.hash;
  }

  /** Where the token that may do everything comes from; undefined when there is none. */
  get origin(): 'given' | 'file' | undefined {
    return this.#full.origin;
  }

  get readOnlyOrigin(): 'given' | 'file' | undefined {
    return this.#readOnly.origin;
  }

  /** What the bearer of this token may do; undefined when it is no token of ours. */
  accessOf(sent: string): Access | undefined {
    const hash = hashSecret(sent);
    // Both are compared in any case: how long it takes tells nothing.
    const isFull = sameHash(hash, this.#full.hash ?? '');
    const isReading = sameHash(hash, this.#readOnly.hash ?? '');
    if (isFull) return 'full';
    return isReading ? 'read_only' : undefined;
  }
}

const sendable = /^[A-Za-z0-9._~+/-]{1,512}={0,4}$/;

class FollowedToken {
  readonly #given: string | undefined;
  readonly #file: string;
  readonly #log: Log;
  #hash: string | undefined;
  #stamp = '';
  #isFresh = false;
  /** What was said about the file last, so that it is said once. */
  #told = '';

  constructor({ given, file }: TokenSource, name: string, log: Log) {
    if (given !== undefined) checkSendable(given, name);
    this.#given = given === undefined ? undefined : hashSecret(given);
    this.#file = file;
    this.#log = log;
    if (given === undefined) this.#read();
  }

  get hash(): string | undefined {
    if (this.#given !== undefined) return this.#given;
    // Requests of one turn of the event loop share one look at the file.
    if (this.#isFresh) return this.#hash;
    this.#isFresh = true;
    setImmediate(() => (this.#isFresh = false));
    try {
      this.#read();
    } catch (error) {
      // A file that went bad must not open the daemon: the last good token stays in force.
      const reason = messageOf(error);
      if (reason !== this.#told) {
        this.#log.error({ file: this.#file }, `token not read again: ${reason}`);
      }
      this.#told = reason;
    }
    return this.#hash;
  }

  get origin(): 'given' | 'file' | undefined {
    if (this.#given !== undefined) return 'given';
    return this.hash === undefined ? undefined : 'file';
  }

  #read(): void {
    const found = look(this.#file);
    if (found.stamp === this.#stamp) return;
    this.#stamp = found.stamp;
    if (found.mode === undefined) {
      if (this.#hash === undefined) return;
      throw new UsageError('the file is gone; the daemon still asks for the token that it held');
    }
    const text = readFileSync(this.#file, 'utf8').trim();
    checkSendable(text, this.#file);
    this.#hash = hashSecret(text);
    if ((found.mode & 0o077) !== 0) {
      this.#log.warn({ file: this.#file }, 'others can read the token file: chmod 600 it');
    }
  }
}

function look(file: string): { stamp: string; mode: number | undefined } {
  try {
    const found = statSync(file, { throwIfNoEntry: false });
    if (!found) return { stamp: 'absent', mode: undefined };
    const { ino, size, mtimeMs, ctimeMs, mode } = found;
    return { stamp: `${ino} ${size} ${mtimeMs} ${ctimeMs}`, mode };
  } catch (error) {
    throw new UsageError(`${file} cannot be read: ${messageOf(error)}`);
  }
}

/** Never shows the value: a token in the wrong form is still a secret. */
function checkSendable(text: string, where: string): void {
  if (text === '') {
    throw new UsageError(`${where} is empty: run \`ctl daemon token generate\``);
  }
  if (sendable.test(text)) return;
  throw new UsageError(
    `${where} must hold one token of letters, digits and . _ ~ + / - (512 at most); ` +
      'run `ctl daemon token generate` for a good one',
  );
}
