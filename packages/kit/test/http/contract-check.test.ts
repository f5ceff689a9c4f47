import { describe, expect, test } from 'vitest';
import { sampleDocument } from './sample-document.js';
import { sampleApp, token } from './sample-server.js';
import { contractDifferences, type ContractCheckOptions } from './contract-check.js';
import type { OpenApiDocument } from '../../src/http/document.js';

const roles = ['submitter', 'operator', 'admin'];
const options: ContractCheckOptions = { headers: token, roles };

type Operations = Record<string, Record<string, unknown>>;

/** The differences after the document, but not the server, was changed. */
function after(change: (document: OpenApiDocument, at: (path: string) => Operations) => void) {
  const document = structuredClone(sampleDocument);
  change(document, (path) => document.paths[path] as Operations);
  return contractDifferences(document, sampleApp(), options);
}

test('a server and its own document have no difference', async () => {
  expect(await contractDifferences(sampleDocument, sampleApp(), options)).toEqual([]);
});

describe('what one has and the other lacks', () => {
  test('operations', async () => {
    const more = await after((document, at) => {
      const { get } = at('/healthz');
      const readiness = { get: { ...get, operationId: 'getReadiness' } };
      document.paths = { ...document.paths, '/readyz': readiness };
    });
    expect(more).toContain('The server does not serve the operation getReadiness');
    expect(more).toContain('TRACE /readyz responds with 404, not 405');
    const less = await after(
      (_document, at) => delete at('/v1/admin/queues/{queue}:pause')['post'],
    );
    expect(less).toEqual(['The document lacks the operation pauseQueue']);
  });

  test('methods of a path', async () => {
    const less = await after((_document, at) => {
      delete at('/v1/admin/queues/{queue}')['delete'];
    });
    expect(less).toContain(
      '/v1/admin/queues/{queue} takes DELETE, GET, HEAD in the server and GET, HEAD in the document',
    );
  });

  test('codes, in the table, in the schema and in the operations', async () => {
    const document = structuredClone(sampleDocument);
    const { BUSY: _busy, ...less } = document['x-error-codes']!;
    document['x-error-codes'] = {
      ...less,
      LOCKED: { status: 423, title: 'Locked' },
      INVALID_TASK: { status: 400, title: 'Invalid task' },
    };
    const found = await contractDifferences(document, sampleApp(), options);
    expect(found).toEqual([
      'INVALID_TASK is 400 in the document and 422 in the server',
      'The server lacks the code LOCKED',
      'The document lacks the code BUSY',
      'Problem.code does not list LOCKED',
      'Problem.code lists BUSY, which x-error-codes lacks',
    ]);
    expect(
      await after((_document, at) => {
        const { get } = at('/v1/tasks/{id}');
        Object.assign(get ?? {}, { 'x-codes': ['INTERNAL', 'BUSY', 'NO_SUCH'] });
      }),
    ).toEqual([
      'getTask may respond with BUSY, but does not document 503',
      'getTask may respond with NO_SUCH, which is not a code of the server',
      'getTask documents 401, but none of its codes has it',
      'getTask documents 403, but none of its codes has it',
      'getTask documents 404, but none of its codes has it',
      'getTask documents 422, but none of its codes has it',
    ]);
  });

  test('roles and protection', async () => {
    const found = await after((_document, at) => {
      Object.assign(at('/v1/tasks/{id}')['get'] ?? {}, { 'x-min-role': 'owner' });
      Object.assign(at('/v1/events')['get'] ?? {}, { security: [] });
    });
    expect(found).toContain(
      'getTask: minRole is owner in the document and submitter in the server',
    );
    expect(found).toContain(
      'getTask requires the role owner, not one of submitter, operator, admin',
    );
    expect(found).toContain('watchEvents is public and requires a role');
    const own = await contractDifferences(sampleDocument, sampleApp(), {
      ...options,
      roleOf: (id) =>
        sampleApp().operations.find((o) => o.id === id && o.id !== 'getTask')?.minRole,
    });
    expect(own).toEqual(['getTask requires submitter in the document and no role in the server']);
  });

  test('schemas that no operation uses', async () => {
    const found = await after((document) => {
      (document.components!.schemas as Record<string, unknown>)['Orphan'] = { type: 'string' };
    });
    expect(found).toEqual(['No operation uses the schema Orphan']);
  });

  test('routes beside the operations', async () => {
    const app = sampleApp();
    app.addPage('/debug', (exchange) => exchange.send(200, [], 'x'));
    expect(() => app.addPage('/healthz', () => undefined)).toThrow('is already registered');
    expect(await contractDifferences(sampleDocument, app, options)).toContain(
      'The document lacks the route /debug',
    );
    const allowed = { ...options, undocumentedRoutes: ['/debug'] };
    expect(await contractDifferences(sampleDocument, app, allowed)).toEqual([]);
  });

  test('a path without authentication', async () => {
    const open = sampleApp({ authenticate: () => ({ name: 'anyone', grants: ['*'] }) });
    expect(await contractDifferences(sampleDocument, open, options)).toContain(
      '/v1/tasks/{id} responds with 405 without a token, not 401',
    );
    const known = { ...options, allowsAnonymous: true };
    expect(await contractDifferences(sampleDocument, open, known)).toEqual([]);
  });
});
