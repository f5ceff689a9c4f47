import type { QueueSchema } from '@millrace/contract/queue';
import type { FieldError } from '@millrace/kit/errors';
import type { Check, DocumentSchemas } from '@millrace/kit/http';
import { failBody } from './refusal.js';

type InvalidCode = Parameters<typeof failBody>[0];

/** Holds the body of a request against its schema in the contract. */
export interface BodyCheck<Body> {
  /** The body, typed; or the refusal, thrown, with a pointer to each fault. */
  read(body: unknown): Body;
}

/** The bodies that operations check themselves, since something else is checked before them. */
export interface BodyChecks {
  task: BodyCheck<QueueSchema<'SubmitTaskRequest'>>;
  redrive: BodyCheck<QueueSchema<'RedriveSelector'>>;
  purge: BodyCheck<QueueSchema<'PurgeSelector'>>;
  complete: BodyCheck<QueueSchema<'CompleteTaskRequest'>>;
  fail: BodyCheck<QueueSchema<'FailTaskRequest'>>;
  extend: BodyCheck<QueueSchema<'ExtendTaskRequest'>>;
  /** Fills in the defaults. */
  config: BodyCheck<QueueSchema<'QueueConfigInput'>>;
}

export function bodyChecks(schemas: DocumentSchemas): BodyChecks {
  const task = schemas.named('SubmitTaskRequest');
  // The first task after a start must not wait for this.
  task.prepare();
  return {
    task: bodyCheck('INVALID_TASK', task),
    redrive: bodyCheck('INVALID_SELECTOR', schemas.named('RedriveSelector')),
    purge: bodyCheck('INVALID_SELECTOR', schemas.named('PurgeSelector')),
    complete: bodyCheck('INVALID_TASK', schemas.named('CompleteTaskRequest')),
    fail: bodyCheck('INVALID_TASK', schemas.named('FailTaskRequest')),
    extend: bodyCheck('INVALID_TASK', schemas.named('ExtendTaskRequest')),
    config: bodyCheck('INVALID_CONFIG', schemas.named('QueueConfigInput', { fillDefaults: true })),
  };
}

function bodyCheck<Body>(code: InvalidCode, check: Check): BodyCheck<Body> {
  return {
    read: (body) => {
      if (check.accepts(body)) return body as Body;
      throw failBody(code, check.faults(body).map(sayPlainly));
    },
  };
}

/** Patterns are exact, and hard to read: these say what the common ones mean. */
const meanings: readonly (readonly [start: string, meaning: string])[] = [
  ['must match ^[0-7][0-9A-HJKMNP', 'must be a ULID: 26 characters of 0-9 and A-Z but I, L, O, U'],
  [
    'must match ^[A-Za-z0-9][A-Za-z0-9._:/@-]*$',
    'must start with a letter or digit and go on with letters, digits and . _ : / @ -',
  ],
  [
    'must match ^[A-Za-z0-9][A-Za-z0-9._:/-]*$',
    'must start with a letter or digit and go on with letters, digits and . _ : / -',
  ],
  [
    'must match ^([!-~]([ -~]*[!-~])?)?$',
    'must be visible ASCII without a space at either end, or empty',
  ],
  ['must match ^[^\\u0000-\\u001f\\u007f]+$', 'must not have control characters'],
  ['must match ^[A-Za-z][A-Za-z0-9+.-]*://', 'must be an absolute URL such as https://host/path'],
];

function sayPlainly({ pointer, message }: FieldError): FieldError {
  const meaning = meanings.find(([start]) => message.startsWith(start));
  return meaning ? { pointer, message: meaning[1] } : { pointer, message };
}
