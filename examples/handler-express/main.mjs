// Handles the callbacks of a push queue with Express. Mount it before any body parser.
import { createHandler, defineTasks, toNodeHandler } from '@millrace/worker';
import express from 'express';
import { z } from 'zod';

const tasks = defineTasks({ 'mail.send': z.object({ to: z.string() }) });
const handler = createHandler({ secret: process.env.QUEUE_SECRET }, tasks, {
  'mail.send': async ({ payload }) => console.log(`Mail to ${payload.to}`),
});

const app = express();
app.post('/queue', toNodeHandler(handler));
const server = app.listen(process.env.PORT ?? 9000, '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${server.address().port}/queue`);
});
