import { readFileSync, statSync } from 'node:fs';
import { messageOf, UsageError } from '@millrace/kit/errors';
import type { Log } from '@millrace/kit/log';
import { hashSecret, sameHash } from '@millrace/kit/tokens';
import type { Caller } from '../../core/caller.js';

export type Access = Caller['access'];

export interface TokenSources {
  /** False under `auth: none`: no token is needed then. */
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

/** The daemon's tokens. A changed token file takes effect with the next request. */
export class Tokens {
  readonly areRequired: boolean;
  readonly #full: WatchedToken;
  readonly #readOnly: WatchedToken;

  constructor({ areRequired, token, readOnly, log }: TokenSources) {
    this.areRequired = areRequired;
    this.#full = new WatchedToken(token, 'token', log);
    this.#readOnly = new WatchedToken(readOnly, 'read_only_token', log);
    const [full, reading] = [this.#full.hash, this.#readOnly.hash];
    if (full !== undefined && reading !== undefined && sameHash(full, reading)) {
      throw new UsageError(
        'the read-only token equals the full token: create another one with ' +
          '`ctl daemon token rotate --read-only`',
      );
    }
  }

  /** Hash of the full-access token. */
  get fullHash(): string | undefined {
    return this.#full.hash;
  }

  /** Where the full-access token comes from; undefined when there is none. */
  get origin(): 'given' | 'file' | undefined {
    return this.#full.origin;
  }

  get readOnlyOrigin(): 'given' | 'file' | undefined {
    return this.#readOnly.origin;
  }

  /** The access that this token grants; undefined for an unknown token. */
  accessOf(sent: string): Access | undefined {
    const hash = hashSecret(sent);
    // Always compare both, so that the response time reveals nothing.
    const isFull = sameHash(hash, this.#full.hash ?? '');
    const isReading = sameHash(hash, this.#readOnly.hash ?? '');
    if (isFull) return 'full';
    return isReading ? 'read_only' : undefined;
  }
}

const sendable = /^[A-Za-z0-9._~+/-]{1,512}={0,4}$/;

class WatchedToken {
  readonly #given: string | undefined;
  readonly #file: string;
  readonly #log: Log;
  #hash: string | undefined;
  #stamp = '';
  #isFresh = false;
  /** Last logged error, so that a repeated error is logged once. */
  #lastError = '';

  constructor({ given, file }: TokenSource, name: string, log: Log) {
    if (given !== undefined) checkSendable(given, name);
    this.#given = given === undefined ? undefined : hashSecret(given);
    this.#file = file;
    this.#log = log;
    if (given === undefined) this.#read();
  }

  get hash(): string | undefined {
    if (this.#given !== undefined) return this.#given;
    // Requests in one turn of the event loop share one stat of the file.
    if (this.#isFresh) return this.#hash;
    this.#isFresh = true;
    setImmediate(() => (this.#isFresh = false));
    try {
      this.#read();
    } catch (error) {
      // An invalid file must not disable authentication: the last valid token stays in force.
      const reason = messageOf(error);
      if (reason !== this.#lastError) {
        this.#log.error({ file: this.#file, reason }, 'failed to reload token');
      }
      this.#lastError = reason;
    }
    return this.#hash;
  }

  get origin(): 'given' | 'file' | undefined {
    if (this.#given !== undefined) return 'given';
    return this.hash === undefined ? undefined : 'file';
  }

  #read(): void {
    const found = statToken(this.#file);
    if (found.stamp === this.#stamp) return;
    this.#stamp = found.stamp;
    if (found.mode === undefined) {
      if (this.#hash === undefined) return;
      throw new UsageError('the file was removed; its last token stays valid');
    }
    const text = readFileSync(this.#file, 'utf8').trim();
    checkSendable(text, this.#file);
    this.#hash = hashSecret(text);
    if ((found.mode & 0o077) !== 0) {
      this.#log.warn({ file: this.#file }, 'token file readable by others');
    }
  }
}

function statToken(file: string): { stamp: string; mode: number | undefined } {
  try {
    const found = statSync(file, { throwIfNoEntry: false });
    if (!found) return { stamp: 'absent', mode: undefined };
    const { ino, size, mtimeMs, ctimeMs, mode } = found;
    return { stamp: `${ino} ${size} ${mtimeMs} ${ctimeMs}`, mode };
  } catch (error) {
    throw new UsageError(`${file} cannot be read: ${messageOf(error)}`);
  }
}

/** Never includes the value in errors: a malformed token is still a secret. */
function checkSendable(text: string, where: string): void {
  if (text === '') {
    throw new UsageError(`${where} is empty: run \`ctl daemon token generate\``);
  }
  if (sendable.test(text)) return;
  throw new UsageError(
    `${where} must hold one token of at most 512 letters, digits and . _ ~ + / - characters; ` +
      'create one with `ctl daemon token generate`',
  );
}
