import { Refusal } from '@millrace/kit/errors';
import { asTyped } from '../base/command-name.js';
import type { Flags, Tools } from '../base/tools.js';
import { loadDaemonSettings } from './local-settings.js';
import { lineOf, queueSecretsFile, readOnlyTokenFile, tokenFile } from '../base/places.js';
import { writePrivateFile } from '@millrace/kit/private-files';
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
  tools.terminal.show({ token, read_only: place.readOnly, source }, `${token}\n`);
  // On stderr: a script that reads stdout wants the token alone.
  if (out.isScreen && !json) err.write(err.paint('dim', `from ${source}\n`));
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
  replace(place, tools);
}

export async function rotateToken(flags: TokenFlags, tools: Shows): Promise<void> {
  const place = placeOf(flags, tools);
  const old = lineOf(place.file);
  if (old === undefined) throw missing(place, 'Create one with');
  const token = replace(place, tools);
  if (replaceInSecrets(place.queueSecrets, old, token)) {
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

/** A running daemon reads the file at its next request. */
function replace(place: Place, { terminal }: Shows): string {
  const { token } = newToken(systemRandom);
  writePrivateFile(place.file, `${token}\n`);
  const { err, json } = terminal;
  const { file, readOnly } = place;
  terminal.show({ token, read_only: readOnly, file }, `${token}\n`);
  if (!json) {
    // On stderr: a script that reads stdout wants the token alone.
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
 * Replaces the daemon's token in the secrets file of the queue, which reloads a changed file.
 * Returns false when the file does not hold the old token.
 */
function replaceInSecrets(file: string, old: string, token: string): boolean {
  const text = lineOf(file);
  if (text === undefined || !text.includes(JSON.stringify(old))) return false;
  writePrivateFile(file, `${text.replaceAll(JSON.stringify(old), JSON.stringify(token))}\n`);
  return true;
}
