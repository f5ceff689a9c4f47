import { constants } from 'node:fs';
import { open, readFile, rename, rm, stat } from 'node:fs/promises';
import { Refusal, systemCode, whenThere } from '@millrace/kit/errors';
import { parseDocument, YAMLSeq, type Document } from 'yaml';

/** A YAML file with one list of credentials, such as database keys. */
export interface CredentialsFile {
  /** Name of the list. */
  readonly list: string;
  /** Content of a new file. */
  readonly empty: string;
  /** Throws the error that the server would report. */
  check(text: string, file: string): void;
}

/** Entries of the file, validated as the server does. */
export async function readCredentials<Entry>(
  file: string,
  { list, check }: CredentialsFile,
): Promise<Entry[]> {
  const text = await whenThere(readFile(file, 'utf8'));
  if (text === undefined) {
    throw new Refusal('FILE_NOT_FOUND', `${file}: no such file. Check the path.`);
  }
  check(text, file);
  return (parseDocument(text).toJS() as Record<string, Entry[]>)[list]!;
}

/**
 * Edits the file atomically: writes a new file beside it, validates it as the server does and
 * renames it. Keeps comments. The new file is also the lock against a concurrent edit.
 */
export async function editCredentials(
  file: string,
  { list, empty, check }: CredentialsFile,
  edit: (entries: YAMLSeq, document: Document) => void,
): Promise<void> {
  const unfinished = `${file}.edit`;
  const handle = await openNew(unfinished);
  try {
    const text = (await whenThere(readFile(file, 'utf8'))) ?? empty;
    if (text.trim() !== '') check(text, file);
    const document = parseDocument(text);
    edit(sequenceOf(document, list), document);
    const edited = document.toString({ lineWidth: 0 });
    check(edited, file);
    await handle.writeFile(edited);
    // The owner may have chosen the mode of an existing file.
    await handle.chmod(((await whenThere(stat(file)))?.mode ?? 0o600) & 0o777);
    await handle.sync();
    await rename(unfinished, file);
  } catch (error) {
    await rm(unfinished, { force: true });
    throw error;
  } finally {
    await handle.close();
  }
}

/** The list of the document, in block style, which has room for comments. */
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
      `${path} exists: another edit is in progress. If none is, remove the file and try again.`,
      { cause: error },
    );
  }
}
