import { parseSecrets } from '@millrace/queue/secrets';
import { isMap, visit, type Document, type YAMLSeq } from 'yaml';
import {
  editCredentials,
  readCredentials,
  type CredentialsFile,
} from '../base/credentials-file.js';

export interface SecretEntry {
  name: string;
  value: string;
  queues: string[];
}

export const secretsHeading =
  '# Secrets that callbacks are signed and sent with; see `ctl queue secret`.\n';

const secretsFile: CredentialsFile = {
  list: 'secrets',
  empty: `${secretsHeading}secrets: []\n`,
  check: (text, file) => void parseSecrets(text, file),
};

export function readSecrets(file: string): Promise<SecretEntry[]> {
  return readCredentials<SecretEntry>(file, secretsFile);
}

export function editSecrets(
  file: string,
  edit: (secrets: YAMLSeq, document: Document) => void,
): Promise<void> {
  return editCredentials(file, secretsFile, (secrets, document) => {
    if (isMap(document.contents) && document.contents.flow) toBlockStyle(document);
    edit(secrets, document);
  });
}

/** Index of the secret with this name, or -1. */
export function indexOfSecret(secrets: YAMLSeq, name: string): number {
  return secrets.items.findIndex((item) => isMap(item) && item.get('name') === name);
}

/** Earlier versions wrote JSON, to which nobody can append YAML. */
function toBlockStyle(document: Document): void {
  visit(document, {
    Collection: (_, node) => void (node.flow = false),
    Scalar: (_, node) => void (node.type = 'PLAIN'),
  });
}
