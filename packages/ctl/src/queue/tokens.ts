import { existsSync } from 'node:fs';
import { userInfo } from 'node:os';
import { Refusal, UsageError } from '@millrace/kit/errors';
import { systemRandom } from '@millrace/kit/random';
import { newToken, parseTokens, tokenEntryYaml, type TokenEntry } from '@millrace/kit/tokens';
import { momentAhead } from '../base/arguments.js';
import {
  addEntry,
  checkedId,
  expiry,
  fileOf,
  lister,
  removeEntry,
  type Credentials,
} from '../base/credentials.js';
import { queueSettingsFile, queueTokensFile } from '../base/places.js';
import type { Flags, Tools } from '../base/tools.js';

/** In ascending order; a submitter cannot claim and a worker cannot submit. */
const roleLevels = [['submitter', 'worker'], 'operator', 'admin'] as const;
const roles = roleLevels.flat();

export const tokens: Credentials<TokenEntry> = {
  list: 'tokens',
  noun: 'token',
  named: 'id',
  place: {
    flag: 'tokensFile',
    setting: 'tokens_file',
    config: async () => (await import('@millrace/queue/config')).queueConfig,
    // That of `ctl up` on this machine.
    fallback: (dataDir) => {
      const file = queueTokensFile(dataDir);
      return { settings: queueSettingsFile(dataDir), ...(existsSync(file) && { file }) };
    },
  },
  empty: '# Bearer tokens of the queue; see `ctl queue token`.\ntokens: []\n',
  check: (text, file) => void parseTokens(text, file, roleLevels),
  columns: [
    { title: 'ID', value: ({ id }) => id },
    { title: 'Principal', value: ({ principal }) => principal },
    { title: 'Grants', value: ({ grants }) => grants.map(grantText).join(', '), wraps: true },
    { title: 'Expires', value: ({ expires_at: at }) => expiry(at) },
  ],
  json: ({ id, principal, grants, expires_at: at }) => ({
    id,
    principal,
    grants,
    expires_at: at ?? null,
  }),
};

export type TokensFileFlags = Flags<'tokensFile config data'>;

export type TokenFlags = TokensFileFlags & Flags<'principal id expires'> & { grant?: string[] };

type Shows = Pick<Tools, 'terminal'>;
type Grant = TokenEntry['grants'][number];

export async function newQueueToken(flags: TokenFlags, { terminal }: Shows): Promise<void> {
  const grants = (flags.grant ?? []).map(parseGrant);
  const expiresAt = momentAhead(flags.expires, '--expires');
  const principal = (flags.principal ?? userName()).trim();
  if (principal === '' || principal.length > 256) {
    throw new UsageError('--principal must be a name of 1 to 256 characters.');
  }
  const made = newToken(systemRandom);
  const id = checkedId(flags.id ?? made.id);
  const entry: TokenEntry = { id, principal, token_sha256: made.sha256, grants };
  if (expiresAt !== undefined) entry.expires_at = expiresAt;
  const isForFile = [flags.tokensFile, flags.config, flags.data].some((each) => each !== undefined);
  if (isForFile && grants.length === 0) {
    throw new UsageError("Give the grants of the token: --grant 'payments.*:submitter'.");
  }
  const file = isForFile ? await fileOf(tokens, flags, terminal.env) : undefined;
  if (file !== undefined) await addEntry(tokens, file, entry);
  const can = grants.map(grantText).join(', ') || 'no grants yet, so add some';
  const may = `${can}${expiresAt ? ` until ${expiresAt}` : ''}`;
  terminal.show(
    { ...entry, expires_at: expiresAt ?? null, token: made.token, file: file ?? null },
    () =>
      `The token "${id}" stands for ${principal}: ${may}.\nIt is shown only once:\n\n  ` +
      `${made.token}\n\n` +
      (file === undefined
        ? `Put its entry under \`tokens:\` in the tokens file of the server:\n\n${tokenEntryYaml(entry)}\n\n`
        : `Added its entry to ${file}.\n`) +
      'Send it as "Authorization: Bearer ...", or set MILLRACE_QUEUE_TOKEN for commands.\n',
  );
}

export const listTokens = lister(tokens);

export async function revokeToken(id: string, flags: TokensFileFlags, tools: Shows): Promise<void> {
  const file = await fileOf(tokens, flags, tools.terminal.env);
  await removeEntry(tokens, file, id, (message) =>
    // Not shown if it is a whole token.
    id.startsWith('mr_')
      ? new UsageError(
          'Give the id of the token, which is the part between mr_ and the next underscore.',
        )
      : new Refusal('UNKNOWN_TOKEN', message),
  );
  tools.terminal.show({ revoked: id, file }, `Removed the token "${id}" from ${file}.\n`);
}

function userName(): string {
  try {
    return userInfo().username;
  } catch {
    throw new UsageError('Name the principal of the token: --principal NAME.');
  }
}

function parseGrant(text: string): Grant {
  const match = /^([a-z0-9*][a-z0-9._*-]{0,127}):([a-z]+)$/.exec(text);
  const role = roles.find((known) => known === match?.[2]);
  if (match && role) return { queue: match[1]!, role };
  throw new UsageError(
    `--grant must be queues:role such as payments.*:operator, not "${text}"; ` +
      `roles are ${roles.join(', ')}.`,
  );
}

function grantText({ queue, role }: Grant): string {
  return `${role} of ${queue}`;
}
