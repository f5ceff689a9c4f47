import { describe, expect, test } from 'vitest';
import { sampleDocument } from '../../test/http/sample-document.js';
import { DocumentSchemas } from './schemas.js';

const schemas = new DocumentSchemas(sampleDocument);

function faults(name: string, value: unknown): string[] {
  const check = schemas.named(name);
  expect(check.accepts(value)).toBe(false);
  return check.faults(value).map(({ pointer, message }) => `${pointer} ${message}`);
}

const callback = { url: 'https://example.org/' };
const task = (fields: object) => faults('TaskRequest', { handler_ref: 'x', ...fields });
const config = (fields: object) => faults('QueueConfig', { callback, ...fields });

describe('names', () => {
  test('a misspelled name gets a suggestion', () => {
    expect(faults('TaskRequest', { handlr_ref: 'x' })).toEqual([
      '/handler_ref is required',
      '/handlr_ref is not a known field; did you mean "handler_ref"?',
    ]);
    expect(task({ runAt: null })).toEqual(['/runAt is not a known field; did you mean "run_at"?']);
  });

  test('an unknown name gets the list of known ones', () => {
    expect(faults('Completion', { colour: 'red' })).toEqual([
      '/colour is not a known field; known are note',
    ]);
  });

  test('a very long name is not searched for', () => {
    const [fault] = task({ ['x'.repeat(3_000_000)]: 1 });
    expect(fault).toContain('is not a known field; known are');
  });

  test('slashes and tildes in a name are escaped in its pointer', () => {
    expect(schemas.named('Completion').faults({ 'a/b~c': 1 })[0]?.pointer).toBe('/a~1b~0c');
  });

  test('a property name by a pattern is pointed at', () => {
    expect(task({ headers: { 'x y': '1' } })).toEqual([
      '/headers/x y has a name that is not allowed: the name must match ^[A-Za-z-]+$',
    ]);
  });
});

describe('values', () => {
  test.each<[object, string]>([
    [{ handler_ref: 5 }, '/handler_ref must be a string, not 5'],
    [{ handler_ref: '' }, '/handler_ref must not be empty'],
    [{ handler_ref: 'x'.repeat(33) }, '/handler_ref must have at most 32 characters'],
    [{ priority: 10 }, '/priority must be at most 9'],
    [{ priority: -1 }, '/priority must be at least 0'],
    [{ priority: 1.5 }, '/priority must be a whole number, not 1.5'],
    [{ priority: '4' }, '/priority must be a whole number, not "4"'],
    [{ payload: 'a' }, '/payload must be padded base64 (RFC 4648)'],
    [{ run_at: 7 }, '/run_at must be a string or null, not 7'],
    [
      { run_at: '2030-02-30T00:00:00Z' },
      '/run_at must be an RFC 3339 timestamp such as 2030-01-31T09:30:00Z',
    ],
    [{ run_at: null, retry_after_ms: 5 }, '/retry_after_ms is not allowed beside run_at'],
    [{ headers: [] }, '/headers must be an object, not a list'],
    [{ headers: { A: '1', B: '2', C: '3' } }, '/headers must have at most 2 fields'],
    [{ headers: { A: 1 } }, '/headers/A must be a string, not 1'],
  ])('%o', (fields, message) => {
    expect(task(fields)).toEqual([message]);
  });

  test.each<[object, string]>([
    [{ mode: 'gruop' }, '/mode must be one of none, group, strict; did you mean "group"?'],
    [{ mode: 7 }, '/mode must be one of none, group, strict'],
    [{ retry: { multiplier: 0 } }, '/retry/multiplier must be more than 0'],
    [{ statuses: [] }, '/statuses must not be empty'],
    [{ statuses: [1, 2, 1] }, '/statuses must not repeat an item: 0 and 2 are equal'],
    [{ callback: { url: 'no url' } }, '/callback/url must be an absolute URL such as'],
    [{ retry: true }, '/retry must be an object, not true'],
  ])('%o', (fields, message) => {
    const faultsOf = config(fields);
    expect(faultsOf).toHaveLength(1);
    expect(faultsOf[0]).toContain(message);
  });

  test('a body of the wrong type is one error', () => {
    expect(faults('TaskRequest', [])).toEqual([' must be an object, not a list']);
    expect(faults('TaskRequest', null)).toEqual([' must be an object, not null']);
  });
});

describe('choices', () => {
  const auth = (value: unknown) => config({ callback: { ...callback, auth: value } });

  test('the branch of the discriminator is explained', () => {
    expect(auth({ type: 'bearer' })).toEqual(['/callback/auth/secret_ref is required']);
    expect(auth({ type: 'bearer', secret_ref: 'a', name: 'b' })).toEqual([
      '/callback/auth/name is not a known field; known are type, secret_ref',
    ]);
  });

  test('an unknown discriminator gets the list of all', () => {
    expect(auth({ type: 'baerer', secret_ref: 'a' })).toEqual([
      '/callback/auth/type must be one of none, bearer, header; did you mean "bearer"?',
    ]);
    expect(auth('bearer')).toEqual(['/callback/auth must be an object, not "bearer"']);
  });

  test('one of two fields, and not both', () => {
    const message = '/selector needs exactly one of ids, filter';
    expect(config({ selector: {} })).toEqual([message]);
    expect(config({ selector: { ids: [], filter: {} } })).toEqual([message]);
    expect(config({ selector: { idz: [] } })).toEqual([
      message,
      '/selector/idz is not a known field; did you mean "ids"?',
    ]);
  });

  test('a string with two allowed formats names both', () => {
    expect(config({ since: 'soon' })).toEqual([
      '/since must match ^[1-9][hd]$ such as 1h, 7d, ' +
        'or be an RFC 3339 timestamp such as 2030-01-31T09:30:00Z',
    ]);
  });

  test('a value or null', () => {
    expect(config({ label: 5 })).toEqual(['/label must be a string or null, not 5']);
    expect(config({ label: 'too long' })).toEqual(['/label must have at most 4 characters']);
  });
});

describe('bounds', () => {
  test('at most 20 errors are reported', () => {
    const many = Object.fromEntries(Array.from({ length: 50 }, (_, i) => [`unknown${i}`, 1]));
    expect(faults('Completion', many)).toHaveLength(20);
  });

  test('for a large or deep body only the first error is reported', () => {
    const many = Object.fromEntries(Array.from({ length: 50 }, (_, i) => [`unknown${i}`, 1]));
    expect(faults('Completion', { note: 'x'.repeat(70_000), ...many })).toHaveLength(1);
    let deep: unknown = 1;
    for (let i = 0; i < 100_000; i++) deep = [deep];
    expect(faults('Completion', { deep, ...many })).toHaveLength(1);
  });
});

describe('what a check may change', () => {
  test('defaults are filled in when asked, also behind a reference', () => {
    const value: Record<string, unknown> = { callback };
    expect(schemas.named('QueueConfig', { fillDefaults: true }).accepts(value)).toBe(true);
    expect(value).toEqual({
      callback,
      retry: { max_attempts: 15, multiplier: 2 },
      mode: 'none',
    });
    const request = { handler_ref: 'x' };
    schemas.named('TaskRequest', { fillDefaults: true }).accepts(request);
    expect(request).toEqual({ handler_ref: 'x', priority: 4 });
  });

  test('nothing is filled in otherwise', () => {
    const request = { handler_ref: 'x' };
    schemas.named('TaskRequest').accepts(request);
    expect(request).toEqual({ handler_ref: 'x' });
  });

  test('a number beyond x-clamp-max is taken as that', () => {
    const request = { handler_ref: 'x', retry_after_ms: 9e9 };
    expect(schemas.named('TaskRequest').accepts(request)).toBe(true);
    expect(request.retry_after_ms).toBe(3_600_000);
  });

  test('a number below x-clamp-min is taken as that', () => {
    const document = structuredClone(sampleDocument);
    const clamped = { type: 'object', properties: { n: { type: 'integer', 'x-clamp-min': 1 } } };
    Object.assign(document.components!.schemas!, { Clamped: clamped });
    const request = { n: -3 };
    expect(new DocumentSchemas(document).named('Clamped').accepts(request)).toBe(true);
    expect(request.n).toBe(1);
  });
});

test('a keyword that no one knows is a mistake of the document', () => {
  const broken = structuredClone(sampleDocument);
  const types = broken.components?.schemas as Record<string, object>;
  Object.assign(types['Completion'] ?? {}, { requiredd: ['note'] });
  const check = new DocumentSchemas(broken).named('Completion');
  expect(() => check.accepts({})).toThrow('requiredd');
  expect(() => schemas.named('Nothing')).toThrow('The document has no schema Nothing');
});
