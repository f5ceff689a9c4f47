import { openApiDocument } from '@millrace/contract/documents';
import { schemasOf, operationsOf } from '@millrace/kit/http';
import type { TestResponse } from './http-client.js';

const document = openApiDocument('queue');
const schemas = schemasOf(document);
export const operations = new Map(operationsOf(document).map((each) => [each.id, each]));

/** Differences between a response and the contract. */
export function wireDifferences(operationId: string, answer: TestResponse): string[] {
  const operation = operations.get(operationId)!;
  const response = operation.responses.find(({ status }) => status === answer.status);
  if (!response) return [`${operationId} answers ${answer.status}: ${answer.text}`];
  if (response.contents.length === 0) {
    return answer.text === '' ? [] : [`${operationId} ${answer.status} has a body`];
  }
  const mediaType = answer.headers['content-type'];
  const content = response.contents.find((known) => known.mediaType === mediaType);
  if (!content) return [`${operationId} ${answer.status} is ${mediaType}`];
  if (mediaType === 'application/yaml') return [];
  const check = schemas.at(content.pointer!);
  if (check.accepts(answer.body)) return [];
  return check.faults(answer.body).map(({ pointer, message }) => `${pointer} ${message}`);
}
