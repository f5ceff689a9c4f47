import { expect, test } from 'vitest';
import type { QueueSchema } from '@millrace/contract/queue';
import { ApiError } from './api-error.js';
import { SharedSubmits } from './shared-submits.js';

type Task = QueueSchema<'SubmitTaskRequest'>;

/** A queue that answers when told to, and keeps what it was sent. */
function startQueue() {
  const requests: { tasks: Task[]; answer: () => void; fail: (error: Error) => void }[] = [];
  const request = <Answer>(tasks: Task[], answerOf: () => Answer) =>
    new Promise<Answer>((resolve, reject) => {
      requests.push({ tasks, answer: () => resolve(answerOf()), fail: reject });
    });
  const envelope = (task: Task) => ({ id: task.id }) as QueueSchema<'SubmitResult'>;
  const submits = new SharedSubmits({
    submitTask: (_, task) => request([task], () => envelope(task)),
    submitBatch: (_, tasks) =>
      request(tasks, () =>
        tasks.map((task, index) =>
          task.handler_ref === 'bad'
            ? { index, status: 422, error: { code: 'INVALID_TASK', status: 422, title: 'Bad' } }
            : { index, status: 202 as const, envelope: envelope(task) },
        ),
      ),
  });
  return { submits, requests };
}

const task = (id: string, fields: Partial<Task> = {}): Task => ({
  id,
  handler_ref: 'a',
  ...fields,
});
const turn = () => new Promise((resolve) => setTimeout(resolve, 0));
const sizes = (requests: readonly { tasks: Task[] }[]) => requests.map(({ tasks }) => tasks.length);

test('a submit that is alone is sent by itself', async () => {
  const { submits, requests } = startQueue();
  const result = submits.submit('mail', task('1'));
  await turn();
  requests[0]?.answer();
  expect(await result).toEqual({ id: '1' });
  expect(sizes(requests)).toEqual([1]);
});

test('submits of one turn, and those that arrive while two requests run, share requests', async () => {
  const { submits, requests } = startQueue();
  const send = (id: string) => submits.submit('mail', task(id));
  const results = [send('1'), send('2')];
  await turn();
  results.push(send('3'));
  await turn();
  results.push(send('4'), send('5'));
  await turn();
  results.push(send('6'));
  await turn();
  expect(sizes(requests)).toEqual([2, 1]);
  requests[0]?.answer();
  await turn();
  expect(sizes(requests)).toEqual([2, 1, 3]);
  for (const { answer } of requests) answer();
  const ids = (await Promise.all(results)).map(({ id }) => id);
  expect(ids).toEqual(['1', '2', '3', '4', '5', '6']);
});

test('one refused item does not touch the others', async () => {
  const { submits, requests } = startQueue();
  const results = [
    submits.submit('mail', task('1')),
    submits.submit('mail', task('2', { handler_ref: 'bad' })),
  ];
  await turn();
  requests[0]?.answer();
  const [first, second] = await Promise.allSettled(results);
  expect(first).toMatchObject({ status: 'fulfilled', value: { id: '1' } });
  expect(second).toMatchObject({ reason: { status: 422, code: 'INVALID_TASK' } });
  expect((second as PromiseRejectedResult).reason).toBeInstanceOf(ApiError);
});

test('a failed request fails its submits, and the next ones are sent', async () => {
  const { submits, requests } = startQueue();
  const failed = [submits.submit('mail', task('1')), submits.submit('mail', task('2'))];
  await turn();
  requests[0]?.fail(new Error('connection lost'));
  for (const result of failed) await expect(result).rejects.toThrow('connection lost');
  const next = submits.submit('mail', task('3'));
  await turn();
  requests[1]?.answer();
  expect(await next).toEqual({ id: '3' });
});

test('queues do not share requests, and a request stays far below 16 MiB', async () => {
  const { submits, requests } = startQueue();
  const payload = 'x'.repeat(1_500_000);
  const results = ['1', '2', '3'].map((id) => submits.submit('mail', task(id, { payload })));
  results.push(submits.submit('other', task('4')));
  await turn();
  expect(requests.map(({ tasks }) => tasks.map(({ id }) => id))).toEqual([
    ['1', '2'],
    ['3'],
    ['4'],
  ]);
  for (const { answer } of requests) answer();
  await Promise.all(results);
});
