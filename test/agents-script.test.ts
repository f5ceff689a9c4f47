import { expect, test } from 'vitest';
import { hasScript, nextAction, parseScript } from '../agents/models/script.mjs';
import {
  broken,
  changes,
  differences,
  flagsIn,
  reads,
  recorded,
  shapesOf,
} from '../agents/shapes.mjs';

const usage = { in: 100, out: 10, read: 0, write: 0, reason: 0 };
const act = (prompt: string, answers = 0, failures = new Map<string, number>()) =>
  nextAction({ prompt, answers }, failures);

test('fake model: a prompt without steps is answered with ok', () => {
  expect(hasScript('do it')).toBe(false);
  expect(act('do it')).toMatchObject({ kind: 'say', text: 'ok', usage });
});

test('fake model: steps run in order, one answer each', () => {
  const prompt = '[[tool shell {"command":"ls"}]] [[wait 50]] [[say done]]';
  expect(act(prompt)).toMatchObject({ kind: 'tool', name: 'shell', input: { command: 'ls' } });
  expect(act(prompt, 1)).toMatchObject({ kind: 'say', text: 'done', waitMs: 50 });
  expect(act(prompt, 2)).toMatchObject({ kind: 'say', text: 'ok' });
});

test('fake model: a failing step fails as often as it says', () => {
  const failures = new Map<string, number>();
  const prompt = '[[fail 429 retry-after=30 times=2]] [[say made it]]';
  const kinds = [1, 2, 3].map(() => act(prompt, 0, failures));
  expect(kinds[0]).toMatchObject({ kind: 'fail', status: 429, headers: { 'retry-after': '30' } });
  expect(kinds.map(({ kind }) => kind)).toEqual(['fail', 'fail', 'say']);
  expect(act('[[fail 500]]').kind).toBe('fail');
});

test('fake model: token counts are chosen by the prompt', () => {
  const { usage: chosen } = parseScript('[[usage in=120 out=7 read=900]] [[say x]]');
  expect(chosen).toEqual({ ...usage, in: 120, out: 7, read: 900 });
});

const usageRecord = (usage: object) => ({ type: 'assistant', message: { model: 'm', usage } });

test('versions: what a new version of a CLI changed is said by name', () => {
  const before = {
    transcript: shapesOf([usageRecord({ input_tokens: 1, tier: 'x' }), { type: 'summary' }]),
    flags: flagsIn('-p, --print  Print\n  --resume [id]  and --no-such--thing'),
    marks: ['working: its screen shows a turn under way'],
  };
  const after = {
    transcript: shapesOf([
      usageRecord({ tier: 'x', output: { text: 2 } }),
      { type: 'event_msg', payload: { type: 'token_count', files: { '/a/b.ts': 1 } } },
    ]),
    flags: flagsIn('  --print, --session-id <id>'),
    marks: [],
  };
  expect(before.flags).toEqual(['--no-such--thing', '--print', '--resume']);
  const lines = differences(before, after);
  expect(lines).toEqual([
    'transcript: record event_msg/token_count appeared',
    'transcript: record summary vanished',
    'transcript: assistant: field message.usage.output appeared',
    'transcript: assistant: field message.usage.output.text appeared',
    'transcript: assistant: field message.usage.input_tokens vanished',
    'flag --session-id appeared',
    'flag --no-such--thing vanished',
    'flag --resume vanished',
    'screen: mark working: its screen shows a turn under way vanished',
  ]);
  expect(after.transcript['event_msg/token_count']).toContain('payload.files.*');
  // Only what the daemon reads is a failure.
  const used = ['transcript: assistant: field message.usage.input_tokens', 'flag --session-id'];
  expect(broken(lines, used)).toEqual([
    'transcript: assistant: field message.usage.input_tokens vanished',
  ]);
  expect(changes({ cli: { '0.9.0': before, '0.10.0': after } })).toEqual([
    { name: 'cli', from: '0.9.0', to: '0.10.0', lines },
  ]);
});

test.each(Object.keys(reads))('versions: every recorded %s has what the daemon reads', (name) => {
  const versions = Object.entries(recorded()[name] ?? {});
  expect(versions.length).toBeGreaterThan(0);
  const nothing = { transcript: {}, output: {}, flags: [], marks: [] };
  for (const [version, shapes] of versions) {
    const there = differences(nothing, shapes).map((line) => line.replace(/ appeared$/, ''));
    const fields = Object.entries({
      ...prefixed('transcript', shapes),
      ...prefixed('output', shapes),
    });
    const known = [
      ...there,
      ...fields.flatMap(([at, all]) => all.map((each) => `${at}: field ${each}`)),
    ];
    expect([version, reads[name]!.filter((each) => !known.includes(each))]).toEqual([version, []]);
  }
});

function prefixed(
  part: 'transcript' | 'output',
  shapes: Record<typeof part, Record<string, string[]>>,
) {
  return Object.fromEntries(
    Object.entries(shapes[part]).map(([name, fields]) => [`${part}: ${name}`, fields]),
  );
}
