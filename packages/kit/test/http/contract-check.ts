import {
  request as httpRequest,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
} from 'node:http';
import type { HttpApp } from '../../src/http/app.js';
import { listen } from '../../src/http/listen.js';
import type { CodeTable } from '../../src/base/errors.js';
import type { BoundApp } from '../../src/http/operations.js';
import {
  follow,
  operationsOf,
  valueAt,
  type OpenApiDocument,
  type OperationDescription,
} from '../../src/http/document.js';

interface LoopbackRequest {
  method?: string;
  path: string;
  headers?: OutgoingHttpHeaders;
  body?: string | Uint8Array;
}

interface LoopbackResponse {
  status: number;
  headers: IncomingHttpHeaders;
  text: string;
}

type LoopbackSend = (request: LoopbackRequest) => Promise<LoopbackResponse>;

/** Serves an app on a free loopback port while `use` sends it requests. */
export async function onLoopback<Result>(
  app: Pick<HttpApp, 'server'>,
  use: (send: LoopbackSend) => Promise<Result>,
): Promise<Result> {
  const listener = await listen(app, '127.0.0.1:0');
  try {
    return await use((request) => send(listener.url, request));
  } finally {
    await listener.close();
  }
}

function send(
  url: string,
  { method = 'GET', path, headers = {}, body }: LoopbackRequest,
): Promise<LoopbackResponse> {
  return new Promise((resolve, reject) => {
    const sent = httpRequest(url, { method, path, headers }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (part: string) => (text += part));
      response.on('error', reject);
      response.on('end', () => {
        resolve({ status: response.statusCode!, headers: response.headers, text });
      });
    });
    sent.on('error', reject).end(body);
  });
}

export interface ContractCheckOptions {
  /** Headers that authenticate a caller, for the paths that need one. */
  headers: Readonly<Record<string, string>>;
  /** The roles of the server; each protected operation must require one of them. */
  roles?: readonly string[];
  /** The server's role table by operation, if it has one. */
  roleOf?: (operationId: string) => string | undefined;
  /** Routes that are not documented on purpose. */
  undocumentedRoutes?: readonly string[];
  /** True for a server that accepts requests without a token. */
  allowsAnonymous?: boolean;
}

/**
 * Lists the differences between a document and its server, in both directions. The methods of each
 * path are read over HTTP; no handler runs.
 */
export async function contractDifferences(
  document: OpenApiDocument,
  app: BoundApp,
  options: ContractCheckOptions,
): Promise<string[]> {
  const operations = operationsOf(document);
  return [
    ...operationDifferences(operations, app.operations),
    ...codeDifferences(document, app.codes),
    ...operations.flatMap((operation) => outcomeDifferences(operation, app.codes)),
    ...operations.flatMap((operation) => roleDifferences(operation, options)),
    ...schemaDifferences(document),
    ...routeDifferences(operations, app, options),
    ...(await onLoopback(app, (send) => pathDifferences(operations, send, options))),
  ];
}

function operationDifferences(
  documented: readonly OperationDescription[],
  served: readonly OperationDescription[],
): string[] {
  const differences: string[] = [];
  const servedById = new Map(served.map((operation) => [operation.id, operation]));
  for (const operation of documented) {
    const other = servedById.get(operation.id);
    servedById.delete(operation.id);
    if (!other) {
      differences.push(`The server does not serve the operation ${operation.id}`);
      continue;
    }
    for (const trait of ['method', 'path', 'isPublic', 'minRole', 'invalidCode'] as const) {
      if (operation[trait] === other[trait]) continue;
      differences.push(
        `${operation.id}: ${trait} is ${String(operation[trait])} in the document ` +
          `and ${String(other[trait])} in the server`,
      );
    }
  }
  for (const id of servedById.keys()) differences.push(`The document lacks the operation ${id}`);
  return differences;
}

function codeDifferences(document: OpenApiDocument, codes: CodeTable): string[] {
  const documented = document['x-error-codes'] ?? {};
  const differences: string[] = [];
  for (const [code, { status, title }] of Object.entries(documented)) {
    const own = Object.hasOwn(codes, code) ? codes[code] : undefined;
    if (!own) differences.push(`The server lacks the code ${code}`);
    else if (own.status !== status) {
      differences.push(`${code} is ${status} in the document and ${own.status} in the server`);
    } else if (own.title !== title) {
      differences.push(
        `${code} is titled "${title}" in the document, "${own.title}" in the server`,
      );
    }
  }
  for (const code of Object.keys(codes)) {
    if (!Object.hasOwn(documented, code)) differences.push(`The document lacks the code ${code}`);
  }
  return [...differences, ...problemSchemaDifferences(document, Object.keys(documented))];
}

/** The schema of a problem lists the codes once more. */
function problemSchemaDifferences(document: OpenApiDocument, codes: readonly string[]): string[] {
  const pointer = '/components/schemas/Problem/properties/code';
  if (valueAt(document, pointer) === undefined) return ['The document has no schema Problem.code'];
  const listed = follow(document, pointer).value['enum'];
  if (!Array.isArray(listed)) return ['Problem.code does not list its values'];
  const missing = codes.filter((code) => !listed.includes(code));
  const extra = listed.filter((code) => !codes.includes(code as string));
  return [
    ...missing.map((code) => `Problem.code does not list ${code}`),
    ...extra.map((code) => `Problem.code lists ${String(code)}, which x-error-codes lacks`),
  ];
}

function outcomeDifferences(operation: OperationDescription, codes: CodeTable): string[] {
  const differences: string[] = [];
  const statuses = new Set<number>();
  for (const code of operation.codes) {
    const meaning = Object.hasOwn(codes, code) ? codes[code] : undefined;
    if (!meaning) {
      differences.push(
        `${operation.id} may respond with ${code}, which is not a code of the server`,
      );
      continue;
    }
    statuses.add(meaning.status);
    const response = operation.responses.find(({ status }) => status === meaning.status);
    if (!response) {
      differences.push(
        `${operation.id} may respond with ${code}, but does not document ${meaning.status}`,
      );
    } else if (!response.contents.some((c) => c.mediaType === 'application/problem+json')) {
      differences.push(`${operation.id}: its ${meaning.status} is not application/problem+json`);
    }
  }
  for (const { status } of operation.responses) {
    if (status >= 400 && !statuses.has(status)) {
      differences.push(`${operation.id} documents ${status}, but none of its codes has it`);
    }
  }
  const { invalidCode } = operation;
  if (invalidCode !== undefined && !operation.codes.includes(invalidCode)) {
    differences.push(`${operation.id}: its x-codes do not list its x-invalid-code ${invalidCode}`);
  }
  return differences;
}

function roleDifferences(
  { id, isPublic, minRole }: OperationDescription,
  { roles, roleOf }: ContractCheckOptions,
): string[] {
  const differences: string[] = [];
  if (isPublic && minRole !== undefined) differences.push(`${id} is public and requires a role`);
  if (roles && !isPublic && (minRole === undefined || !roles.includes(minRole))) {
    differences.push(
      `${id} requires the role ${minRole ?? '(none)'}, not one of ${roles.join(', ')}`,
    );
  }
  if (roleOf && roleOf(id) !== minRole) {
    differences.push(
      `${id} requires ${minRole ?? 'no role'} in the document and ` +
        `${roleOf(id) ?? 'no role'} in the server`,
    );
  }
  return differences;
}

/** Finds schemas that no operation uses. */
function schemaDifferences(document: OpenApiDocument): string[] {
  const reached = new Set<string>();
  const visit = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return;
    const ref = (value as { $ref?: unknown }).$ref;
    if (typeof ref === 'string' && ref.startsWith('#/') && !reached.has(ref)) {
      reached.add(ref);
      visit(valueAt(document, decodeURIComponent(ref.slice(1))));
    }
    for (const child of Object.values(value)) visit(child);
  };
  visit(document.paths);
  visit(document.webhooks);
  return Object.keys(document.components?.schemas ?? {})
    .filter((name) => !reached.has(`#/components/schemas/${name}`))
    .map((name) => `No operation uses the schema ${name}`);
}

function routeDifferences(
  operations: readonly OperationDescription[],
  app: BoundApp,
  { undocumentedRoutes = [] }: ContractCheckOptions,
): string[] {
  const paths = new Set(operations.map((operation) => operation.path));
  return app.pages
    .filter((path) => !undocumentedRoutes.includes(path) && !paths.has(path))
    .map((path) => `The document lacks the route ${path}`);
}

/** TRACE is never documented, so the server responds with 405 and its allowed methods. */
async function pathDifferences(
  operations: readonly OperationDescription[],
  send: LoopbackSend,
  { headers, allowsAnonymous = false }: ContractCheckOptions,
): Promise<string[]> {
  const differences: string[] = [];
  for (const path of new Set(operations.map((operation) => operation.path))) {
    const here = operations.filter((operation) => operation.path === path);
    const methods = new Set(here.map((operation) => operation.method));
    if (methods.has('GET')) methods.add('HEAD');
    const expected = [...methods].sort().join(', ');
    const url = path.replaceAll(/\{[^{}]+\}/g, 'probe');
    const answer = await send({ method: 'TRACE', path: url, headers });
    const allow = answer.headers.allow ?? '';
    if (answer.status !== 405) {
      differences.push(`TRACE ${url} responds with ${answer.status}, not 405`);
    } else if (allow.split(', ').sort().join(', ') !== expected) {
      differences.push(`${path} takes ${allow} in the server and ${expected} in the document`);
    }
    const isProtected = here.some((operation) => !operation.isPublic);
    if (allowsAnonymous || !isProtected) continue;
    const stranger = await send({ method: 'TRACE', path: url });
    if (stranger.status !== 401) {
      differences.push(`${path} responds with ${stranger.status} without a token, not 401`);
    }
  }
  return differences;
}
