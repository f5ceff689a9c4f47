import type { DaemonSchema } from '@millrace/contract/daemon';
import { expect, test } from 'vitest';
import { columnOf, waitingJobs } from './board-columns.js';

type Session = DaemonSchema<'Session'>;

const facts = (standing?: { ahead: number | null; merged: boolean | null }, isAsking = false) => ({
  standingOf: () => standing,
  hasQuestion: () => isAsking,
});
const column = (status: Session['status'], ...more: Parameters<typeof facts>) =>
  columnOf({ id: 'a', status } as Session, facts(...more));

test('columnOf: by status', () => {
  expect(column('spawning')).toBe('queued');
  expect(column('working')).toBe('working');
  expect(column('idle')).toBe('review');
  expect(column('done')).toBe('done');
  for (const status of ['waiting_for_input', 'errored', 'orphaned', 'rate_limited'] as const) {
    expect([status, column(status)]).toEqual([status, 'needs_you']);
  }
});

test('columnOf: finished work is reviewed until it is merged', () => {
  expect(column('done', { ahead: 2, merged: false })).toBe('review');
  expect(column('done', { ahead: 2, merged: true })).toBe('done');
  expect(column('done', { ahead: 0, merged: false })).toBe('done');
  expect(column('done', { ahead: null, merged: null })).toBe('done');
});

test('columnOf: an open question needs you, whatever the status says', () => {
  expect(column('working', undefined, true)).toBe('needs_you');
});

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
