import { openApiYaml } from '@millrace/contract/documents';

let known: string | undefined;

/** Returns the OpenAPI document as written. */
export function getOpenapi(): string {
  return (known ??= openApiYaml('queue'));
}
