import { Refusal } from '@millrace/kit/errors';
import { asTyped } from '../base/command-name.js';
import type { Flags, Tools } from '../base/tools.js';
import { loadDaemonSettings } from './local-settings.js';
import { lineOf, queueSecretsFile, readOnlyTokenFile, tokenFile } from '../base/places.js';
import { randomUUID } from 'node:crypto';
import { mkdir, open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { systemRandom } from '@millrace/kit/random';
import { newToken } from '@millrace/kit/tokens';

export type TokenFlags = Flags<'data config', 'readOnly'>;

type Shows = Pick<Tools, 'terminal'>;

export async function showToken(flags: TokenFlags, tools: Shows): Promise<void> {
  const place = placeOf(flags, tools);
  const token = place.given ?? lineOf(place.file);
  if (token === undefined) throw missing(place, 'Create one with');
  const { out, err, json } = tools.terminal;
  const source = place.given === undefined ? place.file : place.origin;
  if (json) {
    const shown = { token, read_only: place.readOnly, source };
    out.write(`${JSON.stringify(shown, null, 2)}\n`);
    return;
  }
  out.write(`${token}\n`);
  // On stderr: a script that reads stdout wants the token alone.
  if (out.isScreen) err.write(err.paint('dim', `from ${source}\n`));
}

export async function generateToken(flags: TokenFlags, tools: Shows): Promise<void> {
  const place = placeOf(flags, tools);
  if (lineOf(place.file) !== undefined) {
    throw new Refusal(
      'ALREADY_EXISTS',
      `${place.file} already contains a token. Show it with \`${command('show', place)}\`, ` +
        `or replace it with \`${command('rotate', place)}\`.`,
    );
  }
  await replace(place, tools);
}

export async function rotateToken(flags: TokenFlags, tools: Shows): Promise<void> {
  const place = placeOf(flags, tools);
  const old = lineOf(place.file);
  if (old === undefined) throw missing(place, 'Create one with');
  const token = await replace(place, tools);
  if (await replaceInSecrets(place.queueSecrets, old, token)) {
    tools.terminal.err.write(asTyped('The queue of `ctl up` sends the new token from now on.\n'));
  }
}

interface Place {
  readonly readOnly: boolean;
  readonly file: string;
  readonly queueSecrets: string;
  /** A token from the environment or the settings, which overrides the file. */
  readonly given: string | undefined;
  readonly origin: string;
}

function placeOf({ readOnly = false, data, config }: TokenFlags, { terminal }: Shows): Place {
  const { values, dataDir, sourceOf } = loadDaemonSettings({ data, config }, terminal.env);
  const key = readOnly ? 'read_only_token' : 'token';
  const source = sourceOf(key);
  return {
    readOnly,
    file: (readOnly ? readOnlyTokenFile : tokenFile)(dataDir),
    queueSecrets: queueSecretsFile(dataDir),
    given: values[key],
    origin: source.kind === 'environment' ? `$${source.variable}` : originText(source),
  };
}

function originText(source: { kind: string; file?: string; line?: number }): string {
  return source.kind === 'file' ? `${source.file}:${source.line}` : source.kind;
}

async function replace(place: Place, { terminal }: Shows): Promise<string> {
  const token = await writeNewToken(place.file);
  const { out, err, json } = terminal;
  const { file, readOnly } = place;
  if (json) {
    out.write(`${JSON.stringify({ token, read_only: readOnly, file }, null, 2)}\n`);
  } else {
    // On stderr: a script that reads stdout wants the token alone.
    out.write(`${token}\n`);
    err.write(
      `${readOnly ? 'This read-only token' : 'This token'} is in ${file}. Programs send it ` +
        'as `Authorization: Bearer`; commands on this machine find it by themselves. Elsewhere, set ' +
        'MILLRACE_TOKEN.\n',
    );
  }
  if (place.given !== undefined) {
    terminal.err.write(
      `Note: ${place.origin} sets another token, which the daemon uses instead.\n`,
    );
  }
  return token;
}

function missing(place: Place, advice: string): Refusal {
  const kind = place.readOnly ? 'read-only token' : 'token';
  return new Refusal(
    'NO_TOKEN',
    `there is no ${kind} in ${place.file}. ${advice} \`${command('generate', place)}\`.`,
  );
}

function command(name: string, { readOnly }: Place): string {
  return `ctl daemon token ${name}${readOnly ? ' --read-only' : ''}`;
}

/**
 * Writes a new token to the file atomically, readable by the owner only; a running daemon reads it
 * at its next request.
 */
export async function writeNewToken(file: string): Promise<string> {
  const { token } = newToken(systemRandom);
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  await writePrivate(file, `${token}\n`);
  return token;
}

/**
 * Replaces the daemon's token in the secrets file of the queue, which reloads a changed file.
 * Returns false when the file does not hold the old token.
 */
export async function replaceInSecrets(file: string, old: string, token: string): Promise<boolean> {
  const text = lineOf(file);
  if (text === undefined || !text.includes(JSON.stringify(old))) return false;
  await writePrivate(file, `${text.replaceAll(JSON.stringify(old), JSON.stringify(token))}\n`);
  return true;
}

async function writePrivate(file: string, text: string): Promise<void> {
  const unfinished = `${file}.${randomUUID()}`;
  const handle = await open(unfinished, 'wx', 0o600);
  try {
    await handle.writeFile(text);
    await handle.sync();
    await rename(unfinished, file);
  } catch (error) {
    await rm(unfinished, { force: true });
    throw error;
  } finally {
    await handle.close();
  }
}
