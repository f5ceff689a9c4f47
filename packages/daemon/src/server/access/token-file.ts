import * as fs from 'node:fs';
import { dirname, join } from 'node:path';
import { isLoopback, type LoadedConfig } from '@millrace/kit/config';
import { systemCode } from '@millrace/kit/errors';
import type { Random } from '@millrace/kit/random';
import { newToken } from '@millrace/kit/tokens';
import { tokenFile } from '../../storage/data-files.js';

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
  fs.mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
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
