import { createHash } from 'node:crypto';
import type { QueueSchema } from '@millrace/contract/queue';
import type { WatchChange, WatchMessage } from '@millrace/db';
import type { ConnectorConfig, ConnectorOp } from './connectors-file.js';
import { fillTemplate, usesBefore, type ChangeFields, type Json } from './template.js';

export type Task = QueueSchema<'SubmitTaskRequest'>;

/** Whether the payload needs the document before the change. */
export function needsBefore({ payload }: ConnectorConfig): boolean {
  return payload === 'before_after' || usesBefore(payload);
}

/** The tasks of one commit, in order. */
export function tasksOf(message: WatchMessage, config: ConnectorConfig): Task[] {
  return message.changes
    .filter((change) => concerns(change, config))
    .map((change) => taskOf(change, message, config));
}

/** An update counts if the record matches the filter after it, a delete if it did before. */
function concerns(change: WatchChange, { on }: ConnectorConfig): boolean {
  const op = opOf(change);
  return on.includes(op) && !(op === 'update' && change.left);
}

/** A record whose TTL has passed is a deleted one. */
function opOf({ op }: WatchChange): ConnectorOp {
  return op === 'expire' ? 'delete' : op;
}

function taskOf(change: WatchChange, message: WatchMessage, config: ConnectorConfig): Task {
  const fields = fieldsOf(change, message);
  const { body, type } = payloadOf(config.payload, fields);
  return {
    id: taskId(change, message, config.name),
    handler_ref: config.handler_ref,
    payload: Buffer.from(body).toString('base64'),
    payload_content_type: type,
    // A queue with `ordering.mode: group` runs the changes of a record one after another.
    group_key: fields.id,
    headers: {
      'X-Change-Op': fields.op,
      'X-Change-Collection': fields.collection,
      'X-Change-Seq': String(fields.seq),
      'X-Record-Id': fields.id,
      // Header values are ASCII.
      'X-Record-Key': encodeURIComponent(fields.key),
    },
  };
}

function fieldsOf(change: WatchChange, message: WatchMessage): ChangeFields {
  const { collection, record, before } = change;
  return {
    op: opOf(change),
    collection,
    id: record.id,
    key: record.key,
    rev: record.rev,
    seq: message.seq,
    committed_at: (message.committedAt ?? new Date(0)).toISOString(),
    before: before?.data ?? null,
    after: 'data' in record ? record.data : null,
  };
}

function payloadOf(payload: Json, fields: ChangeFields): { body: string; type: string } {
  const { before, after } = fields;
  if (payload === 'after') return json(after);
  if (payload === 'before_after') return json({ before, after });
  const filled = fillTemplate(payload, fields);
  if (typeof filled !== 'string') return json(filled);
  const type = isJson(filled) ? 'application/json' : 'text/plain; charset=utf-8';
  return { body: filled, type };
}

function json(value: Json): { body: string; type: string } {
  return { body: JSON.stringify(value), type: 'application/json' };
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

const alphabet = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';
const [timeLength, hashLength] = [10, 16];

/**
 * A ULID that is the same whenever this change is seen: the time of the commit, and a hash of the
 * connector, the collection, the commit and the record.
 */
function taskId(change: WatchChange, message: WatchMessage, connector: string): string {
  const { collection, op, record } = change;
  const { epoch, seq } = message;
  const identity = JSON.stringify([connector, collection, epoch, seq, record.id, record.rev, op]);
  const hash = createHash('sha256').update(identity).digest();
  let time = '';
  let left = message.committedAt?.getTime() ?? 0;
  for (let i = 0; i < timeLength; i++, left = Math.floor(left / 32)) {
    time = alphabet[left % 32] + time;
  }
  const rest = Array.from(hash.subarray(0, hashLength), (byte) => alphabet[byte % 32]);
  return time + rest.join('');
}
