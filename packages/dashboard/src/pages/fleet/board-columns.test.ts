import type { DaemonSchema } from '@millrace/contract/daemon';
import { expect, test } from 'vitest';
import { waitingJobs } from './board-columns.js';

test('waitingJobs: pending jobs of running pipelines only', () => {
  const job = (id: string, status: string, depends_on: string[] = []) => ({
    id,
    status,
    depends_on,
    session_id: null,
  });
  const pipelines = [
    { id: 'p', name: 'upload', status: 'running', jobs: [job('docs', 'pending', ['build'])] },
    { id: 'q', name: 'old', status: 'done', jobs: [job('x', 'pending')] },
  ] as unknown as DaemonSchema<'Pipeline'>[];
  expect(waitingJobs(pipelines)).toEqual([
    { id: 'p docs', title: 'docs', note: 'Job of upload, after build', href: '/pipelines/p' },
  ]);
});
