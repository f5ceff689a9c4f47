import { describe, expect, test } from 'vitest';
import type { Job } from '../core/pipeline.js';
import { tailOf } from '../sessions/answer.js';
import { placeholdersIn, promptOf } from './definition.js';

function ended(id: string, output: string | null, status: Job['status'] = 'done'): Job {
  const rest = { backend: null, depends_on: [], session_id: null } as const;
  return { id, prompt: 'x', run_if: 'success', status, output, ...rest, depends_on: [] };
}

describe('the prompt of a job', () => {
  test('without dependencies is what was written', () => {
    expect(promptOf({ prompt: 'Go.', depends_on: [] }, [])).toBe('Go.');
  });

  test('has the output of each dependency under a heading of its own', () => {
    const jobs = [ended('a', 'One.'), ended('b', null, 'skipped'), ended('c', '', 'failed')];
    expect(promptOf({ prompt: 'Go.', depends_on: ['a', 'b', 'c'] }, jobs)).toBe(
      'Go.\n\n## Output of a (done)\n\nOne.\n\n## Output of b (skipped)\n\n(skipped)\n\n' +
        '## Output of c (failed)\n\n(no output)',
    );
  });

  test('has an output where the placeholder stands, and then not below', () => {
    const jobs = [ended('a', 'One.'), ended('b.2', 'Two: {{jobs.a.output}}')];
    const prompt = 'Say {{jobs.b.2.output}} and {{ jobs.b.2.output }}.';
    expect(promptOf({ prompt, depends_on: ['a', 'b.2'] }, jobs)).toBe(
      'Say Two: {{jobs.a.output}} and Two: {{jobs.a.output}}.\n\n## Output of a (done)\n\nOne.',
    );
    expect(placeholdersIn(prompt)).toEqual(['b.2']);
  });

  test('never grows beyond what a prompt may have, and keeps the ends', () => {
    const jobs = Array.from({ length: 200 }, (_, n) =>
      ended(`job-${n}`, `${'x'.repeat(16_000)}end`),
    );
    const depends_on = jobs.map(({ id }) => id);
    for (const length of [10, 100_000, 200_000, 262_000, 262_144]) {
      const text = promptOf({ prompt: 'p'.repeat(length), depends_on }, jobs);
      expect(text.length).toBeLessThanOrEqual(262_144);
    }
    expect(promptOf({ prompt: 'p', depends_on }, jobs).split('end').length).toBe(201);
  });
});

describe('the end of a text', () => {
  test('is the text when it is short enough', () => {
    expect(tailOf('  one\ntwo \n', 100)).toBe('one\ntwo');
  });

  test('begins with a line where that costs little, and with a character always', () => {
    expect(tailOf(`${'a'.repeat(50)}\nlast line here`, 20)).toBe('last line here');
    expect(tailOf('ü'.repeat(30), 21)).toBe('ü'.repeat(10));
  });

  test('holds nothing that a record could not', () => {
    expect(tailOf('a\0b\ud800', 100)).toBe('a\u{fffd}b\u{fffd}');
  });

  test('holds no keys: it may be typed to another agent', () => {
    expect(tailOf('a\u001B[201~\u0004\u009Bb\tc\r\nd', 100)).toBe(
      'a\u{fffd}[201~\u{fffd}\u{fffd}b\tc\r\nd',
    );
  });
});
