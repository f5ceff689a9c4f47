import { constants } from 'node:fs';
import { open, readFile, rename, rm, stat } from 'node:fs/promises';
import { Refusal, systemCode, UsageError } from '@millrace/kit/errors';
import { isMap, parseDocument, YAMLSeq, type Document } from 'yaml';

/** A YAML file that is one list of credentials, such as the keys of the database. */
export interface CredentialsFile {
  /** The name of its list. */
  readonly list: string;
  /** The text of a file that is not there yet. */
  readonly empty: string;
  /** Throws what the server that reads the file would say. */
  check(text: string, file: string): void;
}

/** The entries of the file, checked as the server checks them. */
export async function readCredentials<Entry>(
  file: string,
  { list, check }: CredentialsFile,
): Promise<Entry[]> {
  const text = await readText(file);
  if (text === undefined) throw new UsageError(`${file}: no such file.`);
  check(text, file);
  return (parseDocument(text).toJS() as Record<string, Entry[]>)[list]!;
}

/**
 * Changes the file so that it is either the old one or the new one, never half: the new one is
 * written beside it, checked as the server would, and renamed. Comments stay. The file beside it
 * is also the lock, so that two edits at once do not lose one of them.
 */
export async function editCredentials(
  file: string,
  { list, empty, check }: CredentialsFile,
  edit: (entries: YAMLSeq, document: Document) => void,
): Promise<void> {
  const unfinished = `${file}.edit`;
  const handle = await openNew(unfinished);
  try {
    const text = (await readText(file)) ?? empty;
    if (text.trim() !== '') check(text, file);
    const document = parseDocument(text);
    edit(sequenceOf(document, list), document);
    const edited = document.toString({ lineWidth: 0 });
    check(edited, file);
    await handle.writeFile(edited);
    await handle.chmod(await modeOf(file));
    await handle.sync();
    await rename(unfinished, file);
  } catch (error) {
    await rm(unfinished, { force: true });
    throw error;
  } finally {
    await handle.close();
  }
}

/** Where the entry with this id stands, or -1. */
export function indexOfEntry(entries: YAMLSeq, id: string): number {
  return entries.items.findIndex((item) => isMap(item) && item.get('id') === id);
}

/** The list of the document, in block style, where comments have room. */
function sequenceOf(document: Document, list: string): YAMLSeq {
  const found: unknown = document.get(list);
  if (found instanceof YAMLSeq) {
    if (found.items.length === 0) found.flow = false;
    return found;
  }
  const made = new YAMLSeq();
  document.set(list, made);
  return made;
}

async function openNew(path: string) {
  try {
    return await open(path, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, 0o600);
  } catch (error) {
    if (systemCode(error) !== 'EEXIST') throw error;
    throw new Refusal(
      'ALREADY_RUNNING',
      `${path} is there: another edit is under way. If none is, remove the file and try again.`,
      { cause: error },
    );
  }
}

async function readText(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return undefined;
    throw error;
  }
}

/** That of the file as it is, which its owner may have chosen; for him alone when it is new. */
async function modeOf(file: string): Promise<number> {
  try {
    return (await stat(file)).mode & 0o777;
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return 0o600;
    throw error;
  }
}
