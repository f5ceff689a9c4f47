import { expect, test } from 'vitest';
import { checkOpen, type Question } from './question.js';

test.each([
  [{ status: 'answered', answered_by: 'terminal' }, 'was already answered by terminal.'],
  [{ status: 'answered', answered_by: null }, 'was already answered.'],
  [{ status: 'closed', answered_by: null }, 'is closed: the agent does not wait'],
] as const)('question: an answer to one that is not open says what to do: %j', (facts, what) => {
  const question = { id: '01K9ZQ', ...facts } as unknown as Question;
  const next = 'List the open ones with `ctl agent questions`.';
  expect(() => checkOpen(question)).toThrow(what);
  expect(() => checkOpen(question)).toThrow(next);
  expect(() => checkOpen({ ...question, status: 'open' })).not.toThrow();
});
