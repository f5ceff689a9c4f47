import { describe, expect, test } from 'vitest';
import { PathRouter } from './dispatch.js';

function routerOf(...templates: string[]): PathRouter<string> {
  const router = new PathRouter<string>();
  for (const template of templates) router.add(template, template);
  return router;
}

const queues = routerOf(
  '/v1/admin/queues',
  '/v1/admin/queues/{queue}',
  '/v1/admin/queues/{queue}:pause',
  '/v1/admin/queues/{queue}:resume',
  '/v1/admin/queues/{queue}/config',
  '/v1/queues/{queue}/tasks',
  '/v1/queues/{queue}/tasks:batch',
  '/v1/tasks/{id}',
  '/v1/tasks/{id}:complete',
  '/',
);

describe('a verb after a parameter', () => {
  test('picks its own template and leaves the name alone', () => {
    for (const verb of ['pause', 'resume']) {
      expect(queues.find(`/v1/admin/queues/mail:${verb}`)).toEqual({
        leaf: `/v1/admin/queues/{queue}:${verb}`,
        params: { queue: 'mail' },
      });
    }
    expect(queues.find('/v1/admin/queues/mail')).toEqual({
      leaf: '/v1/admin/queues/{queue}',
      params: { queue: 'mail' },
    });
  });

  test('that is not known is no path at all', () => {
    expect(queues.find('/v1/admin/queues/mail:paus')).toBeUndefined();
    expect(queues.find('/v1/admin/queues/mail:pause:resume')).toBeUndefined();
    expect(queues.find('/v1/admin/queues/mail:')).toBeUndefined();
    expect(queues.find('/v1/admin/queues/:pause')).toBeUndefined();
    expect(queues.find('/v1/queues/mail/tasks:batches')).toBeUndefined();
  });

  test('is never read out of a percent-encoded colon', () => {
    expect(queues.find('/v1/admin/queues/mail%3Apause')).toEqual({
      leaf: '/v1/admin/queues/{queue}',
      params: { queue: 'mail:pause' },
    });
    expect(queues.find('/v1/admin/queues/a%3ab:pause')).toEqual({
      leaf: '/v1/admin/queues/{queue}:pause',
      params: { queue: 'a:b' },
    });
    expect(queues.find('/v1/queues/mail/tasks%3Abatch')).toBeUndefined();
  });
});

test('a colon in front of a slash belongs to the name', () => {
  expect(queues.find('/v1/admin/queues/a:b/config')).toEqual({
    leaf: '/v1/admin/queues/{queue}/config',
    params: { queue: 'a:b' },
  });
  expect(queues.find('/v1/queues/mail:pause/tasks:batch')).toEqual({
    leaf: '/v1/queues/{queue}/tasks:batch',
    params: { queue: 'mail:pause' },
  });
});

test('a parameter takes one segment, decoded once', () => {
  expect(queues.find('/v1/tasks/a%2Fb')?.params).toEqual({ id: 'a/b' });
  expect(queues.find('/v1/tasks/a%252Fb')?.params).toEqual({ id: 'a%2Fb' });
  expect(queues.find('/v1/tasks/%C3%A9')?.params).toEqual({ id: 'é' });
  expect(queues.find('/v1/tasks/a/b')).toBeUndefined();
  expect(queues.find('/v1/tasks/')).toBeUndefined();
  expect(queues.find('/v1/tasks')).toBeUndefined();
});

test('a path that is not UTF-8 behind its percent signs names nothing', () => {
  expect(queues.find('/v1/tasks/%FF')).toBeUndefined();
  expect(queues.find('/v1/tasks/%')).toBeUndefined();
  expect(queues.find('/v1/tasks/%zz')).toBeUndefined();
});

test('plain characters may come percent-encoded', () => {
  expect(queues.find('/%76%31/%71ueues/mail/tasks')?.leaf).toBe('/v1/queues/{queue}/tasks');
});

test('trailing, doubled and missing slashes are other paths', () => {
  expect(queues.find('/v1/admin/queues/')).toBeUndefined();
  expect(queues.find('/v1//admin/queues')).toBeUndefined();
  expect(queues.find('/V1/admin/queues')).toBeUndefined();
  expect(queues.find('/')?.leaf).toBe('/');
  expect(queues.find('')).toBeUndefined();
});

test('a fixed segment wins over a parameter, and a dead end is left again', () => {
  const router = routerOf('/a/{x}/b', '/a/fixed/c');
  expect(router.find('/a/fixed/c')?.leaf).toBe('/a/fixed/c');
  expect(router.find('/a/fixed/b')).toEqual({ leaf: '/a/{x}/b', params: { x: 'fixed' } });
});

describe('a parameter that takes the rest of the path', () => {
  const router = new PathRouter<string>();
  router.add('/proxy/{path}', 'rest', 'path');
  router.add('/proxy/own', 'own');
  router.add('/proxy/{name}:verb', 'verb');

  test('is handed over as it was sent', () => {
    for (const path of ['v1', 'v1/a%2Fb:find', 'a//b', 'v1/', '%zz', '../x', 'a:b:c']) {
      expect(router.find(`/proxy/${path}`)).toEqual({ leaf: 'rest', params: { path } });
    }
  });

  test('comes last, and is never empty', () => {
    expect(router.find('/proxy/own')?.leaf).toBe('own');
    expect(router.find('/proxy/own/more')?.params).toEqual({ path: 'own/more' });
    expect(router.find('/proxy/a:verb')).toEqual({ leaf: 'verb', params: { name: 'a' } });
    expect(router.find('/proxy/a:other')?.leaf).toBe('rest');
    expect(router.find('/proxy/')).toBeUndefined();
    expect(router.find('/proxy')).toBeUndefined();
  });

  test('decodes the parameters before it', () => {
    const two = new PathRouter<string>();
    two.add('/{place}/files/{path}', 'file', 'path');
    expect(two.find('/a%20b/files/c%20d/e')?.params).toEqual({ place: 'a b', path: 'c%20d/e' });
    expect(two.find('/%zz/files/c')).toBeUndefined();
  });

  test('must stand alone at the end, and only one may', () => {
    expect(() => router.add('/x/{path}/y', 'x', 'path')).toThrow('must end in /{path}');
    expect(() => router.add('/x/{path}:y', 'x', 'path')).toThrow('must end in /{path}');
    expect(() => router.add('/proxy/{other}', 'x', 'other')).toThrow('same requests');
  });
});

test('two templates for the same paths are refused', () => {
  expect(() => routerOf('/a/{x}', '/a/{y}')).toThrow('/a/{y} matches the same requests');
  expect(() => routerOf('/a/{x}{y}')).toThrow('must contain one {parameter}');
});
