import { parseTokens, type TokenEntry } from '@millrace/kit/tokens';
import type { Document, YAMLSeq } from 'yaml';
import {
  editCredentials,
  readCredentials,
  type CredentialsFile,
} from '../base/credentials-file.js';

export { indexOfEntry as indexOfToken } from '../base/credentials-file.js';

/** In ascending order; a submitter cannot claim and a worker cannot submit. */
const roleLevels = [['submitter', 'worker'], 'operator', 'admin'] as const;
export const roles = roleLevels.flat();

const tokensFile: CredentialsFile = {
  list: 'tokens',
  empty: '# Bearer tokens of the queue; see `ctl queue token`.\ntokens: []\n',
  check: (text, file) => void parseTokens(text, file, roleLevels),
};

export function readTokens(file: string): Promise<TokenEntry[]> {
  return readCredentials<TokenEntry>(file, tokensFile);
}

export function editTokens(
  file: string,
  edit: (tokens: YAMLSeq, document: Document) => void,
): Promise<void> {
  return editCredentials(file, tokensFile, edit);
}
