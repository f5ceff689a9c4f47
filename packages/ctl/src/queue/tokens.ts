import { userInfo } from 'node:os';
import { resolve } from 'node:path';
import { systemClock } from '@millrace/kit/clock';
import { Refusal, UsageError } from '@millrace/kit/errors';
import { systemRandom } from '@millrace/kit/random';
import { newToken, tokenEntryYaml, type TokenEntry } from '@millrace/kit/tokens';
import { parseTimestamp } from '@millrace/kit/units';
import type { Tools } from '../base/tools.js';
import { renderTable } from '../render/table.js';
import { momentAhead } from '../base/arguments.js';
import { editTokens, indexOfToken, readTokens, roles } from './tokens-file.js';

export interface TokensFileFlags {
  tokensFile?: string;
  config?: string;
}

export interface TokenFlags extends TokensFileFlags {
  principal?: string;
  grant?: string[];
  id?: string;
  expires?: string;
}

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
  const id = flags.id ?? made.id;
  if (!/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(id)) {
    throw new UsageError('--id must be 1 to 64 letters, digits, dots, dashes or underscores.');
  }
  const entry: TokenEntry = { id, principal, token_sha256: made.sha256, grants };
  if (expiresAt !== undefined) entry.expires_at = expiresAt;
  const isForFile = flags.tokensFile !== undefined || flags.config !== undefined;
  if (isForFile && grants.length === 0) {
    throw new UsageError("Give the grants of the token: --grant 'payments.*:submitter'.");
  }
  const file = isForFile ? await tokensFileOf(flags, { terminal }) : undefined;
  if (file !== undefined) await addEntry(file, entry);
  const { out, json } = terminal;
  if (json) {
    const shown = { ...entry, expires_at: expiresAt ?? null, token: made.token };
    out.write(`${JSON.stringify({ ...shown, file: file ?? null }, null, 2)}\n`);
    return;
  }
  const can = grants.map(grantText).join(', ') || 'no grants yet, so add some';
  const may = `${can}${expiresAt ? ` until ${expiresAt}` : ''}`;
  out.write(
    `The token "${id}" stands for ${principal}: ${may}.\nIt is shown only once:\n\n  ` +
      `${made.token}\n\n` +
      (file === undefined
        ? `Put its entry under \`tokens:\` in the tokens file of the server:\n\n${tokenEntryYaml(entry)}\n\n`
        : `Added its entry to ${file}.\n`) +
      'Send it as "Authorization: Bearer ...", or set MILLRACE_QUEUE_TOKEN for commands.\n',
  );
}

async function addEntry(file: string, entry: TokenEntry): Promise<void> {
  await editTokens(file, (tokens, document) => {
    if (indexOfToken(tokens, entry.id) >= 0) {
      throw new Refusal(
        'DUPLICATE_ID',
        `${file} already has a token "${entry.id}". Choose another --id.`,
      );
    }
    tokens.add(document.createNode(entry));
  });
}

export async function listTokens(flags: TokensFileFlags, { terminal }: Shows): Promise<void> {
  const file = await tokensFileOf(flags, { terminal });
  const tokens = await readTokens(file);
  const { out, json } = terminal;
  if (json) {
    const shown = tokens.map(({ id, principal, grants, expires_at: at }) => ({
      id,
      principal,
      grants,
      expires_at: at ?? null,
    }));
    out.write(`${JSON.stringify({ tokens: shown }, null, 2)}\n`);
    return;
  }
  const now = systemClock.now();
  const columns = [
    { title: 'ID' },
    { title: 'PRINCIPAL' },
    { title: 'GRANTS', overflow: 'wrap' as const },
    { title: 'EXPIRES' },
  ];
  const rows = tokens.map(({ id, principal, grants, expires_at: at }) => [
    id,
    principal,
    grants.map(grantText).join(', '),
    at === undefined
      ? 'never'
      : parseTimestamp(at) <= now
        ? { text: `expired ${at}`, tone: 'bad' as const }
        : at,
  ]);
  out.write(tokens.length === 0 ? `${file} has no tokens.\n` : renderTable(columns, rows, out));
}

export async function revokeToken(
  id: string,
  flags: TokensFileFlags,
  { terminal }: Shows,
): Promise<void> {
  const file = await tokensFileOf(flags, { terminal });
  // Editing would create a missing file.
  await readTokens(file);
  await editTokens(file, (tokens) => {
    const at = indexOfToken(tokens, id);
    // Not shown if it is a whole token.
    if (at < 0 && id.startsWith('mr_')) {
      throw new UsageError(
        'Give the id of the token, which is the part between mr_ and the next underscore.',
      );
    }
    if (at < 0) throw new Refusal('UNKNOWN_TOKEN', `${file} has no token "${id}".`);
    tokens.delete(at);
  });
  const { out, json } = terminal;
  out.write(
    json
      ? `${JSON.stringify({ revoked: id, file }, null, 2)}\n`
      : `Removed the token "${id}" from ${file}.\n`,
  );
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

async function tokensFileOf(flags: TokensFileFlags, { terminal }: Shows): Promise<string> {
  if (flags.tokensFile !== undefined) return resolve(flags.tokensFile);
  const [{ queueConfig }, { loadConfig }] = await Promise.all([
    import('@millrace/queue/config'),
    import('@millrace/kit/config'),
  ]);
  const { values } = loadConfig(queueConfig, {
    environment: terminal.env,
    flags: flags.config === undefined ? {} : { config: flags.config },
  });
  if (values.tokens_file !== undefined) return values.tokens_file;
  throw new UsageError(
    'Name the tokens file: --tokens-file FILE, or --config with its tokens_file.',
  );
}
