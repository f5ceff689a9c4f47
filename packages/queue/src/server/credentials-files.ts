import { existsSync } from 'node:fs';
import { UsageError } from '@millrace/kit/errors';
import type { Metrics } from '@millrace/kit/metrics';
import { watchFile, watchTokens, type TokenSet, type WatchedFile } from '@millrace/kit/tokens';
import type { World } from '@millrace/kit/world';
import { roleLevels, type Role } from '../operations/base/principal.js';
import type { QueueSettings } from './config.js';
import { noSecrets, parseSecrets, type SecretSet } from './secrets.js';

const newTokenHint = '`ctl queue token new` makes a token and prints the entry for this file';

/** The tokens of `tokens_file`, reloaded when it changes. */
export function openTokens(
  { tokens_file: file }: QueueSettings,
  { clock, log }: World,
  metrics: Metrics,
): WatchedFile<TokenSet<Role>> {
  if (file === undefined) {
    throw new UsageError(
      `tokens_file is not set, so nobody could call this server; ${newTokenHint}`,
    );
  }
  if (!existsSync(file)) {
    throw new UsageError(
      `${file}: no such file, so nobody could call this server; ${newTokenHint}`,
    );
  }
  const tokens = watchTokens({ file, roles: roleLevels, clock, log, metrics });
  if (tokens.current.size === 0) log.warn({ file }, `the tokens file is empty; ${newTokenHint}`);
  return tokens;
}

/** The secrets of `secrets_file`; calls `onChange` after a reload. */
export function openSecrets(
  { secrets_file: file }: QueueSettings,
  { clock, log }: World,
  metrics: Metrics,
  onChange: () => void,
): Pick<WatchedFile<SecretSet>, 'current' | 'lastError' | 'close'> {
  if (file === undefined) {
    return { current: noSecrets, lastError: undefined, close: () => undefined };
  }
  let isOpen = false;
  return watchFile({
    file,
    name: 'secrets',
    parse: (text, name) => {
      const secrets = parseSecrets(text, name);
      // The new secrets are in place only after this returns.
      if (isOpen) clock.after(0, onChange);
      isOpen = true;
      return secrets;
    },
    clock,
    log,
    metrics,
  });
}
