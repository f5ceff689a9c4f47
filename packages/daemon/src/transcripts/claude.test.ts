import { afterEach, beforeEach, expect, test } from 'vitest';
import { noTokens } from './reader.js';
import {
  claudeLine,
  claudeNoise,
  sumOf,
  TranscriptHome,
  truth,
} from '../../test/support/transcripts.js';

let home: TranscriptHome;
beforeEach(async () => {
  home = await new TranscriptHome().open();
});
afterEach(() => home.remove());

async function counted(text: string, name = 'session-1') {
  home.append(home.claude(name), text);
  await home.scan();
  return home.total();
}

test('a message counts with its tokens, those of the cache apart', async () => {
  const tokens = {
    input: 3,
    output: 250,
    cacheRead: 40_000,
    cacheWrite: 1_200,
    cacheWriteLong: 200,
  };
  expect(await counted(claudeLine(truth('m1', { tokens })))).toEqual(tokens);
});

test('the lines of a message that is streamed count as its last one', async () => {
  const whole = truth('m1', { tokens: { ...noTokens, input: 10, output: 300 } });
  const begun = { ...whole, tokens: { ...noTokens, input: 10, output: 1 } };
  expect(await counted(claudeLine(begun) + claudeLine(begun) + claudeLine(whole))).toEqual(
    whole.tokens,
  );
  // And one that comes late, in another scan, changes nothing.
  expect(await counted(claudeLine(begun))).toEqual(whole.tokens);
});

test('what is streamed over two scans is corrected by the second', async () => {
  const begun = truth('m1', { tokens: { ...noTokens, input: 10, output: 1 } });
  const whole = { ...begun, tokens: { ...noTokens, input: 10, output: 300 } };
  expect(await counted(claudeLine(begun))).toEqual(begun.tokens);
  expect(await counted(claudeLine(whole))).toEqual(whole.tokens);
});

test('the same message in the files of two conversations counts once, for the original', async () => {
  const original = truth('m1', { session: 'zz-first' });
  home.write(
    home.claude('aa-fork'),
    claudeLine({ ...original, session: 'aa-fork', at: original.at + 5 }),
  );
  home.write(home.claude('zz-first'), claudeLine(original));
  const forked = { forkedFrom: { sessionId: 'zz-first', messageUuid: 'x' }, sessionId: 'aa-again' };
  home.write(home.claude('aa-again'), claudeLine(original, forked));
  await home.scan();
  expect(home.total()).toEqual(original.tokens);
  expect(home.total('zz-first')).toEqual(original.tokens);
});

test('subagents count for the session they work for, in files of their own too', async () => {
  const [own, aside] = [truth('m1'), truth('m2')];
  home.write(home.claude('session-1'), claudeLine(own));
  const below = home.claude('session-1/subagents/agent-abc');
  home.write(below, claudeLine(aside, { isSidechain: true, agentId: 'abc' }));
  await home.scan();
  expect(home.total('session-1')).toEqual(sumOf([own, aside]));
});

test('what is no answer of a model does not count', async () => {
  expect(await counted(claudeNoise('session-1'))).toEqual(noTokens);
  expect(home.log.lines).toEqual([]);
});

test('messages with half a name or none are kept apart as far as they can be', async () => {
  const message = truth('m1');
  const { tokens } = message;
  // By the message alone: the lines of one answer.
  const nameless = claudeLine(message, { requestId: undefined });
  expect(await counted(nameless + nameless)).toEqual(tokens);
  // By the line's own name.
  const anonymous = (uuid: string | undefined) =>
    claudeLine({ ...message, id: '' }, { requestId: undefined, uuid });
  expect(await counted(anonymous('a') + anonymous('a') + anonymous('b'))).toEqual(
    sumOf([message, message, message]),
  );
  // By where it stands: two lines are two, and one that is read twice is one.
  expect(await counted(anonymous(undefined) + anonymous(undefined))).toEqual(
    sumOf(Array.from({ length: 5 }, () => message)),
  );
  await home.reopen();
  home.append(home.claude('session-1'), '\n');
  await home.scan();
  expect(home.total()).toEqual(sumOf(Array.from({ length: 5 }, () => message)));
});

test('a line without a session belongs to the session its file is named after', async () => {
  const message = truth('m1');
  await counted(claudeLine(message, { sessionId: undefined, cwd: undefined }), 'by-its-file');
  expect(home.total('by-its-file')).toEqual(message.tokens);
});

test('lines that cannot be counted are named, and the rest counts', async () => {
  const good = truth('good');
  const line = claudeLine(truth('bad'));
  const text =
    claudeLine(good) +
    line.replace('"input_tokens":10', '"input_tokens":-1') +
    line.replace('"input_tokens":10', '"input_tokens":1.5') +
    line.replace('"input_tokens":10', '"input_tokens":"many"') +
    line.replace(/"timestamp":"[^"]+"/, '"timestamp":"yesterday"') +
    `${line.slice(0, 400)}\n` +
    'not JSON at all\n' +
    `${line.trimEnd()}garbage}\n`;
  expect(await counted(text)).toEqual(good.tokens);
  const [state] = home.tally.states.values();
  expect(state).toMatchObject({ broken: 7 });
  expect(state!.firstBroken!.offset).toBe(Buffer.byteLength(claudeLine(good)));
  expect(home.log.lines).toMatchObject([
    { level: 'warn', fields: { lines: 7, path: home.claude('session-1') } },
  ]);
  // They are logged once, not with every scan.
  await counted(claudeLine(good));
  expect(home.log.lines).toHaveLength(1);
});

test('claude transcripts: CLAUDE_CONFIG_DIR is read', async () => {
  const { claudeReader } = await import('./claude.js');
  const roots = (environment: Record<string, string>) =>
    claudeReader.roots({ home: '/home/ada', environment });
  expect(roots({})).toEqual(['/home/ada/.claude/projects', '/home/ada/.config/claude/projects']);
  expect(roots({ CLAUDE_CONFIG_DIR: '/a, /b' })).toEqual(['/a/projects', '/b/projects']);
});
