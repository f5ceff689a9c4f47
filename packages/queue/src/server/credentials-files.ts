import { dataDirectory } from '@millrace/kit/config';
import { ifThere, UsageError } from '@millrace/kit/errors';
import type { Metrics } from '@millrace/kit/metrics';
import { type Allowlist, parseAllowlist } from '@millrace/kit/outbound';
import { type TokenSet, type WatchedFile, watchFile, watchTokens } from '@millrace/kit/tokens';
import { isUlid } from '@millrace/kit/ulid';
import type { World } from '@millrace/kit/world';
import {
  closeSync,
  existsSync,
  fsyncSync,
  openSync,
  readFileSync,
  renameSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { type Role, roleLevels } from '../operations/base/context.js';
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

export interface ServerIdentity {
  /** Identifies this server in leases and attempts. */
  nodeId: string;
  /** Signs cursors, so that they stay valid after a restart and cannot be forged. */
  cursorKey: Uint8Array;
}

const keyLength = 32;

/** Files of the server itself, in its own directory beside the store. */
export function identityFiles(data: string, { clock, random }: World): ServerIdentity {
  const directory = dataDirectory(join(data, 'queue-server'));
  const nodeId = persistentText({
    file: join(directory, 'NODE'),
    what: 'the id of a server',
    isGood: isUlid,
    make: () => random.ulid(clock.now()),
  });
  const key = persistentText({
    file: join(directory, 'cursor.key'),
    what: `the ${keyLength} bytes, in hex, that cursors are signed with`,
    isGood: (text) => /^[0-9a-f]{64}$/.test(text),
    make: () => Buffer.from(random.bytes(keyLength)).toString('hex'),
  });
  return { nodeId, cursorKey: Buffer.from(key, 'hex') };
}

export interface PersistentTextOptions {
  file: string;
  /** Description of the content for messages: "the id of this server". */
  what: string;
  isGood: (text: string) => boolean;
  make: () => string;
}

/** Reads a text from a file; creates it on the first start. */
export function persistentText({ file, what, isGood, make }: PersistentTextOptions): string {
  const known = ifThere(() => readFileSync(file, 'utf8'))?.trim();
  if (known !== undefined) {
    if (isGood(known)) return known;
    throw new UsageError(`${file} does not hold ${what}; delete it to create a new one.`);
  }
  const text = make();
  const fresh = `${file}.new`;
  const handle = openSync(fresh, 'w', 0o600);
  try {
    writeSync(handle, `${text}\n`);
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
  renameSync(fresh, file);
  return text;
}

/** The config file of the server, and how to read the settings again. */
export interface SettingsFile {
  file: string;
  read: () => QueueSettings;
}

export interface FollowedAllowlist extends Allowlist {
  close(): void;
}

/** The allowlist of the settings; calls `onChange` after the config file has changed it. */
export function followAllowlist(
  settings: QueueSettings,
  source: SettingsFile | undefined,
  { clock, log }: World,
  { metrics, onChange }: { metrics: Metrics; onChange: () => void },
): FollowedAllowlist {
  if (!source) return { ...allowlistOf(settings), close: () => undefined };
  let isOpen = false;
  const watched = watchFile({
    file: source.file,
    name: 'allowlist',
    isPrivate: false,
    parse: () => {
      const allowlist = allowlistOf(isOpen ? source.read() : settings);
      // The new list is in place only after this returns.
      if (isOpen) clock.after(0, onChange);
      isOpen = true;
      return allowlist;
    },
    clock,
    log,
    metrics,
  });
  return {
    match: (url) => watched.current.match(url),
    matchTarget: (target) => watched.current.matchTarget(target),
    close: () => watched.close(),
  };
}

function allowlistOf(settings: QueueSettings): Allowlist {
  const { callback_allowlist: list, extra_callback_allowlist: extra } = settings;
  return parseAllowlist([...list, ...extra]);
}
