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
 * Makes sure that there is a token wherever one is needed: given by the settings, or in the token
 * file, which the first start makes. Refuses to open a daemon to other machines without one that
 * its owner made.
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

/** For its owner alone. */
function makeTokenFile(file: string, random: Random): void {
  fs.mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  const { id, token } = newToken(random);
  const fresh = `${file}.${id}`;
  const handle = fs.openSync(fresh, 'wx', 0o600);
  try {
    fs.writeSync(handle, `${token}\n`);
    fs.fsyncSync(handle);
    // Unlike a rename, a link leaves alone what another process made meanwhile.
    fs.linkSync(fresh, file);
  } catch (error) {
    if (systemCode(error) !== 'EEXIST') throw error;
  } finally {
    fs.closeSync(handle);
    fs.rmSync(fresh, { force: true });
  }
}

/** Version 0.1 kept the token in `token`: whoever uses it goes on doing so. */
function adoptFormerFile(file: string): boolean {
  try {
    fs.renameSync(join(dirname(file), 'token'), file);
    return true;
  } catch (error) {
    if (systemCode(error) !== 'ENOENT') throw error;
    return false;
  }
}
