import { parseKeys } from '@millrace/db/keys';
import type { Document, YAMLSeq } from 'yaml';
import {
  editCredentials,
  readCredentials,
  type CredentialsFile,
} from '../base/credentials-file.js';

export { indexOfEntry as indexOfKey } from '../base/credentials-file.js';

export interface KeyEntry {
  id: string;
  secret_sha256: string;
  scopes: { collections: string; access: string }[];
  expires_at?: string;
}

const keysFile: CredentialsFile = {
  list: 'keys',
  empty: '# API keys of the database; see `ctl db keys`.\nkeys: []\n',
  check: (text, file) => void parseKeys(text, file),
};

export function readKeys(file: string): Promise<KeyEntry[]> {
  return readCredentials<KeyEntry>(file, keysFile);
}

export function editKeys(
  file: string,
  edit: (keys: YAMLSeq, document: Document) => void,
): Promise<void> {
  return editCredentials(file, keysFile, edit);
}
