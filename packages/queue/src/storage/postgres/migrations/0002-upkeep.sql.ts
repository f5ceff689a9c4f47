/**
 * How the database looks after the tables. None of it changes what they hold: an engine that knows
 * none of these is none the worse.
 *
 * - A claimed row is written once more, wider. With room left on its page it stays there, which spares
 *   a lock and its record in the log.
 * - Rows of `live` and `ledger` are dead after a moment. They are cleaned up early and without a rest.
 * - Figures on what is never looked for cost a sort of a sample each time, and nobody reads them. The
 *   plans hang on indexes, not on figures, so a small sample does for the rest.
 */
export const upkeep = [
  'ALTER TABLE millrace.live SET (fillfactor = 45)',
  ...['live', 'ledger'].map(
    (table) => `ALTER TABLE millrace.${table} SET (autovacuum_vacuum_scale_factor = 0.02,
      autovacuum_vacuum_cost_delay = 0)`,
  ),
  figuresOf(
    'tasks',
    ['id', 'queue', 'purged_at'],
    [
      'handler_ref',
      'priority',
      'group_key',
      'created_at',
      'first_due_at',
      'first_expires_at',
      'purged_status',
      'submitted_by',
      'content_type',
      'headers',
      'payload',
    ],
  ),
  figuresOf(
    'live',
    [
      'id',
      'queue_no',
      'created_at',
      'due_at',
      'expires_at',
      'lease_expires_at',
      'status',
      'priority',
      'started',
      'group_key',
    ],
    [
      'updated_at',
      'lease_started_at',
      'attempt',
      'total_attempts',
      'redrive_count',
      'settled_verdict',
      'lease_async',
      'lease_token',
      'lease_node',
      'settled_token',
      'http_status',
      'error_type',
      'last_error',
      'attempts',
    ],
  ),
  figuresOf(
    'ended',
    ['id', 'queue_no', 'ended_at', 'status', 'http_status', 'handler_ref', 'error_type'],
    [
      'expires_at',
      'attempt',
      'total_attempts',
      'redrive_count',
      'settled_verdict',
      'settled_token',
      'dead_reason',
      'last_error',
      'attempts',
    ],
  ),
];

function figuresOf(table: string, few: readonly string[], none: readonly string[]): string {
  const column = (target: number) => (name: string) =>
    `ALTER COLUMN ${name} SET STATISTICS ${target}`;
  const changes = [...few.map(column(10)), ...none.map(column(0))];
  return `ALTER TABLE millrace.${table} ${changes.join(', ')}`;
}
