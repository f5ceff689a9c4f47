import { toWire } from './names.js';
import { queueOf, type SubmitOptions } from './submit.js';
import { checkPayload, definitionOf, type Tasks, type TaskTypes } from './tasks.js';
import { traceHeaders } from './tracing.js';

/** A connection of PostgreSQL, in the form of `pg`; wrap that of other libraries. */
export interface SqlClient {
  query(text: string, values: unknown[]): PromiseLike<unknown>;
}

// As text, because some clients write JSON for a parameter of the type jsonb by themselves.
const statement = 'select millrace.submit($1, $2, $3::text::jsonb, $4::text::jsonb) as id';

/**
 * Submits a task in your own transaction, in the database of a queue on PostgreSQL: it exists when
 * the transaction commits, and not at all if it is rolled back. Resolves with the id of the task.
 */
export async function submitIn<Types extends TaskTypes, Ref extends keyof Types & string>(
  client: SqlClient,
  tasks: Tasks<Types>,
  ref: Ref,
  payload: Types[Ref]['input'],
  options: SubmitOptions = {},
): Promise<string> {
  await checkPayload(tasks, ref, payload);
  const { payload: _payload, result: _result, ...defaults } = definitionOf(tasks, ref) ?? {};
  const { queue: _queue, headers, ...settings } = { ...defaults, ...options };
  const traced = await traceHeaders(headers);
  const wire = { ...toWire(settings), ...(traced && { headers: traced }) };
  const result = await client.query(statement, [
    queueOf(tasks, ref, options.queue),
    ref,
    payload === undefined ? null : JSON.stringify(payload),
    JSON.stringify(wire),
  ]);
  const rows = (Array.isArray(result) ? result : (result as { rows: unknown }).rows) as {
    id: string;
  }[];
  return rows[0]!.id;
}
