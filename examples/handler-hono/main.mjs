// Handles the callbacks of a push queue with Hono, on any runtime; here on Node.
import { createServer } from 'node:http';
import { createHandler, defineTasks, toNodeHandler } from '@millrace/worker';
import { Hono } from 'hono';
import { z } from 'zod';

const tasks = defineTasks({ 'mail.send': z.object({ to: z.string() }) });
const handler = createHandler({ secret: process.env.QUEUE_SECRET }, tasks, {
  'mail.send': async ({ payload }) => console.log(`Mail to ${payload.to}`),
});

const app = new Hono();
app.post('/queue', (context) => handler(context.req.raw));

const server = createServer(toNodeHandler((request) => app.fetch(request)));
server.listen(process.env.PORT ?? 9000, '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${server.address().port}/queue`);
});
