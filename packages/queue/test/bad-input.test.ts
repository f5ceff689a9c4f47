import { beforeAll, describe, expect, test } from 'vitest';
import { batch, purge, put, startRefusing, submit, ulid, type Case } from './support/bad-input.js';
import { plainConfig, tokens } from './support/server.js';

const { server, refusesAll, leavesNoTrace } = await startRefusing();
const dlq = (query: string) => ({ path: `/v1/queues/mail/dlq${query}` });
const audit = (query: string) => ({ path: `/v1/admin/audit${query}` });

describe('tokens', () => {
  const cases: Case[] = [
    ['no token', { token: undefined }, 401, 'UNAUTHENTICATED'],
    ['an empty token', { token: '' }, 401, 'UNAUTHENTICATED'],
    ['an unknown token', { token: 'nope' }, 401, 'UNAUTHENTICATED'],
    ['an expired token', { token: tokens.expired }, 401, 'UNAUTHENTICATED'],
    ['a token in upper case', { token: tokens.root.toUpperCase() }, 401, 'UNAUTHENTICATED'],
    ['a token with more behind it', { token: `${tokens.root} x` }, 401, 'UNAUTHENTICATED'],
    ['a token longer than any', { token: 'x'.repeat(2_000) }, 401, 'UNAUTHENTICATED'],
    [
      'the hash of a token for the token',
      { token: '2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b' },
      401,
      'UNAUTHENTICATED',
    ],
    [
      'basic credentials',
      { token: undefined, headers: { authorization: `Basic ${btoa('root:x')}` } },
      401,
      'UNAUTHENTICATED',
    ],
    [
      'the scheme alone',
      { token: undefined, headers: { authorization: 'Bearer' } },
      401,
      'UNAUTHENTICATED',
    ],
    [
      'a token in the query',
      { token: undefined, path: `/v1/queues/mail/stats?access_token=${tokens.root}` },
      401,
      'UNAUTHENTICATED',
    ],
    [
      'an unknown path without a token',
      { token: undefined, path: '/v1/x' },
      401,
      'UNAUTHENTICATED',
    ],
    ['the bare prefix without a token', { token: undefined, path: '/v1' }, 401, 'UNAUTHENTICATED'],
    [
      'a wrong method without a token',
      { token: undefined, method: 'DELETE', path: '/v1/queues/mail/stats' },
      401,
      'UNAUTHENTICATED',
    ],
    ['a queue without a grant', { token: tokens.stranger }, 403, 'FORBIDDEN'],
    [
      'a queue without a grant that is not there',
      { token: tokens.stranger, path: '/v1/queues/nowhere/stats' },
      403,
      'FORBIDDEN',
    ],
    [
      'a name that cannot be a queue, without a grant',
      { token: tokens.stranger, path: '/v1/queues/NO%20WAY/stats' },
      403,
      'FORBIDDEN',
    ],
    ['no grant at all', { token: tokens.nobody }, 403, 'FORBIDDEN'],
    [
      'a role too low, whatever the body',
      { ...purge, token: tokens.submitter, body: '{' },
      403,
      'FORBIDDEN',
    ],
  ];
  refusesAll({ path: '/v1/queues/mail/stats' }, cases);
});

describe('routes and methods', () => {
  const cases: Case[] = [
    ['the root', { path: '/' }, 404, 'NOT_FOUND'],
    ['an unknown path', { path: '/v1/nothing' }, 404, 'NOT_FOUND'],
    ['another version', { path: '/v2/queues/mail/stats' }, 404, 'NOT_FOUND'],
    ['a slash at the end', { path: '/v1/queues/mail/stats/' }, 404, 'NOT_FOUND'],
    ['a doubled slash', { path: '//v1/queues/mail/stats' }, 404, 'NOT_FOUND'],
    ['an empty queue name', { path: '/v1/queues//stats' }, 404, 'NOT_FOUND'],
    ['an unknown verb', { method: 'POST', path: '/v1/admin/queues/mail:stop' }, 404, 'NOT_FOUND'],
    [
      'a verb in upper case',
      { method: 'POST', path: '/v1/admin/queues/mail:PAUSE' },
      404,
      'NOT_FOUND',
    ],
    [
      'an encoded colon',
      { method: 'POST', path: '/v1/admin/queues/mail%3Apause' },
      405,
      'METHOD_NOT_ALLOWED',
    ],
    ['a path that cannot be decoded', { path: '/v1/queues/%zz/stats' }, 404, 'NOT_FOUND'],
    ['bytes that are no UTF-8', { path: '/v1/queues/%ff/stats' }, 404, 'NOT_FOUND'],
    ['metrics, which live elsewhere', { path: '/metrics' }, 404, 'NOT_FOUND'],
    ['GET of a batch', { path: '/v1/queues/mail/tasks:batch' }, 405, 'METHOD_NOT_ALLOWED'],
    [
      'PUT of a submit',
      { method: 'PUT', path: '/v1/queues/mail/tasks', body: {} },
      405,
      'METHOD_NOT_ALLOWED',
    ],
    [
      'DELETE of a task',
      { method: 'DELETE', path: `/v1/tasks/${ulid}` },
      405,
      'METHOD_NOT_ALLOWED',
    ],
    ['PATCH of a config', { ...put, method: 'PATCH', body: {} }, 405, 'METHOD_NOT_ALLOWED'],
    ['GET of a pause', { path: '/v1/admin/queues/mail:pause' }, 405, 'METHOD_NOT_ALLOWED'],
    [
      'POST of the list of queues',
      { method: 'POST', path: '/v1/admin/queues' },
      405,
      'METHOD_NOT_ALLOWED',
    ],
    ['POST of the liveness', { method: 'POST', path: '/healthz' }, 405, 'METHOD_NOT_ALLOWED'],
    ['OPTIONS', { method: 'OPTIONS', path: '/v1/queues/mail/tasks' }, 405, 'METHOD_NOT_ALLOWED'],
  ];
  refusesAll({}, cases);

  test('a refused method gets the allowed methods', async () => {
    const answer = await server.as('root', { path: '/v1/queues/mail/tasks:batch' });
    expect(answer.headers.allow).toBe('POST');
    const config = await server.as('root', { method: 'POST', path: put.path });
    expect(config.headers.allow).toBe('GET, HEAD, PUT');
  });
});

describe('names and ids in paths', () => {
  const cases: Case[] = [
    ['a queue that is not there', { path: '/v1/queues/nowhere/stats' }, 404, 'QUEUE_NOT_FOUND'],
    ['a queue in upper case', { path: '/v1/queues/MAIL/stats' }, 404, 'QUEUE_NOT_FOUND'],
    ['a queue that starts with a dot', { path: '/v1/queues/.mail/stats' }, 404, 'QUEUE_NOT_FOUND'],
    ['a queue with a space', { path: '/v1/queues/ma%20il/stats' }, 404, 'QUEUE_NOT_FOUND'],
    ['a queue with an encoded slash', { path: '/v1/queues/ma%2Fil/stats' }, 404, 'QUEUE_NOT_FOUND'],
    ['a queue with a colon', { path: '/v1/queues/a:b/stats' }, 404, 'QUEUE_NOT_FOUND'],
    ['a queue with a NUL', { path: '/v1/queues/mail%00/stats' }, 404, 'QUEUE_NOT_FOUND'],
    [
      'a queue of 129 characters',
      { path: `/v1/queues/${'a'.repeat(129)}/stats` },
      404,
      'QUEUE_NOT_FOUND',
    ],
    [
      'a queue of letters beyond ASCII',
      { path: '/v1/queues/%C3%A4/stats' },
      404,
      'QUEUE_NOT_FOUND',
    ],
    ['an unknown task', { path: `/v1/tasks/${ulid}` }, 404, 'TASK_NOT_FOUND'],
    ['a short id', { path: '/v1/tasks/01JD3Z8Q4M7X2N5V9RTBKWCH6' }, 404, 'TASK_NOT_FOUND'],
    ['a long id', { path: `/v1/tasks/${ulid}0` }, 404, 'TASK_NOT_FOUND'],
    [
      'an id above the largest',
      { path: '/v1/tasks/80000000000000000000000000' },
      404,
      'TASK_NOT_FOUND',
    ],
    ['an id with an I', { path: '/v1/tasks/01JD3Z8Q4M7X2N5V9RTBKWCHIE' }, 404, 'TASK_NOT_FOUND'],
    ['an id with a U', { path: '/v1/tasks/01JD3Z8Q4M7X2N5V9RTBKWCHUE' }, 404, 'TASK_NOT_FOUND'],
    ['a UUID', { path: '/v1/tasks/6e8bc430-9c3a-11d9-9669-0800200c9a66' }, 404, 'TASK_NOT_FOUND'],
    [
      'a pause of nothing',
      { method: 'POST', path: '/v1/admin/queues/nowhere:pause' },
      404,
      'QUEUE_NOT_FOUND',
    ],
    [
      'a resume of nothing',
      { method: 'POST', path: '/v1/admin/queues/nowhere:resume' },
      404,
      'QUEUE_NOT_FOUND',
    ],
    [
      'a delete of nothing',
      { method: 'DELETE', path: '/v1/admin/queues/nowhere' },
      404,
      'QUEUE_NOT_FOUND',
    ],
    [
      'a probe of nothing',
      { method: 'POST', path: '/v1/admin/queues/nowhere:test' },
      404,
      'QUEUE_NOT_FOUND',
    ],
    ['a config of nothing', { path: '/v1/admin/queues/nowhere/config' }, 404, 'QUEUE_NOT_FOUND'],
    ['a config of a bad name', { path: '/v1/admin/queues/NO/config' }, 404, 'QUEUE_NOT_FOUND'],
    [
      'a queue that is not there before a bad task',
      { ...submit, path: '/v1/queues/nowhere/tasks', body: {} },
      404,
      'QUEUE_NOT_FOUND',
    ],
    [
      'a queue that is not there before a bad batch',
      { ...batch, path: '/v1/queues/nowhere/tasks:batch', body: {} },
      404,
      'QUEUE_NOT_FOUND',
    ],
    [
      'a queue that is not there before a bad selector',
      { ...purge, path: '/v1/queues/nowhere/dlq:purge', body: {} },
      404,
      'QUEUE_NOT_FOUND',
    ],
    [
      'a bad query before a queue that is not there',
      { path: '/v1/queues/nowhere/dlq?limit=0' },
      422,
      'INVALID_QUERY',
    ],
    [
      'bad JSON before a queue that is not there',
      { ...submit, path: '/v1/queues/nowhere/tasks', body: '{' },
      422,
      'INVALID_TASK',
    ],
  ];
  refusesAll({}, cases);
});

describe('bodies as bytes', () => {
  const invalid = (name: string, body: string | Uint8Array): Case => [
    name,
    { body },
    422,
    'INVALID_TASK',
  ];
  const cases: Case[] = [
    invalid('no body', ''),
    invalid('half an object', '{"handler_ref":'),
    invalid('two values', '{"handler_ref":"a"} {}'),
    invalid('a comma too many', '{"handler_ref":"a",}'),
    invalid('single quotes', "{'handler_ref':'a'}"),
    invalid('a comment', '{"handler_ref":"a"} // hi'),
    invalid('NaN', '{"handler_ref":"a","priority":NaN}'),
    invalid('a number with a leading zero', '{"handler_ref":"a","priority":04}'),
    invalid('a line break in a string', '{"handler_ref":"a\nb"}'),
    invalid('bytes that are no UTF-8', Buffer.from([0x7b, 0xff, 0xfe, 0x7d])),
    invalid('UTF-16', Buffer.from('{"handler_ref":"a"}', 'utf16le')),
    invalid('a planted prototype', '{"handler_ref":"a","__proto__":{"x":1}}'),
    invalid('a planted constructor', '{"handler_ref":"a","constructor":{"prototype":{"x":1}}}'),
    invalid('brackets without end', '['.repeat(100_000)),
    invalid('brackets too deep', `${'['.repeat(200)}${']'.repeat(200)}`),
    ['text', { body: 'handler_ref=a', contentType: 'text/plain' }, 415, 'UNSUPPORTED_MEDIA_TYPE'],
    [
      'a form',
      { body: 'handler_ref=a', contentType: 'application/x-www-form-urlencoded' },
      415,
      'UNSUPPORTED_MEDIA_TYPE',
    ],
    ['XML', { body: '<a/>', contentType: 'application/xml' }, 415, 'UNSUPPORTED_MEDIA_TYPE'],
    [
      'no media type',
      { body: '{"handler_ref":"a"}', contentType: null },
      415,
      'UNSUPPORTED_MEDIA_TYPE',
    ],
    [
      'a media type that is none',
      { body: '{}', contentType: 'json' },
      415,
      'UNSUPPORTED_MEDIA_TYPE',
    ],
    [
      'another charset',
      { body: '{}', contentType: 'application/json; charset=latin1' },
      415,
      'UNSUPPORTED_MEDIA_TYPE',
    ],
    [
      'a compressed body',
      { body: '{}', headers: { 'content-encoding': 'gzip' } },
      415,
      'UNSUPPORTED_MEDIA_TYPE',
    ],
    [
      'a body of more than 12 MiB',
      { body: Buffer.alloc(12 * 2 ** 20 + 1, 0x20) },
      413,
      'PAYLOAD_TOO_LARGE',
    ],
    [
      'one of more than 12 MiB that is no JSON type',
      { body: Buffer.alloc(12 * 2 ** 20 + 1), contentType: 'text/plain' },
      413,
      'PAYLOAD_TOO_LARGE',
    ],
    [
      'a batch of more than 16 MiB',
      { ...batch, body: Buffer.alloc(16 * 2 ** 20 + 1, 0x20) },
      413,
      'PAYLOAD_TOO_LARGE',
    ],
    [
      'a selector of more than 1 MiB',
      { ...purge, body: Buffer.alloc(2 ** 20 + 1, 0x20) },
      413,
      'PAYLOAD_TOO_LARGE',
    ],
    [
      'a config of more than 1 MiB',
      { ...put, body: Buffer.alloc(2 ** 20 + 1, 0x20) },
      413,
      'PAYLOAD_TOO_LARGE',
    ],
    ['a selector that is no JSON', { ...purge, body: '{' }, 422, 'INVALID_SELECTOR'],
    ['a config that is no JSON', { ...put, body: '{' }, 422, 'INVALID_CONFIG'],
    ['a batch that is no JSON', { ...batch, body: '[' }, 422, 'INVALID_TASK'],
  ];
  refusesAll(submit, cases);
});

describe('queries and cursors', () => {
  const badQuery = (query: string): Case => [`dlq${query}`, dlq(query), 422, 'INVALID_QUERY'];
  const badAudit = (query: string): Case => [`audit${query}`, audit(query), 422, 'INVALID_QUERY'];
  const stale = (cursor: string): Case => [
    `the cursor ${cursor.slice(0, 40)}`,
    dlq(`?cursor=${cursor}`),
    410,
    'STALE_CURSOR',
  ];
  const cases: Case[] = [
    badQuery('?limit=0'),
    badQuery('?limit=-1'),
    badQuery('?limit=1.5'),
    badQuery('?limit=abc'),
    badQuery('?limit='),
    badQuery('?limit=1e2'),
    badQuery('?limit=0x10'),
    badQuery('?limit=5&limit=6'),
    badQuery('?page=2'),
    badQuery('?Limit=5'),
    badQuery('?error_type='),
    badQuery('?error_type=%20'),
    badQuery(`?error_type=${'a'.repeat(129)}`),
    badQuery('?handler_ref=a%20b'),
    badQuery('?http_status=500'),
    badQuery('?from=yesterday'),
    badQuery('?from=2026-03-02'),
    badQuery('?from=2026-03-02T00:00:00'),
    badQuery('?from=2026-13-02T00:00:00Z'),
    badQuery('?to=2026-03-02T25:00:00Z'),
    badQuery('?to=1772442900'),
    badQuery('?from=2026-03-02T10:00:00+01:00'),
    badQuery('?to=9999-12-31T23:59:59-01:00'),
    badQuery('?cursor=a&cursor=b'),
    badQuery('?__proto__=a'),
    badAudit('?limit=0'),
    badAudit('?actor=me'),
    badAudit('?queue=NO'),
    badAudit('?from=now'),
    stale('x'),
    stale('c1'),
    stale('c1..'),
    stale('c1.AAAA.AAAA'),
    stale('c2.AAAA.AAAA'),
    stale('%00'),
    stale('%F0%9F%98%80'),
    stale('x'.repeat(4_000)),
    ['an audit cursor that is none', audit('?cursor=x'), 410, 'STALE_CURSOR'],
    [
      'an audit of a queue without a grant',
      { ...audit('?queue=mail'), token: tokens.stranger },
      403,
      'FORBIDDEN',
    ],
    [
      'validate_only=yes',
      { ...put, path: `${put.path}?validate_only=yes`, body: plainConfig },
      422,
      'INVALID_QUERY',
    ],
    [
      'validate_only=1',
      { ...put, path: `${put.path}?validate_only=1`, body: plainConfig },
      422,
      'INVALID_QUERY',
    ],
    [
      'an unknown flag of a config write',
      { ...put, path: `${put.path}?dry_run=true`, body: plainConfig },
      422,
      'INVALID_QUERY',
    ],
  ];
  refusesAll({}, cases);
});

describe('calls of handlers', () => {
  const at = (verb: string) => ({ method: 'POST', path: `/v1/tasks/${ulid}:${verb}` });
  const lease = { 'x-queue-lease-token': 'l1' };
  const cases: Case[] = [
    ['no lease token', at('complete'), 422, 'INVALID_TASK'],
    [
      'an empty lease token',
      { ...at('complete'), headers: { 'x-queue-lease-token': '' } },
      422,
      'INVALID_TASK',
    ],
    [
      'a lease token of 257 characters',
      { ...at('fail'), headers: { 'x-queue-lease-token': 'x'.repeat(257) } },
      422,
      'INVALID_TASK',
    ],
    ['no lease token before an unknown task', at('extend'), 422, 'INVALID_TASK'],
    ['an unknown task', { ...at('complete'), headers: lease }, 404, 'TASK_NOT_FOUND'],
    [
      'an id that is none',
      { method: 'POST', path: '/v1/tasks/nope:complete', headers: lease },
      404,
      'TASK_NOT_FOUND',
    ],
    [
      'an unknown task before a bad body',
      { ...at('fail'), headers: lease, body: { x: 1 } },
      404,
      'TASK_NOT_FOUND',
    ],
    [
      'bad JSON before an unknown task',
      { ...at('fail'), headers: lease, body: '{' },
      422,
      'INVALID_TASK',
    ],
    [
      'text',
      { ...at('fail'), headers: lease, body: 'x', contentType: 'text/plain' },
      415,
      'UNSUPPORTED_MEDIA_TYPE',
    ],
    [
      'too much',
      { ...at('fail'), headers: lease, body: Buffer.alloc(2 ** 20 + 1) },
      413,
      'PAYLOAD_TOO_LARGE',
    ],
    ['an extension without a body', { ...at('extend'), headers: lease }, 422, 'INVALID_TASK'],
  ];
  refusesAll({}, cases);

  describe('on a task that is there', () => {
    let path = '';
    beforeAll(async () => {
      const answer = await server.as('root', { ...submit, body: { handler_ref: 'a' } });
      path = `/v1/tasks/${answer.body['id']}`;
    });
    const own: [verb: string, body: unknown, status: number, code: string][] = [
      ['complete', { x: 1 }, 422, 'INVALID_TASK'],
      ['complete', [], 422, 'INVALID_TASK'],
      ['complete', {}, 409, 'LEASE_LOST'],
      ['fail', { retry: 'no' }, 422, 'INVALID_TASK'],
      ['fail', { error_type: 'A B' }, 422, 'INVALID_TASK'],
      ['fail', { error_type: '' }, 422, 'INVALID_TASK'],
      ['fail', { retry_after_ms: -1 }, 422, 'INVALID_TASK'],
      ['fail', { message: null }, 422, 'INVALID_TASK'],
      ['fail', {}, 409, 'LEASE_LOST'],
      ['extend', {}, 422, 'INVALID_TASK'],
      ['extend', { extend_ms: 0 }, 422, 'INVALID_TASK'],
      ['extend', { extend_ms: 604_800_001 }, 422, 'INVALID_TASK'],
      ['extend', { extend_ms: '5' }, 422, 'INVALID_TASK'],
      ['extend', { extend_ms: 5 }, 409, 'LEASE_LOST'],
    ];
    test.each(own)(':%s %j', async (verb, body, status, code) => {
      const request = { method: 'POST', path: `${path}:${verb}`, headers: lease, body };
      const answer = await server.as('root', request);
      expect(answer).toMatchObject({ status, body: { code } });
    });
  });
});

leavesNoTrace(1);
