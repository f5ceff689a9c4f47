import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { Refusal, UsageError } from '@millrace/kit/errors';
import { systemRandom } from '@millrace/kit/random';
import { newSigningSecret } from '@millrace/kit/webhooks';
import { dataDirectory } from '../base/data-directory.js';
import { queueSecretsFile, queueSettingsFile } from '../daemon/places.js';
import { renderTable } from '../render/table.js';
import type { Tools } from '../base/tools.js';
import { editSecrets, indexOfSecret, readSecrets } from './secrets-file.js';

export interface SecretsFileFlags {
  secretsFile?: string;
  config?: string;
}

export interface SecretAddFlags extends SecretsFileFlags {
  queues?: string[];
}

type Shows = Pick<Tools, 'terminal'>;

export async function addSecret(
  name: string,
  flags: SecretAddFlags,
  { terminal }: Shows,
): Promise<void> {
  const file = await secretsFileOf(flags, { terminal });
  const given = await readValue(terminal);
  const value = given ?? newSigningSecret(systemRandom);
  const queues = flags.queues ?? ['*'];
  await editSecrets(file, (secrets, document) => {
    if (indexOfSecret(secrets, name) >= 0) {
      throw new Refusal(
        'DUPLICATE_NAME',
        `${file} already has a secret "${name}". Remove it first, or choose another name.`,
      );
    }
    secrets.add(document.createNode({ name, value, queues }));
  });
  const { out, json } = terminal;
  // A value that was given is known already, and need not be on the screen.
  const shown = given === undefined ? { value } : {};
  if (json) {
    out.write(`${JSON.stringify({ name, queues, ...shown, file }, null, 2)}\n`);
    return;
  }
  out.write(
    `Added the secret "${name}" for ${queues.join(', ')} to ${file}.\n` +
      (given === undefined
        ? `Give it to the handler, which verifies with it:\n\n  ${value}\n`
        : ''),
  );
}

export async function listSecrets(flags: SecretsFileFlags, { terminal }: Shows): Promise<void> {
  const file = await secretsFileOf(flags, { terminal });
  const secrets = (await readSecrets(file)).map(({ name, queues }) => ({ name, queues }));
  const { out, json } = terminal;
  if (json) {
    out.write(`${JSON.stringify({ secrets }, null, 2)}\n`);
    return;
  }
  const columns = [{ title: 'NAME' }, { title: 'QUEUES', overflow: 'wrap' as const }];
  const rows = secrets.map(({ name, queues }) => [name, queues.join(', ')]);
  out.write(rows.length === 0 ? `${file} has no secrets.\n` : renderTable(columns, rows, out));
}

export async function removeSecret(
  name: string,
  flags: SecretsFileFlags,
  { terminal }: Shows,
): Promise<void> {
  const file = await secretsFileOf(flags, { terminal });
  // Editing would create a missing file.
  await readSecrets(file);
  await editSecrets(file, (secrets) => {
    const at = indexOfSecret(secrets, name);
    if (at < 0) throw new Refusal('UNKNOWN_SECRET', `${file} has no secret "${name}".`);
    secrets.delete(at);
  });
  const { out, json } = terminal;
  out.write(
    json
      ? `${JSON.stringify({ removed: name, file }, null, 2)}\n`
      : `Removed the secret "${name}" from ${file}. Queues that name it are held.\n`,
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

/** `--secrets-file`, else that of the config, else that of `ctl up` on this machine. */
async function secretsFileOf(flags: SecretsFileFlags, { terminal }: Shows): Promise<string> {
  if (flags.secretsFile !== undefined) return resolve(flags.secretsFile);
  const dataDir = dataDirectory(undefined, terminal.env);
  const [{ queueConfig }, { loadConfig }] = await Promise.all([
    import('@millrace/queue/config'),
    import('@millrace/kit/config'),
  ]);
  const { values } = loadConfig(queueConfig, {
    environment: terminal.env,
    flags: flags.config === undefined ? {} : { config: flags.config },
    defaultFile: queueSettingsFile(dataDir),
  });
  if (values.secrets_file !== undefined) return values.secrets_file;
  const ofUp = queueSecretsFile(dataDir);
  if (flags.config === undefined && existsSync(ofUp)) return ofUp;
  throw new UsageError(
    'Name the secrets file: --secrets-file FILE, or --config with its secrets_file.',
  );
}
