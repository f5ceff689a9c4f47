import { afterEach, beforeEach, expect, test } from 'vitest';
import { TestStore } from '../notify/notify.test-support.js';
import type { QuestionContent } from './question.js';
import { maxQuestions, Questions } from './questions.js';

let room: TestStore;
let questions: Questions;

const open = async () => {
  const { database } = await room.open();
  return Questions.open({ ...room.world, database });
};

beforeEach(async () => {
  room = new TestStore();
  questions = await open();
});
afterEach(() => room.dispose());

const content: QuestionContent = {
  kind: 'permission',
  title: 'Do you want to proceed?',
  body: 'make test',
  tool: 'execute',
  options: [
    { id: '1', label: 'Yes', kind: 'allow_once' },
    { id: '2', label: 'No', kind: 'reject' },
  ],
};
const taken = () => Promise.resolve('taken' as const);
const code = (code: string) => expect.objectContaining({ code });

test('questions: an answer is recorded with who gave it, and survives a restart', async () => {
  const { question } = await questions.add('s1', content);
  expect(question).toMatchObject({ status: 'open', answered_at: null, answer: null });
  const given: string[] = [];
  const answered = await questions.answer(question.id, { option_id: '2' }, 'token', (_, answer) => {
    given.push(answer);
    return taken();
  });
  expect(given).toEqual(['2']);
  expect(answered).toMatchObject({ status: 'answered', answered_by: 'token', answer: '2' });
  await room.closeStore();
  questions = await open();
  expect(questions.get(question.id)).toEqual(answered);
  expect(room.log.lines.at(-1)).toMatchObject({
    message: 'question ended',
    fields: { by: 'token', option: 'reject' },
  });
});

test('questions: of two answers at once the first counts', async () => {
  const { question } = await questions.add('s1', content);
  const both = await Promise.allSettled([
    questions.answer(question.id, { option_id: '1' }, 'token', taken),
    questions.answer(question.id, { option_id: '2' }, 'browser', taken),
  ]);
  expect(both.map(({ status }) => status)).toEqual(['fulfilled', 'rejected']);
  expect(both[1]).toMatchObject({ reason: code('QUESTION_CLOSED') });
  expect(questions.get(question.id).answer).toBe('1');
});

test('questions: an answer that is not taken leaves the question open', async () => {
  const { question } = await questions.add('s1', content);
  const stuck = () => Promise.reject(new Error('stuck'));
  await expect(questions.answer(question.id, { option_id: '1' }, 'x', stuck)).rejects.toThrow();
  expect(questions.get(question.id).status).toBe('open');
});

test('questions: one that is gone from the screen was answered at the terminal', async () => {
  const { question } = await questions.add('s1', content);
  const gone = () => Promise.resolve('gone' as const);
  await expect(questions.answer(question.id, { option_id: '1' }, 'x', gone)).rejects.toEqual(
    code('QUESTION_CLOSED'),
  );
  expect(questions.get(question.id)).toMatchObject({ answered_by: 'terminal', answer: null });
});

test('questions: unknown ids, options and texts are refused', async () => {
  const { question } = await questions.add('s1', content);
  const answer = (id: string, request: object) => questions.answer(id, request, 'x', taken);
  await expect(answer('nobody', { option_id: '1' })).rejects.toEqual(code('QUESTION_NOT_FOUND'));
  await expect(answer(question.id, { option_id: '3' })).rejects.toEqual(code('UNKNOWN_OPTION'));
  await expect(answer(question.id, { text: 'yes' })).rejects.toEqual(code('UNKNOWN_OPTION'));
  const typed = await questions.add('s1', { ...content, kind: 'text', options: [] });
  const answered = await answer(typed.question.id, { text: 'use port 8080' });
  expect(answered.answer).toBe('use port 8080');
});

test('questions: are listed newest first, by status and by session', async () => {
  const first = await questions.add('s1', content);
  room.clock.advance(5);
  const second = await questions.add('s2', content);
  await questions.close(first.question.id);
  const ids = (filter: object) => questions.list({ limit: 10, ...filter }).map(({ id }) => id);
  expect(ids({})).toEqual([second.question.id, first.question.id]);
  expect(ids({ status: 'open' })).toEqual([second.question.id]);
  expect(ids({ sessionId: 's1' })).toEqual([first.question.id]);
  expect(ids({ limit: 1 })).toEqual([second.question.id]);
  expect([...questions.askingSessions()]).toEqual(['s2']);
});

test('questions: the oldest ended ones make room, open ones stay', async () => {
  const { question: open } = await questions.add('s1', content);
  room.clock.advance(1);
  const { question: old } = await questions.add('s1', { ...content, title: 'Another?' });
  await questions.close(old.id);
  for (let n = 2; n <= maxQuestions; n++) {
    room.clock.advance(1);
    await questions.close((await questions.add('s2', content)).question.id);
  }
  expect(questions.list({ limit: 5_000 })).toHaveLength(maxQuestions);
  expect(questions.get(open.id).status).toBe('open');
  expect(() => questions.get(old.id)).toThrow(code('QUESTION_NOT_FOUND'));
});

test('questions: one that is observed by several at once is added once', async () => {
  const dialogs = await Promise.all([0, 1, 2].map(() => questions.add('s3', content)));
  expect(dialogs.map(({ isNew }) => isNew)).toEqual([true, false, false]);
  expect(new Set(dialogs.map(({ question }) => question.id)).size).toBe(1);
  const permission = { ...content, ref: 'run 1 call 2' };
  const requests = await Promise.all([0, 1].map(() => questions.add('s3', permission)));
  expect(requests.map(({ isNew }) => isNew)).toEqual([true, false]);
  // The same dialog may come again after it was answered; the same request may not.
  for (const { question } of [dialogs[0]!, requests[0]!]) await questions.close(question.id);
  expect(await questions.add('s3', content)).toMatchObject({ isNew: true });
  expect(await questions.add('s3', permission)).toMatchObject({ isNew: false });
});
