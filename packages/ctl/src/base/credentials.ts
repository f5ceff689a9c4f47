import { resolve } from 'node:path';
import type { List, Value } from '@millrace/contract/lists';
import { systemClock } from '@millrace/kit/clock';
import type { ConfigDefinition } from '@millrace/kit/config';
import { Refusal, UsageError } from '@millrace/kit/errors';
import { parseTimestamp } from '@millrace/kit/units';
import { isMap, type Document, type YAMLSeq } from 'yaml';
import { editCredentials, readCredentials, type CredentialsFile } from './credentials-file.js';
import { dataDirectory } from './data-directory.js';
import { listText } from './list-text.js';
import type { Tools } from './tools.js';

type Shows = Pick<Tools, 'terminal'>;

/** A kind of credential, in a file that a server reads: keys, tokens, secrets. */
export interface Credentials<Entry> extends CredentialsFile {
  /** `key` */
  readonly noun: string;
  /** The member that names an entry. */
  readonly named: keyof Entry & string;
  /** Columns of the list; without rows, `listCredentials` says so itself. */
  readonly columns: List<Entry>['columns'];
  /** An entry as --json shows it, without its secret. */
  readonly json: (entry: Entry) => object;
  /** The flag and the setting of the server that name the file. */
  readonly place: {
    readonly flag: string;
    readonly setting: string;
    readonly config: () => Promise<ConfigDefinition>;
    /** Where the file is when neither names it. */
    readonly fallback: (dataDir: string) => { settings: string; file?: string };
  };
  /** Called before the file is changed. */
  readonly prepare?: (document: Document) => void;
}

export function indexOfEntry<Entry>(
  { named }: Credentials<Entry>,
  entries: YAMLSeq,
  name: string,
): number {
  return entries.items.findIndex((item) => isMap(item) && item.get(named) === name);
}

export function readEntries<Entry>(kind: Credentials<Entry>, file: string): Promise<Entry[]> {
  return readCredentials<Entry>(file, kind);
}

export function editEntries<Entry>(
  kind: Credentials<Entry>,
  file: string,
  edit: (entries: YAMLSeq, document: Document) => void,
): Promise<void> {
  return editCredentials(file, kind, (entries, document) => {
    kind.prepare?.(document);
    edit(entries, document);
  });
}

/** Adds an entry; its name must be new. */
export async function addEntry<Entry>(
  kind: Credentials<Entry>,
  file: string,
  entry: Entry & object,
  duplicate = { code: 'DUPLICATE_ID', advice: 'Choose another --id.' },
): Promise<void> {
  const name = String(entry[kind.named]);
  await editEntries(kind, file, (entries, document) => {
    if (indexOfEntry(kind, entries, name) >= 0) {
      const { code, advice } = duplicate;
      throw new Refusal(code, `${file} already has a ${kind.noun} "${name}". ${advice}`);
    }
    entries.add(document.createNode(entry));
  });
}

/** Makes the handler that lists the entries. */
export function lister<Entry>(kind: Credentials<Entry>) {
  return async (flags: FileFlags, { terminal }: Shows): Promise<void> => {
    const file = await fileOf(kind, flags, terminal.env);
    const entries = await readEntries(kind, file);
    const { columns, list } = kind;
    const empty = `${file} has no ${list}.`;
    terminal.show({ [list]: entries.map(kind.json) }, (out) =>
      listText({ columns, empty }, entries, systemClock.now(), out),
    );
  };
}

/** Removes an entry. `missing` may explain what a wrong name is. */
export async function removeEntry<Entry>(
  kind: Credentials<Entry>,
  file: string,
  name: string,
  missing: (message: string) => Error,
): Promise<void> {
  // Editing would create a missing file.
  await readEntries(kind, file);
  await editEntries(kind, file, (entries) => {
    const at = indexOfEntry(kind, entries, name);
    if (at < 0) throw missing(`${file} has no ${kind.noun} "${name}".`);
    entries.delete(at);
  });
}

type Environment = Shows['terminal']['env'];
type FileFlags = { readonly config?: string; readonly data?: string };

/** The file that the flag names, the setting of the server, or where it is by default. */
export async function fileOf<Entry>(
  { place, list }: Credentials<Entry>,
  flags: FileFlags,
  env: Environment,
): Promise<string> {
  const { flag, setting, config, fallback } = place;
  const given = (flags as Readonly<Record<string, string | undefined>>)[flag];
  if (given !== undefined) return resolve(given);
  const [definition, { loadConfig }] = await Promise.all([
    config(),
    import('@millrace/kit/config'),
  ]);
  const other = fallback(dataDirectory(flags.data, env));
  const { values } = loadConfig(definition, {
    environment: env,
    flags: flags.config === undefined ? {} : { config: flags.config },
    defaultFile: other.settings,
  });
  const named = (values as Readonly<Record<string, string | undefined>>)[setting];
  const file = named ?? (flags.config === undefined ? other.file : undefined);
  if (file !== undefined) return file;
  const option = `--${setting.replace('_', '-')}`;
  throw new UsageError(`Name the ${list} file: ${option} FILE, or --config with its ${setting}.`);
}

export function checkedId(id: string): string {
  if (/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(id)) return id;
  throw new UsageError('--id must be 1 to 64 letters, digits, dots, dashes or underscores.');
}

/** When a credential expires; one that has expired stands out. */
export function expiry(at: string | undefined): Value {
  if (at === undefined) return 'never';
  return parseTimestamp(at) <= systemClock.now() ? { text: `expired ${at}`, tone: 'bad' } : at;
}
