import { accessSync, constants, existsSync, mkdirSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Refusal, messageOf, systemCode } from '@millrace/kit/errors';
import { writePrivateFile } from '@millrace/kit/private-files';
import { systemRandom } from '@millrace/kit/random';
import { hashSecret, newToken } from '@millrace/kit/tokens';
import { newSigningSecret } from '@millrace/kit/webhooks';
import { parseSecrets } from '@millrace/queue/secrets';
import { parse } from 'yaml';
import { lineOf, queueSecretsFile, queueSettingsFile, queueTokensFile } from '../base/places.js';
import { editEntries, indexOfEntry, readEntries } from '../base/credentials.js';
import { secrets as secretsKind, type SecretEntry } from '../queue/secrets.js';
import { tokens as tokensKind } from '../queue/tokens.js';

/*
 * Files that `ctl up` creates on its first run to connect the servers. Every file is readable only
 * by its owner, is created once and never replaced; to get a new one, delete it.
 */

/** Token of the user at the command line. */
export const ownerTokenFile = (dataDir: string) => join(dataDir, 'queue.token');
/** Token with which the daemon completes tasks and shows the queues. */
export const daemonTokenFile = (dataDir: string) => join(dataDir, 'queue-daemon.token');
/** Secret with which the queue signs its callbacks. */
export const secretsFile = queueSecretsFile;
/** Key with which the daemon shows a database that requires one; its owner puts it there. */
export const databaseKeyFile = (dataDir: string) => join(dataDir, 'db.key');
/** Address of the queue while `ctl up` is running. */
export const queueAddressFile = (dataDir: string) => join(dataDir, 'queue.url');

/** Names of our secrets in the secrets file. */
export const signingSecret = 'agents-callback';
export const daemonTokenSecret = 'daemon-token';

export function makeDataDirectory(path: string): void {
  try {
    makeDirectories(path);
    if (!statSync(path).isDirectory()) throw new Error('it is a file, not a directory');
    accessSync(path, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch (error) {
    throw new Refusal(
      'DATA_DIRECTORY_UNUSABLE',
      `cannot store data in ${path}: ${messageOf(error)}. Choose another directory with ` +
        '--data DIR.',
      { cause: error },
    );
  }
}

/** With `recursive` Node never returns below a directory such as /proc that refuses entries. */
function makeDirectories(path: string): void {
  if (existsSync(path)) return;
  makeDirectories(dirname(path));
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    // Another process may have created it meanwhile.
    if (systemCode(error) !== 'EEXIST') throw error;
  }
}

/** The allowlist in these settings can be changed while the queue runs. */
export function makeQueueSettings(dataDir: string): void {
  const file = queueSettingsFile(dataDir);
  if (!existsSync(file))
    writePrivateFile(file, '# Settings of the queue; see `ctl queue serve --help`.\n');
}

/** Ensures that a token of this principal is in its file and that the queue knows it. */
export async function makeToken(
  dataDir: string,
  { file, principal }: { file: string; principal: string },
): Promise<string> {
  const existing = lineOf(file);
  const { id, token } =
    existing === undefined ? newToken(systemRandom) : { id: idOf(existing), token: existing };
  // Write the token first: a token without its hash is added below, but a hash without its token is
  // useless.
  if (existing === undefined) writePrivateFile(file, `${token}\n`);
  const sha256 = hashSecret(token);
  const known =
    lineOf(queueTokensFile(dataDir)) === undefined
      ? []
      : await readEntries(tokensKind, queueTokensFile(dataDir));
  if (known.some((entry) => entry.token_sha256 === sha256)) return token;
  await editEntries(tokensKind, queueTokensFile(dataDir), (tokens, document) => {
    const grants = [{ queue: '*', role: 'admin' }];
    const name = indexOfEntry(tokensKind, tokens, id) < 0 ? id : newToken(systemRandom).id;
    tokens.add(document.createNode({ id: name, principal, token_sha256: sha256, grants }));
  });
  return token;
}

function idOf(token: string): string {
  return /^mr_([0-9a-z]+)_/.exec(token)?.[1] ?? newToken(systemRandom).id;
}

/**
 * Ensures the secrets: the signing secret for tasks of agents, never replaced, and the daemon's own
 * token if it requires one. Returns the signing secret.
 */
export async function makeSecrets(
  dataDir: string,
  agentsQueue: string,
  daemonToken?: string,
): Promise<string> {
  const file = secretsFile(dataDir);
  const known = secretsIn(file);
  const valueOf = (name: string) => known.find((secret) => secret.name === name)?.value;
  const value = valueOf(signingSecret) ?? newSigningSecret(systemRandom);
  const wanted = new Map([[signingSecret, value]]);
  if (daemonToken !== undefined) wanted.set(daemonTokenSecret, daemonToken);
  const names = [signingSecret, daemonTokenSecret];
  const isDone = names.every((name) => valueOf(name) === wanted.get(name));
  if (isDone && !isJson(file)) return value;
  await editEntries(secretsKind, file, (secrets, document) => {
    for (const name of names) {
      const at = indexOfEntry(secretsKind, secrets, name);
      if (at >= 0) secrets.delete(at);
    }
    const ours = Array.from(wanted, ([name, secret]) =>
      document.createNode({ name, value: secret, queues: [agentsQueue] }),
    );
    secrets.items.unshift(...ours);
  });
  return value;
}

/** Earlier versions wrote JSON below a comment. */
function isJson(file: string): boolean {
  return /^(?:#.*\n|\s)*\{/.test(lineOf(file) ?? '');
}

/** Value of a secret in a secrets file, which may belong to the owner. */
export function secretIn(file: string, name: string): string | undefined {
  return secretsIn(file).find((secret) => secret.name === name)?.value;
}

function secretsIn(file: string): SecretEntry[] {
  const text = lineOf(file);
  if (text === undefined) return [];
  // Reports a mistake with its line and without the value.
  parseSecrets(text, file);
  return (parse(text) as { secrets: SecretEntry[] }).secrets;
}
