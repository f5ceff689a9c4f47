import { closeSync, fsyncSync, mkdirSync, openSync, renameSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { Refusal, UsageError, messageOf } from '@millrace/kit/errors';
import { systemRandom } from '@millrace/kit/random';
import { hashSecret, newToken } from '@millrace/kit/tokens';
import { newSigningSecret } from '@millrace/kit/webhooks';
import { parse } from 'yaml';
import { lineOf, queueSecretsFile } from '../daemon/places.js';
import { editTokens, indexOfToken, readTokens } from '../queue/tokens-file.js';

/*
 * Files that `ctl up` creates on its first run to connect the servers. Every file is readable only
 * by its owner, is created once and never replaced; to get a new one, delete it.
 */

/** Token hashes of the queue. */
export const tokensFile = (dataDir: string) => join(dataDir, 'queue-tokens.yaml');
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
    mkdirSync(path, { recursive: true, mode: 0o700 });
  } catch (error) {
    throw new Refusal(
      'DATA_DIRECTORY_UNUSABLE',
      `cannot store data in ${path}: ${messageOf(error)}. Choose another directory with ` +
        '--data DIR.',
      { cause: error },
    );
  }
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
  if (existing === undefined) writePrivate(file, `${token}\n`);
  const sha256 = hashSecret(token);
  const known =
    lineOf(tokensFile(dataDir)) === undefined ? [] : await readTokens(tokensFile(dataDir));
  if (known.some((entry) => entry.token_sha256 === sha256)) return token;
  await editTokens(tokensFile(dataDir), (tokens, document) => {
    const grants = [{ queue: '*', role: 'admin' }];
    const name = indexOfToken(tokens, id) < 0 ? id : newToken(systemRandom).id;
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
export function makeSecrets(dataDir: string, agentsQueue: string, daemonToken?: string): string {
  const file = secretsFile(dataDir);
  const queues = [agentsQueue];
  const value = secretIn(file, signingSecret) ?? newSigningSecret(systemRandom);
  const token = daemonToken === undefined ? [] : [{ name: daemonTokenSecret, value: daemonToken }];
  const ours = [{ name: signingSecret, value }, ...token].map((secret) => ({ ...secret, queues }));
  const others = secretsIn(file).filter(
    ({ name }) => name !== signingSecret && name !== daemonTokenSecret,
  );
  const wanted = `${heading}${JSON.stringify({ secrets: [...ours, ...others] }, null, 2)}\n`;
  if (lineOf(file) !== wanted.trim()) writePrivate(file, wanted);
  return value;
}

const heading =
  '# Secrets that the queue sends and signs with, written by `ctl up`; you can add yours.\n';

interface Secret {
  readonly name: string;
  readonly value: string;
  readonly queues: readonly string[];
}

/** Value of a secret in a secrets file, which may belong to the owner. */
export function secretIn(file: string, name: string): string | undefined {
  return secretsIn(file).find((secret) => secret.name === name)?.value;
}

function secretsIn(file: string): Secret[] {
  const text = lineOf(file);
  if (text === undefined) return [];
  try {
    return (parse(text) as { secrets?: Secret[] } | null)?.secrets ?? [];
  } catch (error) {
    // The message of the error would show the line, which contains a secret.
    throw new UsageError(`${file} is not YAML. Fix it, or delete it to get a new one.`, {
      cause: error,
    });
  }
}

/** Writes the file atomically. */
export function writePrivate(file: string, text: string): void {
  const fresh = `${file}.new`;
  const handle = openSync(fresh, 'w', 0o600);
  try {
    writeSync(handle, text);
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
  renameSync(fresh, file);
}
