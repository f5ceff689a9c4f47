import { openApiDocument } from '@millrace/contract/documents';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { ctl, describedCommands, wordsOf } from '../src/in-process.test-support.js';
import { FakeDaemon } from './fake-daemon.js';

/* Every view of the queue and the daemon in every output format, from the examples of the contract. */

type Node = Readonly<Record<string, unknown>>;

const documents = (['queue', 'daemon'] as const).map((name) => openApiDocument(name) as Node);

function follow(document: Node, node: unknown): Node {
  const { $ref: pointer } = (node ?? {}) as { $ref?: string };
  if (pointer === undefined) return (node ?? {}) as Node;
  const steps = pointer.slice(2).split('/');
  return steps.reduce<Node>((at, step) => at[step] as Node, document);
}

/** The first example of the response to a GET of this path. */
function exampleOf(path: string): unknown {
  for (const document of documents) {
    for (const [template, item] of Object.entries(document['paths'] as Node)) {
      const pattern = new RegExp(`^${template.replaceAll(/\{[^}]+\}/g, '[^/]+')}$`);
      const operation = (item as Node)['get'] as Node | undefined;
      if (!operation || !pattern.test(path)) continue;
      const answer = follow(document, (operation['responses'] as Node)['200']);
      const media = ((answer['content'] ?? {}) as Node)['application/json'] as Node | undefined;
      const [example] = Object.values((media?.['examples'] ?? {}) as Node);
      if (example) return follow(document, example)['value'];
    }
  }
  return undefined;
}

const noServer = /^ctl (?:db|service|status|queue (?:token|secret)|daemon status)\b/;
const watched = (await describedCommands()).filter(
  ({ path, options }) => options.some(({ long }) => long === '--watch') && !noServer.test(path),
);
/** One document of figures, in which nothing has a name. */
const nameless = /^ctl (?:usage (?:spend|savings|insights|blocks|value)|cost|queue stats)\b/;
/** Things of the examples by the name of an argument; otherwise a queue is meant. */
const samples: Readonly<Record<string, string>> = {
  agent: 'docs',
  pipeline: 'upload',
  id: '01JD3Z8Q4M7X2N5V9RTBKWCH6E',
};

let server: FakeDaemon;
beforeAll(async () => {
  server = await FakeDaemon.start();
  // Paths are not known before a command calls them.
  server.routes.get = ((line: string) => {
    const body = exampleOf(line.replace('GET ', ''));
    return body === undefined
      ? { status: 404, body: { code: 'NOT_FOUND', detail: `No example of ${line}.` } }
      : { body };
  }) as never;
});
afterAll(() => server.stop());

describe.each(watched.map((command) => [command.path, command] as const))('%s', (path, command) => {
  const values = command.arguments
    .filter(({ required }) => required)
    .map(({ name }) => samples[name] ?? 'mail');
  const show = (...more: string[]) =>
    ctl([...wordsOf(command), ...values, '--url', server.url, ...more], {
      env: { MILLRACE_QUEUE_TOKEN: 'mr_a_b', MILLRACE_TOKEN: 'x' },
    });

  test('table, json and yaml show one document', async () => {
    const table = await show();
    expect(table, table.err).toMatchObject({ err: '' });
    expect(table.out.trim()).not.toBe('');
    expect(table.out).not.toContain('\u001B');
    expect((await show('-o', 'table')).out).toBe(table.out);
    const json = await show('-o', 'json');
    const document: unknown = JSON.parse(json.out);
    expect((await show('--json')).out).toBe(json.out);
    expect(parse((await show('-o', 'yaml')).out)).toEqual(document);
    expect(json.code).toBe(table.code);
  });

  test('name prints one name per line, or says that there is none', async () => {
    const { code, out, err } = await show('-o', 'name');
    if (nameless.test(path)) {
      expect([code, out, err]).toEqual([2, '', expect.stringContaining('-o name works with')]);
    } else {
      expect([err, code]).toEqual(['', (await show()).code]);
      expect(out).toMatch(/^(?:\S+\n)*$/);
      const isEmpty = /^\{\s*"\w+": \[\]/.test((await show('--json')).out);
      expect(out === '').toBe(isEmpty);
    }
  });
});

test.each(['agent', 'repo', 'day'])(
  'ctl usage spend --by %s -o name prints the keys of that table',
  async (by) => {
    const args = ['usage', 'spend', '--by', by, '-o', 'name', '--url', server.url];
    const { code, out, err } = await ctl(args, { env: { MILLRACE_TOKEN: 'x' } });
    const rollup = exampleOf('/api/v1/spend') as Record<string, { key: string }[]>;
    const keys = rollup[`by_${by}`]!.map(({ key }) => `${key}\n`);
    expect(keys.length).toBeGreaterThan(0);
    expect([code, err, out]).toEqual([0, '', keys.join('')]);
  },
);

test('ctl status -o name prints the servers that run', async () => {
  const env = {
    MILLRACE_DB_URL: 'grpc://127.0.0.1:1',
    MILLRACE_QUEUE_URL: server.url,
    MILLRACE_QUEUE_TOKEN: 'mr_a_b',
    MILLRACE_URL: server.url,
  };
  const { code, out } = await ctl(['status', '-o', 'name'], { env });
  expect([code, out]).toEqual([1, 'queue\ndaemon\n']);
});
