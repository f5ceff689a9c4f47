import { constants } from 'node:fs';
import { open, readFile, rename, rm, stat } from 'node:fs/promises';
import { Refusal, systemCode, UsageError } from '@millrace/kit/errors';
import { parseTokens, type TokenEntry } from '@millrace/kit/tokens';
import { isMap, parseDocument, YAMLSeq, type Document } from 'yaml';

/** In rising order: each includes the ones before it. */
export const roles = ['submitter', 'operator', 'admin'] as const;

/** The entries of a tokens file, checked as the server checks them. */
export async function readTokens(file: string): Promise<TokenEntry[]> {
  const text = await readText(file);
  if (text === undefined) throw new UsageError(`${file}: no such file.`);
  parseTokens(text, file, roles);
  const { tokens } = parseDocument(text).toJS() as { tokens: TokenEntry[] };
  return tokens;
}

/**
 * Changes a tokens file so that it is either the old one or the new one, never half: the new one
 * is written beside it, checked as the server would, and renamed. Comments stay. The file beside
 * it is also the lock, so that two edits at once do not lose one of them.
 */
export async function editTokens(
  file: string,
  edit: (tokens: YAMLSeq, document: Document) => void,
): Promise<void> {
  const unfinished = `${file}.edit`;
  const handle = await openNew(unfinished);
  try {
    const text =
      (await readText(file)) ??
      '# Bearer tokens of the queue; see `ctl queue token`.\ntokens: []\n';
    if (text.trim() !== '') parseTokens(text, file, roles);
    const document = parseDocument(text);
    edit(sequenceOf(document), document);
    const edited = document.toString({ lineWidth: 0 });
    parseTokens(edited, file, roles);
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

/** The `tokens:` of the document, in block style, where comments have room. */
function sequenceOf(document: Document): YAMLSeq {
  const found: unknown = document.get('tokens');
  if (found instanceof YAMLSeq) {
    if (found.items.length === 0) found.flow = false;
    return found;
  }
  const made = new YAMLSeq();
  document.set('tokens', made);
  return made;
}

/** Where the entry with this id stands, or -1. */
export function indexOfToken(tokens: YAMLSeq, id: string): number {
  return tokens.items.findIndex((item) => isMap(item) && item.get('id') === id);
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
