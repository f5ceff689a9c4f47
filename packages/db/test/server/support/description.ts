import { openApiDocument } from '@millrace/contract/documents';
import { schemasOf, type DocumentSchemas } from '@millrace/kit/http';

interface Described {
  readonly pattern: RegExp;
  readonly method: string;
  readonly operation: {
    operationId: string;
    responses: Record<string, { $ref?: string; content?: Record<string, unknown> }>;
    'x-codes'?: string[];
  };
  readonly pointer: string;
}

const document = openApiDocument('db');
const schemas = schemasOf(document);

const operations: Described[] = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({
    pattern: new RegExp(`^${path.replaceAll(/\{\w+\}/g, '[^/:]+')}$`),
    method: method.toUpperCase(),
    operation: operation as Described['operation'],
    pointer: `/paths/${path.replaceAll('~', '~0').replaceAll('/', '~1')}/${method}`,
  })),
);

/** Validates a response against the server's /openapi.yaml. */
export function checkDescribed(method: string, url: string, status: number, body: unknown): void {
  const path = url.replace(/\?.*$/, '');
  const found = operations.find((each) => each.method === method && each.pattern.test(path));
  if (!found) return;
  const { operation, pointer } = found;
  const place = `${operation.operationId} ${status}`;
  if (!operation.responses[status]) throw new Error(`${place} is not described`);
  if (status !== 200) {
    expectFit(schemas.named('Error'), body, place);
    const { details } = body as { details: { reason: string }[] };
    const { reason } = details[0]!;
    const codes = operation['x-codes'] ?? [];
    if (!codes.includes(reason)) throw new Error(`${place} does not name the reason ${reason}`);
    return;
  }
  if (!operation.responses[status].content?.['application/json']) return;
  const at = `${pointer}/responses/200/content/application~1json/schema`;
  expectFit(schemas.at(at), body, place);
}

function expectFit(
  check: ReturnType<DocumentSchemas['named']>,
  body: unknown,
  place: string,
): void {
  if (check.accepts(body)) return;
  throw new Error(`${place} is not as described: ${JSON.stringify(check.faults(body))}`);
}
