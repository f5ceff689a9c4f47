import {
  createHandler,
  createQueueClient,
  createWorker,
  defineTasks,
  RetryLater,
  toNodeHandler,
  type TaskHandlers,
} from '@millrace/worker';
import { expectTypeOf, test } from 'vitest';
import { z } from 'zod';

/*
 * Mistakes that must not compile. `npm run check` compiles this file: a mistake that compiles is an
 * unused @ts-expect-error, which is an error.
 */

const tasks = defineTasks({
  'mail.send': z.object({ to: z.string(), copies: z.number().optional() }),
  'mail.digest': z.object({ day: z.string().transform((text) => new Date(text)) }),
});
const typed = defineTasks<{ 'page.render': { url: string }; 'page.drop': { id: number } }>();

const ok = () => undefined;

export async function mistakes(): Promise<void> {
  const queue = createQueueClient({ url: 'http://127.0.0.1:8081' }, tasks);
  const pages = createQueueClient({ url: 'http://127.0.0.1:8081' }, typed);
  // @ts-expect-error 1: an unknown task
  await queue.submit('mail', 'mail.sent', { to: 'ada' });
  // @ts-expect-error 2: a payload without a required field
  await queue.submit('mail', 'mail.send', {});
  // @ts-expect-error 3: a field of the wrong type
  await queue.submit('mail', 'mail.send', { to: 7 });
  // @ts-expect-error 4: a misspelt field
  await queue.submit('mail', 'mail.send', { to: 'ada', copys: 2 });
  // @ts-expect-error 5: the payload of another task
  await queue.submit('mail', 'mail.digest', { to: 'ada' });
  // @ts-expect-error 6: what the schema gives out is not what it takes in
  await queue.submit('mail', 'mail.digest', { day: new Date(0) });
  // @ts-expect-error 7: no payload
  await queue.submit('mail', 'mail.send');
  // @ts-expect-error 8: a misspelt option
  await queue.submit('mail', 'mail.send', { to: 'ada' }, { delay: 5 });
  // @ts-expect-error 9: an option of the wrong type
  await queue.submit('mail', 'mail.send', { to: 'ada' }, { delayMs: '5s' });
  // @ts-expect-error 10: submit does not wait
  await queue.submit('mail', 'mail.send', { to: 'ada' }, { timeoutMs: 5 });
  // @ts-expect-error 11: the payload of a task defined by its type
  await pages.submit('pages', 'page.render', { url: 1 });
  // @ts-expect-error 12: an unknown task defined by types
  await pages.submitAndWait('pages', 'page.show', { url: 'https://example.com' });
  // @ts-expect-error 13: the result is not known to be a string
  const text: string = (await queue.submitAndWait('mail', 'mail.send', { to: 'ada' })).result;

  const at = { url: 'http://127.0.0.1:8081', queue: 'mail' };
  // @ts-expect-error 14: a handler is missing
  createWorker(at, tasks, { 'mail.send': ok });
  // @ts-expect-error 15: a handler without a task
  createWorker(at, tasks, { 'mail.send': ok, 'mail.digest': ok, 'mail.other': ok });
  // @ts-expect-error 16: a worker without a queue
  createWorker({ url: at.url }, tasks, { 'mail.send': ok, 'mail.digest': ok });
  // @ts-expect-error 17: a misspelt option of a worker
  createWorker({ ...at, concurency: 5 }, tasks, { 'mail.send': ok, 'mail.digest': ok });
  createWorker(at, tasks, {
    // @ts-expect-error 18: a field that the payload does not have
    'mail.send': ({ payload }) => payload.subject,
    // @ts-expect-error 19: the handler gets what the schema gives out, a Date
    'mail.digest': ({ payload }) => payload.day.toUpperCase(),
  });
  createWorker(at, tasks, {
    // @ts-expect-error 20: progress is an object
    'mail.send': ({ progress }) => progress(50),
    // @ts-expect-error 21: the task cannot be changed
    'mail.digest': ({ task }) => (task.attempt = 1),
  });
  // @ts-expect-error 22: a handler of callbacks without a secret
  createHandler({}, typed, { 'page.render': ok, 'page.drop': ok });
  // @ts-expect-error 23: not a fetch handler
  toNodeHandler((text: string) => text);
  // @ts-expect-error 24: no time to wait
  throw new RetryLater({ message: `later ${text}` });
}

test('types: a handler gets the payload that its schema gives out', () => {
  type Handlers = TaskHandlers<NonNullable<(typeof tasks)['~types']>>;
  type Payload<Ref extends keyof Handlers> = Parameters<Handlers[Ref]>[0]['payload'];
  expectTypeOf<Payload<'mail.digest'>>().toEqualTypeOf<{ day: Date }>();
  expectTypeOf<Payload<'mail.send'>['to']>().toEqualTypeOf<string>();
});
