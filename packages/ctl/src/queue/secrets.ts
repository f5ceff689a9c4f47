import { existsSync } from 'node:fs';
import { Refusal } from '@millrace/kit/errors';
import { systemRandom } from '@millrace/kit/random';
import { newSigningSecret } from '@millrace/kit/webhooks';
import { parseSecrets } from '@millrace/queue/secrets';
import { isMap, visit, type Document } from 'yaml';
import { addEntry, fileOf, lister, removeEntry, type Credentials } from '../base/credentials.js';
import type { Flags, Tools } from '../base/tools.js';
import { queueSecretsFile, queueSettingsFile } from '../base/places.js';

export interface SecretEntry {
  name: string;
  value: string;
  queues: string[];
}

export const secretsHeading =
  '# Secrets that callbacks are signed and sent with; see `ctl queue secret`.\n';

export const secrets: Credentials<SecretEntry> = {
  list: 'secrets',
  noun: 'secret',
  named: 'name',
  place: {
    flag: 'secretsFile',
    setting: 'secrets_file',
    config: async () => (await import('@millrace/queue/config')).queueConfig,
    // That of `ctl up` on this machine.
    fallback: (dataDir) => {
      const file = queueSecretsFile(dataDir);
      return { settings: queueSettingsFile(dataDir), ...(existsSync(file) && { file }) };
    },
  },
  empty: `${secretsHeading}secrets: []\n`,
  check: (text, file) => void parseSecrets(text, file),
  columns: [
    { title: 'Name', value: ({ name }) => name },
    { title: 'Queues', value: ({ queues }) => queues.join(', '), wraps: true },
  ],
  json: ({ name, queues }) => ({ name, queues }),
  prepare(document) {
    if (isMap(document.contents) && document.contents.flow) toBlockStyle(document);
  },
};

/** Earlier versions wrote JSON, to which nobody can append YAML. */
function toBlockStyle(document: Document): void {
  visit(document, {
    Collection: (_, node) => void (node.flow = false),
    Scalar: (_, node) => void (node.type = 'PLAIN'),
  });
}

export type SecretsFileFlags = Flags<'secretsFile config data'>;

export interface SecretAddFlags extends SecretsFileFlags {
  queues?: string[];
}

type Shows = Pick<Tools, 'terminal'>;

export async function addSecret(
  name: string,
  flags: SecretAddFlags,
  { terminal }: Shows,
): Promise<void> {
  const file = await fileOf(secrets, flags, terminal.env);
  const given = await readValue(terminal);
  const value = given ?? newSigningSecret(systemRandom);
  const queues = flags.queues ?? ['*'];
  await addEntry(
    secrets,
    file,
    { name, value, queues },
    {
      code: 'DUPLICATE_NAME',
      advice: 'Remove it first, or choose another name.',
    },
  );
  // A value that was given is known already, and need not be on the screen.
  const shown = given === undefined ? { value } : {};
  terminal.show(
    { name, queues, ...shown, file },
    () =>
      `Added the secret "${name}" for ${queues.join(', ')} to ${file}.\n` +
      (given === undefined
        ? `Give it to the handler, which verifies with it:\n\n  ${value}\n`
        : ''),
  );
}

export const listSecrets = lister(secrets);

export async function removeSecret(
  name: string,
  flags: SecretsFileFlags,
  tools: Shows,
): Promise<void> {
  const file = await fileOf(secrets, flags, tools.terminal.env);
  await removeEntry(secrets, file, name, (message) => new Refusal('UNKNOWN_SECRET', message));
  tools.terminal.show(
    { removed: name, file },
    `Removed the secret "${name}" from ${file}. Queues that name it are held.\n`,
  );
}

/** What comes by stdin; undefined if somebody types, or nothing comes. */
async function readValue({ in: input }: Tools['terminal']): Promise<string | undefined> {
  if (input.isScreen) return undefined;
  const parts: Buffer[] = [];
  for await (const part of input.stream) parts.push(Buffer.from(part));
  const text = Buffer.concat(parts).toString('utf8').trim();
  return text === '' ? undefined : text;
}
