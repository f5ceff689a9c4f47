import { defineTasks } from '@millrace/worker';
import { z } from 'zod';

export const tasks = defineTasks({
  'mail.send': { payload: z.object({ to: z.string() }), queue: 'mail' },
});
