import { expect, test } from 'vitest';
import { RemoteSchemas } from './catalog.js';
import type { Session } from './session.js';

test.each([null, [], 'x', 1])(
  'schemas: %j as a schema is BAD_SCHEMA, as in process',
  async (bad) => {
    const schemas = new RemoteSchemas({} as Session);
    await expect(schemas.set('people', bad as never)).rejects.toMatchObject({
      code: 'BAD_SCHEMA',
      detail: 'The schema cannot be used: it must be a JSON object.',
    });
  },
);
