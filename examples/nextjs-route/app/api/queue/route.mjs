// app/api/queue/route.mjs of a Next.js application: the callback URL is https://.../api/queue.
import { createHandler, defineTasks } from '@millrace/worker';
import { z } from 'zod';

const tasks = defineTasks({ 'mail.send': z.object({ to: z.string() }) });

export const POST = createHandler({ secret: process.env.QUEUE_SECRET }, tasks, {
  'mail.send': async ({ payload }) => console.log(`Mail to ${payload.to}`),
});
