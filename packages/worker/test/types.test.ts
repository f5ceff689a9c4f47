import {
  connectQueue,
  createHandler,
  createWorker,
  defineTasks,
  RetryLater,
  toNodeHandler,
  type QueueTask,
  type TaskHandlers,
} from '@millrace/worker';
import { expectTypeOf, test } from 'vitest';
import { z } from 'zod';

/*
 * Mistakes that must not compile. `npm run check` compiles this file: a mistake that compiles is an
 * unused @ts-expect-error, which is an error.
 */

const tasks = defineTasks({
  'mail.send': {
    payload: z.object({ to: z.string(), copies: z.number().optional() }),
    result: z.object({ messageId: z.string() }),
    queue: 'mail',
  },
  'mail.digest': z.object({ day: z.string().transform((text) => new Date(text)) }),
});
type Types = NonNullable<(typeof tasks)['~types']>;
const typed = defineTasks<{ 'page.render': { url: string }; 'page.drop': { id: number } }>();

const ok = () => undefined;
const sent = () => ({ messageId: 'm1' });
const server = { url: 'http://127.0.0.1:8081' };

export async function submitMistakes(): Promise<void> {
  const queue = connectQueue(server, tasks);
  const pages = connectQueue(server, typed);
  // @ts-expect-error 1: an unknown task
  await queue.submit('mail', 'mail.sent', { to: 'ada' });
  // @ts-expect-error 2: a payload without a required field
  await queue.submit('mail.send', {});
  // @ts-expect-error 3: a field of the wrong type
  await queue.submit('mail.send', { to: 7 });
  // @ts-expect-error 4: a misspelt field
  await queue.submit('mail.send', { to: 'ada', copys: 2 });
  // @ts-expect-error 5: the payload of another task
  await queue.submit('mail', 'mail.digest', { to: 'ada' });
  // @ts-expect-error 6: what the schema gives out is not what it takes in
  await queue.submit('mail', 'mail.digest', { day: new Date(0) });
  // @ts-expect-error 7: no payload
  await queue.submit('mail.send');
  // @ts-expect-error 8: a misspelt option
  await queue.submit('mail.send', { to: 'ada' }, { delay: 5 });
  // @ts-expect-error 9: an option of the wrong type
  await queue.submit('mail.send', { to: 'ada' }, { delayMs: '5s' });
  // @ts-expect-error 10: submit does not wait
  await queue.submit('mail.send', { to: 'ada' }, { signal: AbortSignal.abort() });
  // @ts-expect-error 11: the payload of a task defined by its type
  await pages.submit('pages', 'page.render', { url: 1 });
  // @ts-expect-error 12: an unknown task defined by types
  await pages.submitAndWait('pages', 'page.show', { url: 'https://example.com' });
  const { result } = await queue.submitAndWait('mail.send', { to: 'ada' });
  // @ts-expect-error 13: a field that the result does not have
  console.log(result.id);
  // @ts-expect-error 14: a result without a schema is not known to be a string
  const text: string = (await queue.submitAndWait('mail', 'mail.digest', { day: '' })).result;
  // @ts-expect-error 15: an unknown kind of backoff
  await queue.submit('mail.send', { to: 'ada' }, { backoff: { kind: 'linear', ms: 5 } });
  // @ts-expect-error 16: one of many has the payload of another task
  await queue.submitMany([{ ref: 'mail.send', payload: { day: text } }]);
  // @ts-expect-error 17: one of many has an unknown task
  await queue.submitMany([{ ref: 'mail.sent', payload: { to: 'ada' } }]);
  // @ts-expect-error 18: labels are a list
  await queue.submit('mail.send', { to: 'ada' }, { labels: 'gpu' });
  // @ts-expect-error 19: names in code are camelCase
  await queue.submit('mail.send', { to: 'ada' }, { max_attempts: 3 });
}

export async function callMistakes(): Promise<void> {
  const queue = connectQueue(server, tasks);
  const task = await queue.get('01M7KQ1QMR8ZPGYBF8NGQZGP76');
  // @ts-expect-error 20: what get gives is camelCase too
  console.log(task.handler_ref);
  // @ts-expect-error 21: the result of a task that may be another
  console.log(task.result.messageId);
  // @ts-expect-error 22: an unknown status
  await queue.list({ queue: 'mail', status: 'DONE' });
  // @ts-expect-error 23: a misspelt filter
  await queue.cancel({ queue: 'mail', handler: 'mail.send' });
  // @ts-expect-error 24: a time as text
  await queue.reschedule(task.id, '2027-01-01');
  // @ts-expect-error 25: update changes no queue
  await queue.update(task.id, { queue: 'other' });
  // @ts-expect-error 26: a config takes camelCase
  await queue.configure('mail', { retry: { max_attempts: 3 } });
  // @ts-expect-error 27: a schedule without a task
  await queue.schedules.put('nightly', { cron: '0 3 * * *' });
  const day = { day: '2027-01-01' };
  // @ts-expect-error 28: a schedule with the payload of another task
  await queue.schedules.put('nightly', { everyMs: 1, task: { ref: 'mail.send', payload: day } });
  // @ts-expect-error 29: the wire's name of a field
  await queue.dead.list({ queue: 'mail', error_type: 'TypeError' });
  // @ts-expect-error 30: a rate is a number
  await queue.dead.redrive({ queue: 'mail', ids: [task.id], perSecond: '10' });
  // @ts-expect-error 31: a misspelt setting of a definition
  defineTasks({ 'mail.send': { payload: z.string(), attempts: 3 } });
}

export function workerMistakes(): void {
  const at = { ...server, queue: 'mail' };
  // @ts-expect-error 32: a handler is missing
  createWorker(at, tasks, { 'mail.send': sent });
  // @ts-expect-error 33: a handler without a task
  createWorker(at, tasks, { 'mail.send': sent, 'mail.digest': ok, 'mail.other': ok });
  // @ts-expect-error 34: a worker without a queue
  createWorker(server, tasks, { 'mail.send': sent, 'mail.digest': ok });
  // @ts-expect-error 35: a misspelt option of a worker
  createWorker({ ...at, concurency: 5 }, tasks, { 'mail.send': sent, 'mail.digest': ok });
  createWorker(at, tasks, {
    // @ts-expect-error 36: a field that the payload does not have
    'mail.send': ({ payload }) => ({ messageId: payload.subject }),
    // @ts-expect-error 37: the handler gets what the schema gives out, a Date
    'mail.digest': ({ payload }) => payload.day.toUpperCase(),
  });
  createWorker(at, tasks, {
    // @ts-expect-error 38: a result that its schema does not take
    'mail.send': () => ({ id: 'm1' }),
    // @ts-expect-error 39: the task cannot be changed
    'mail.digest': ({ task }) => (task.attempt = 1),
  });
  const pages = { 'page.render': ok, 'page.drop': ok };
  // @ts-expect-error 40: weights are numbers
  createWorker({ ...server, queues: { mail: 'high' } }, typed, pages);
  // @ts-expect-error 41: an event that a worker does not have
  createWorker(at, typed, pages).on('completed', ok);
  // @ts-expect-error 42: a handler of callbacks without a secret
  createHandler({}, typed, pages);
  // @ts-expect-error 43: not a fetch handler
  toNodeHandler((text: string) => text);
  // @ts-expect-error 44: no time to wait
  throw new RetryLater({ message: 'later' });
}

test('types: a handler gets the payload that its schema gives out', () => {
  type Handlers = TaskHandlers<Types>;
  type Payload<Ref extends keyof Handlers> = Parameters<Handlers[Ref]>[0]['payload'];
  expectTypeOf<Payload<'mail.digest'>>().toEqualTypeOf<{ day: Date }>();
  expectTypeOf<Payload<'mail.send'>['to']>().toEqualTypeOf<string>();
  type Found = Extract<QueueTask<Types>, { handlerRef: 'mail.send' }>;
  expectTypeOf<Found['result']>().toEqualTypeOf<{ messageId: string } | null>();
});
