import { ApiError } from '@millrace/client';
import { expect, test } from 'vitest';
import type { Schedule } from '../../queue/api.js';
import { bodyOf, draftOf, fieldErrors } from './schedule-draft.js';

const schedule: Schedule = {
  queue: 'mail',
  version: 1,
  name: 'nightly',
  every_ms: 90_000,
  timezone: 'UTC',
  task: { handler_ref: 'report', payload: '/w==', payload_content_type: 'image/png' },
  overlap: 'allow',
  catch_up: 'none',
  jitter_ms: 500,
  description: 'of the shop',
  next_run_at: null,
  last_run_at: null,
  last_task_id: null,
  paused: false,
};

test('schedule draft: an edit keeps what the form does not show', () => {
  const draft = draftOf(schedule);
  expect(draft).toMatchObject({ by: 'every', seconds: '90', handler: 'report' });
  expect(bodyOf({ ...draft, seconds: '1.5' }, schedule)).toEqual({
    every_ms: 1_500,
    overlap: 'allow',
    catch_up: 'none',
    jitter_ms: 500,
    description: 'of the shop',
    task: schedule.task,
  });
  expect(bodyOf({ ...draft, payload: '{}' }, schedule)).toMatchObject({
    task: { payload: 'e30=', payload_content_type: 'image/png' },
  });
});

test('schedule draft: a new one runs by cron in a time zone', () => {
  const draft = { ...draftOf(undefined), cron: ' 0 3 * * * ', handler: 'report ' };
  expect(bodyOf(draft, undefined)).toEqual({
    cron: '0 3 * * *',
    timezone: 'UTC',
    task: { handler_ref: 'report', payload: 'e30=', payload_content_type: 'application/json' },
  });
});

test('field errors: by pointer, none without a list', () => {
  const errors = [{ pointer: '/task/handler_ref', message: 'is empty' }];
  expect([...fieldErrors(new ApiError(422, { errors }))]).toEqual([
    ['task/handler_ref', 'is empty'],
  ]);
  expect(fieldErrors(new ApiError(500, undefined)).size).toBe(0);
  expect(fieldErrors(new Error('offline')).size).toBe(0);
});
