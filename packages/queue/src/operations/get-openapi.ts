import { openApiYaml } from '@millrace/contract/documents';

let known: string | undefined;

/** The document that this server is built from, as it was written. */
export function getOpenapi(): string {
  return (known ??= openApiYaml('queue'));
}
