import type { QueueSchema } from '@millrace/contract/queue';
import type { Schedule } from '../../queue/api.js';
import { faultsOf } from '../../parts/changes.js';
import { fromBase64, toBase64 } from '../../queue/payload.js';

/** A schedule as texts of a form. */
export interface ScheduleDraft {
  name: string;
  by: 'cron' | 'every';
  cron: string;
  timezone: string;
  seconds: string;
  handler: string;
  payload: string;
}

const newDraft: ScheduleDraft = {
  name: '',
  by: 'cron',
  cron: '0 * * * *',
  timezone: 'UTC',
  seconds: '60',
  handler: '',
  payload: '{}',
};

export function draftOf(schedule: Schedule | undefined): ScheduleDraft {
  if (!schedule) return newDraft;
  const { name, cron, every_ms, timezone, task } = schedule;
  return {
    ...newDraft,
    name,
    by: cron ? 'cron' : 'every',
    ...(cron && { cron }),
    ...(every_ms && { seconds: String(every_ms / 1000) }),
    timezone,
    handler: task.handler_ref,
    payload: fromBase64(task.payload ?? ''),
  };
}

/** The request; settings that the form does not show stay as they are. */
export function bodyOf(
  draft: ScheduleDraft,
  schedule: Schedule | undefined,
): QueueSchema<'ScheduleInput'> {
  const { overlap, catch_up, jitter_ms, description, task } = schedule ?? {};
  // A payload that is no text would not survive the form.
  const isSamePayload = task?.payload !== undefined && fromBase64(task.payload) === draft.payload;
  return {
    ...(draft.by === 'cron'
      ? { cron: draft.cron.trim(), timezone: draft.timezone.trim() }
      : { every_ms: Math.round(Number(draft.seconds) * 1000) }),
    ...(overlap !== undefined && { overlap }),
    ...(catch_up !== undefined && { catch_up }),
    ...(jitter_ms !== undefined && { jitter_ms }),
    ...(description !== undefined && { description }),
    task: {
      payload_content_type: 'application/json',
      ...task,
      handler_ref: draft.handler.trim(),
      ...(!isSamePayload && { payload: toBase64(draft.payload) }),
    },
  };
}

/** Messages of a refusal by JSON pointer without its slash; empty when it names no field. */
export function fieldErrors(error: unknown): ReadonlyMap<string, string> {
  return new Map(faultsOf(error).map(({ pointer, message }) => [pointer, message]));
}
