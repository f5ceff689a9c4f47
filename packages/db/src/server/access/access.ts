import type { Metrics } from '@millrace/kit/metrics';
import { watchFile, type WatchedFile } from '@millrace/kit/tokens';
import type { World } from '@millrace/kit/world';
import type { DatabaseSettings } from '../base/config.js';
import { parseKeys, type KeySet } from './keys.js';
import { createOwnerKey, ownerKeyFile, parseOwnerKey, readOwnerKey } from './owner-key.js';

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
