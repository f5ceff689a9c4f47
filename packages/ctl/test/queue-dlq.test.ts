import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { faultsOf, QueueServer, tokens } from './queue-server.js';

const server = new QueueServer();
let serial = 0;
let queue = '';
beforeAll(() => server.start());
beforeEach(async () => {
  queue = `mail.${++serial}`;
  await server.makeQueue(queue);
});
afterAll(() => server.remove());

const stats = () => server.json(['stats', queue]);
const env = { MILLRACE_QUEUE_TOKEN: tokens.operator };

describe('browsing', () => {
  test('dlq list shows the latest first, filtered and page by page', async () => {
    const ids = await server.bury(queue, ['refuse.a', 'refuse.b', 'break.a']);
    const page = await server.json(['dlq', 'list', queue], { env });
    expect(faultsOf('DlqPage', page)).toEqual([]);
    expect(page.tasks.map(({ id }: { id: string }) => id)).toEqual(ids.toReversed());
    const some = await server.json([
      'dlq',
      'list',
      queue,
      '--error-type',
      'HTTP_4XX',
      '--from',
      '1h',
    ]);
    expect(some.tasks).toHaveLength(2);
    expect((await server.json(['dlq', 'list', queue, '--to', '1h'])).tasks).toEqual([]);
    const one = await server.json(['dlq', 'list', queue, '--handler-ref', 'break.a']);
    expect(one.tasks.map(({ id }: { id: string }) => id)).toEqual([ids[2]]);
    const first = await server.ctl(['dlq', 'list', queue, '--limit', '2']);
    const cursor = /^There are more. Continue with --cursor (\S+)$/m.exec(first.out)?.[1] ?? '';
    const rest = await server.json(['dlq', 'list', queue, '--cursor', cursor]);
    expect(rest.tasks.map(({ id }: { id: string }) => id)).toEqual([ids[0]]);
    expect(await server.ok(['dlq', 'list', queue, '--handler-ref', 'none'])).toBe(
      'No dead tasks.\n',
    );
  });

  test('dlq groups counts them by kind', async () => {
    await server.bury(queue, ['refuse.a', 'refuse.a', 'break.a']);
    const found = await server.json(['dlq', 'groups', queue], { env });
    expect(faultsOf('DlqGroups', found)).toEqual([]);
    expect(found.groups.map(({ count }: { count: number }) => count)).toEqual([2, 1]);
    const screen = await server.ok(['dlq', 'groups', queue]);
    expect(screen).toMatch(/^TASKS +ERROR +HTTP +HANDLER +FIRST +LAST +EXAMPLE\n/);
    expect(screen).toMatch(/3 tasks in 2 groups\.\n$/);
  });
});

describe('redrive and purge', () => {
  test('by ids act at once', async () => {
    const [first = '', second = '', third = ''] = await server.bury(queue, [
      'refuse.a',
      'refuse.b',
      'break.a',
    ]);
    expect(await server.json(['redrive', queue, first.toLowerCase(), '--dry-run'])).toEqual({
      count: 1,
    });
    expect(await server.ok(['purge', queue, first])).toBe(`Purged 1 task of ${queue}.\n`);
    const gone = await server.ctl(['get', first, '--json']);
    expect(JSON.parse(gone.err).error.code).toBe('TASK_NOT_FOUND');
    const piped = { input: `${second}\n${third}\n${first}\n`, env };
    expect(await server.json(['redrive', queue, '-', '--rate', '0'], piped)).toEqual({ count: 2 });
    const task = await server.json(['get', second]);
    expect(task.redrive_count).toBe(1);
  });

  test('by a filter ask first, and do nothing without a yes', async () => {
    await server.bury(queue, ['refuse.a', 'refuse.a', 'break.a']);
    const filter = ['--http-status', '404', '--handler-ref', 'refuse.a'];
    for (const typed of ['n\n', '\n', 'yeah\n', '']) {
      const no = await server.ctl(['purge', queue, ...filter], { typed });
      expect([no.code, no.out]).toEqual([1, '']);
      expect(no.err).toContain(`Purge 2 tasks of ${queue}? They are deleted permanently. [y/N] `);
      expect(no.err).toContain('ctl: Nothing was changed.\n');
    }
    expect((await stats()).dlq_depth).toBe(3);
    const yes = await server.ctl(['purge', queue, ...filter], { typed: 'y\n' });
    expect(yes).toMatchObject({ code: 0, out: `Purged 2 tasks of ${queue}.\n` });
    expect((await stats()).dlq_depth).toBe(1);
    const nothing = await server.ctl(['redrive', queue, ...filter], { typed: '' });
    expect(nothing).toMatchObject({ code: 0, out: `Redrove 0 tasks of ${queue}.\n`, err: '' });
  });

  test('without a terminal need --yes', async () => {
    await server.bury(queue, ['refuse.a']);
    for (const args of [
      ['redrive', queue, '--all'],
      ['purge', queue, '--error-type', 'HTTP_4XX'],
    ]) {
      const refused = await server.ctl(args);
      expect([refused.code, refused.out]).toEqual([2, '']);
      expect(refused.err).toContain('Add --yes, or --dry-run to count.');
    }
    expect(await server.ok(['purge', queue, '--all', '--dry-run'])).toBe(
      `Would purge 1 task of ${queue}.\n`,
    );
    expect((await stats()).dlq_depth).toBe(1);
    expect(await server.json(['purge', queue, '--all', '--yes'])).toEqual({ count: 1 });
    expect((await stats()).dlq_depth).toBe(0);
  });

  /** A server that has more to do than it can in one call. */
  async function slowServer(answers: readonly object[]) {
    const bodies: any[] = [];
    const slow = createServer((request, response) => {
      let body = '';
      request.on('data', (chunk: Buffer) => (body += chunk.toString()));
      request.on('end', () => {
        bodies.push(JSON.parse(body));
        response.setHeader('date', 'Mon, 02 Mar 2026 09:15:00 GMT');
        response.end(JSON.stringify(answers[bodies.length - 1]));
      });
    }).listen(0, '127.0.0.1');
    await once(slow, 'listening');
    onTestFinished(() => void slow.close());
    return { url: `http://127.0.0.1:${(slow.address() as AddressInfo).port}`, bodies };
  }

  test('a call that stops early is repeated, for what was dead when it began', async () => {
    const answers = [{ count: 7, complete: false }, { count: 5, complete: false }, { count: 1 }];
    const { url, bodies } = await slowServer(answers);
    const args = ['redrive', 'mail', '--error-type', 'TIMEOUT', '--rate', '9', '--yes'];
    expect(await server.json([...args, '--url', url])).toEqual({ count: 13 });
    const filter = { error_type: 'TIMEOUT' };
    expect(bodies[0]).toEqual({ filter, rate_per_second: 9 });
    expect(bodies[1].filter.to).toMatch(/^2026-03-02T09:15:0[01]\.\d{3}Z$/);
    expect(bodies[2].filter).toEqual(bodies[1].filter);
  });

  test('what was agreed to is what is done: a count ends at its own moment', async () => {
    const { url, bodies } = await slowServer([{ count: 2 }, { count: 2 }]);
    const args = ['purge', 'mail', '--all', '--url', url];
    expect((await server.ctl(args, { typed: 'yes\n' })).out).toBe('Purged 2 tasks of mail.\n');
    expect(bodies[0]).toEqual({ filter: {}, dry_run: true });
    expect(bodies[1].filter.to).toMatch(/^2026-03-02T09:15:0[01]\.\d{3}Z$/);
  });

  test('a search that gets no further ends', async () => {
    const answers = [
      { count: 3, complete: false },
      { count: 0, complete: false },
    ];
    const { url } = await slowServer(answers);
    const { code, err } = await server.ctl(['purge', 'mail', '--all', '--yes', '--url', url]);
    expect(code).toBe(1);
    expect(err).toContain('ctl: Purged 3 tasks; then the server searched for 25 seconds');
    const partial = await slowServer([{ count: 9, complete: false }]);
    const count = ['purge', 'mail', '--all', '--dry-run', '--url', partial.url];
    expect(await server.ok(count)).toBe('Would purge at least 9 tasks of mail.\n');
  });
});
