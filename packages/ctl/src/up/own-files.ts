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
 * What `ctl up` makes on its first run, so that the parts know one another. Every file is for its
 * owner alone, is made once and stays; to have one made anew, remove it.
 */

/** The tokens that the queue knows, by their hashes. */
export const tokensFile = (dataDir: string) => join(dataDir, 'queue-tokens.yaml');
/** The token of the person at the command line. */
export const ownerTokenFile = (dataDir: string) => join(dataDir, 'queue.token');
/** The token by which the daemon settles tasks and shows the queues. */
export const daemonTokenFile = (dataDir: string) => join(dataDir, 'queue-daemon.token');
/** What the queue signs its callbacks with. */
export const secretsFile = queueSecretsFile;
/** A key by which the daemon shows a database that asks for one; its owner puts it there. */
export const databaseKeyFile = (dataDir: string) => join(dataDir, 'db.key');
/** Where the queue listens, while `ctl up` runs. */
export const queueAddressFile = (dataDir: string) => join(dataDir, 'queue.url');

/** The names of our secrets in the secrets file. */
export const signingSecret = 'agents-callback';
export const daemonTokenSecret = 'daemon-token';

export function makeDataDirectory(path: string): void {
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 });
  } catch (error) {
    throw new Refusal(
      'DATA_DIRECTORY_UNUSABLE',
      `cannot keep data in ${path}: ${messageOf(error)}. Choose another with --data DIR.`,
      { cause: error },
    );
  }
}

/** Makes sure that a token of this principal lies in its file and that the queue knows it. */
export async function makeToken(
  dataDir: string,
  { file, principal }: { file: string; principal: string },
): Promise<string> {
  const kept = lineOf(file);
  const { id, token } =
    kept === undefined ? newToken(systemRandom) : { id: idOf(kept), token: kept };
  // The clear text comes first: a token that nobody knows of is added below, a hash without its
  // token is of no use to anybody.
  if (kept === undefined) writePrivate(file, `${token}\n`);
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
 * Makes sure of the secrets: the one that tasks for agents are signed with, kept as it is once
 * made, and the daemon's own token if it asks for one. Answers the signing secret.
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
  '# Secrets that the queue sends and signs with, written by `ctl up`; yours may stand beside.\n';

interface Secret {
  readonly name: string;
  readonly value: string;
  readonly queues: readonly string[];
}

/** The value of a secret in a secrets file, which may be somebody else's. */
export function secretIn(file: string, name: string): string | undefined {
  return secretsIn(file).find((secret) => secret.name === name)?.value;
}

function secretsIn(file: string): Secret[] {
  const text = lineOf(file);
  if (text === undefined) return [];
  try {
    return (parse(text) as { secrets?: Secret[] } | null)?.secrets ?? [];
  } catch (error) {
    // The text of the error would show the line, which holds a secret.
    throw new UsageError(`${file} is not YAML: mend it, or remove it to have it made anew.`, {
      cause: error,
    });
  }
}

/** The file is either the old one or the new one, never half. */
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
