import * as fs from 'node:fs';
import { readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { messageOf, UsageError, systemCode } from '@millrace/kit/errors';
import type { Log } from '@millrace/kit/log';
import { hashSecret, sameHash, newToken } from '@millrace/kit/tokens';
import { isLoopback, type LoadedConfig } from '@millrace/kit/config';
import type { Random } from '@millrace/kit/random';
import { makePrivateDirectory } from '@millrace/kit/private-files';
import type { Caller } from '../../core/api.js';
import { tokenFile } from '../../storage/data-files.js';

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
  #hash: string | undefined;
  #stamp = '';
  #isFresh = false;
  /** Last logged error, so that a repeated error is logged once. */
  #lastError = '';

  constructor(
    { given, file }: TokenSource,
    name: string,
    private readonly log: Log,
  ) {
    if (given !== undefined) checkSendable(given, name);
    this.#given = given === undefined ? undefined : hashSecret(given);
    this.#file = file;
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
        this.log.error({ file: this.#file, reason }, 'failed to reload token');
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
      this.log.warn({ file: this.#file }, 'token file readable by others');
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

/** The settings that decide who needs a token. */
interface AccessSettings {
  listen: { host: string };
  auth: 'token' | 'none';
  token?: string | undefined;
}

/**
 * Ensures that a token exists where one is required: from the settings, or in the token file,
 * which the first start creates. Refuses to listen beyond loopback without a token that the
 * operator created.
 */
export function ensureToken(
  loaded: Pick<LoadedConfig<AccessSettings>, 'values' | 'mistake'>,
  dataDir: string,
  random: Random,
): void {
  const { listen, auth, token } = loaded.values;
  const isOpen = !isLoopback(listen.host);
  const reach = `is ${listen.host}, which others can reach`;
  if (auth === 'none') {
    if (!isOpen) return;
    const advice = 'remove auth: none and --no-auth, or listen at 127.0.0.1';
    throw loaded.mistake('listen', `${reach}, and auth is none: ${advice}`);
  }
  const file = tokenFile(dataDir);
  if (token !== undefined || fs.existsSync(file) || adoptFormerFile(file)) return;
  if (isOpen) {
    const advice = 'run `ctl daemon token generate` first, or listen at 127.0.0.1';
    throw loaded.mistake('listen', `${reach}, and there is no token: ${advice}`);
  }
  makeTokenFile(file, random);
}

/** Creates the file with mode 0600. */
function makeTokenFile(file: string, random: Random): void {
  makePrivateDirectory(dirname(file));
  const { id, token } = newToken(random);
  const fresh = `${file}.${id}`;
  const handle = fs.openSync(fresh, 'wx', 0o600);
  try {
    fs.writeSync(handle, `${token}\n`);
    fs.fsyncSync(handle);
    // Unlike a rename, a link does not replace a file that another process created meanwhile.
    fs.linkSync(fresh, file);
  } catch (error) {
    if (systemCode(error) !== 'EEXIST') throw error;
  } finally {
    fs.closeSync(handle);
    fs.rmSync(fresh, { force: true });
  }
}

/** Version 0.1 stored the token in the file `token`; that token stays valid. */
function adoptFormerFile(file: string): boolean {
  try {
    fs.renameSync(join(dirname(file), 'token'), file);
    return true;
  } catch (error) {
    if (systemCode(error) !== 'ENOENT') throw error;
    return false;
  }
}
